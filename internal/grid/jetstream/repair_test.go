package jetstream

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/freshet-io/freshet"
)

// TestASuspectIsReadByOneAtATime, and once more if it was suspected meanwhile, however often.
func TestASuspectIsReadByOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(Options{}.withDefaults())
		reads, goOn := 0, make(chan error)
		u := newSuspects(l, func(*slot) error { reads++; return <-goOn })
		s := &slot{topic: "a", swept: true, verified: 7}
		want := func(want int) {
			t.Helper()
			synctest.Wait()
			if reads != want {
				t.Errorf("%d reads, want %d", reads, want)
			}
		}
		u.add(s)
		want(1)
		u.add(s)
		u.add(s)
		want(1)
		goOn <- nil
		want(2)
		goOn <- nil
		want(2)
		if !s.swept || s.verified != 7 {
			t.Error("what could be read is not trusted")
		}
		u.add(s)
		want(3)
		goOn <- errors.New("it cannot be read")
		want(3)
		if s.swept || s.verified != 0 {
			t.Error("the next sweep does not try again")
		}
		l.tasks.close()
		u.add(s)
		want(3)
	})
}

func TestASlotIsThereWhileItIsUsed(t *testing.T) {
	made := 0
	all := newTopics(func(topic string) *slot { made++; return &slot{topic: topic} })
	first, _ := all.acquire("a")
	if again, _ := all.acquire("a"); again != first || made != 1 {
		t.Errorf("%d slots for one topic", made)
	}
	all.release(first)
	if all.find(token("a")) != first {
		t.Error("it is gone before the last one released it")
	}
	all.release(first)
	if all.find(token("a")) != nil {
		t.Error("it stays after the last one released it")
	}
	all.close()
	if _, err := all.acquire("a"); freshet.KindOf(err) != freshet.Unavailable {
		t.Errorf("after closing: %v", err)
	}
}
