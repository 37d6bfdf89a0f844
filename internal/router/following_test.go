package router

import (
	"errors"
	"testing"
	"time"
)

func TestAWatchBeginsOnceAndEndsForGood(t *testing.T) {
	var w watch
	begun, stopped := 0, 0
	begin := func() (func(), error) {
		begun++
		return func() { stopped++ }, nil
	}
	if started, err := w.start(begin); !started || err != nil {
		t.Fatal(started, err)
	}
	if started, err := w.start(begin); started || err != nil || begun != 1 {
		t.Error("it began again", started, err)
	}
	w.end(errors.New("over"))
	if started, err := w.start(begin); started || err != nil || stopped != 1 {
		t.Error("who has it learns by the grid's silence, not by an error", started, err)
	}

	over := errors.New("over")
	var never watch
	never.end(over)
	if started, err := never.start(begin); started || !errors.Is(err, over) || begun != 1 {
		t.Error("it began after its end", started, err)
	}
}

func TestATopicIsIdleSomeTimeAfterItsLastUser(t *testing.T) {
	var u usage
	now := time.Now()
	u.acquire()
	u.acquire()
	u.release(now)
	if u.isIdle(now.Add(time.Hour), time.Minute) {
		t.Error("somebody uses it")
	}
	u.release(now.Add(time.Minute))
	if u.isIdle(now.Add(2*time.Minute-1), time.Minute) || !u.isIdle(now.Add(2*time.Minute), time.Minute) {
		t.Error("it is idle a minute after its last user")
	}
}
