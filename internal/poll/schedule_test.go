package poll

import (
	"testing"
	"time"
)

func TestBeingALittleLateDoesNotAddUp(t *testing.T) {
	due, every := time.Now(), time.Second
	s := schedule{due: due}
	began := due.Add(congested)
	if got := s.after(began, began.Add(100*time.Millisecond), every, every); got != every-congested-100*time.Millisecond {
		t.Errorf("the next poll comes after %s", got)
	}
	if got := s.after(began, began.Add(time.Hour), every, every); got != every/4 {
		t.Errorf("a target that takes an hour is left alone for %s", got)
	}
}

func TestThoseWhoHadToWaitAreApartFromThenOn(t *testing.T) {
	due, every := time.Now(), time.Second
	s := schedule{due: due}
	began := due.Add(every / 2)
	moved := false
	for range 100 {
		got := s.after(began, began, every, every)
		if got < every/2 || got > every {
			t.Fatalf("the next poll comes after %s", got)
		}
		moved = moved || got > every/2
	}
	if !moved {
		t.Error("they are due together again")
	}
}

func TestABurstIsSpreadOnce(t *testing.T) {
	due, every := time.Now(), time.Minute
	s := schedule{due: due, spread: true}
	if got := s.after(due, due, every, every); got < every/2 || got > every+every/2 || s.spread {
		t.Errorf("the second poll comes after %s", got)
	}
	if got := s.after(due, due, every, every); got != every {
		t.Errorf("the third poll comes after %s", got)
	}
}
