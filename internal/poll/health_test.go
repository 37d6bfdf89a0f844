package poll

import (
	"testing"
	"time"

	"github.com/freshet-io/freshet"
)

func TestFailuresInARowMakeThePauseLonger(t *testing.T) {
	began := time.Now()
	var h health
	near := func(got, want time.Duration) bool { return (got - want).Abs() <= time.Duration(jitter*float64(want)) }
	for i, want := range []time.Duration{10, 20, 40, 60, 60} {
		if got := h.fail(&freshet.Error{}, 10*time.Second, began, began); !near(got, want*time.Second) {
			t.Errorf("after %d failures the target is left alone for %s", i+1, got)
		}
	}
	if got := h.fail(&freshet.Error{}, time.Hour, began, began); !near(got, time.Hour) {
		t.Errorf("a topic that is polled each hour is polled after %s", got)
	}
	if !h.outage.since.Equal(began) {
		t.Error("the outage began with its first failure")
	}
	h.succeed()
	if got := h.fail(&freshet.Error{}, 10*time.Second, began, began); !near(got, 10*time.Second) {
		t.Errorf("after a success and a failure the target is left alone for %s", got)
	}
}

func TestATargetThatAsksToBeLeftAloneIs(t *testing.T) {
	now := time.Now()
	var h health
	if got := h.fail(&freshet.Error{RetryAfter: time.Hour}, time.Second, now, now); got != time.Hour || !h.notBefore.Equal(now.Add(time.Hour)) {
		t.Errorf("it is left alone for %s, until %s", got, h.notBefore)
	}
	if got := h.fail(&freshet.Error{RetryAfter: time.Second}, time.Minute, now, now); got != time.Minute {
		t.Errorf("it asks for a second, the topic for a minute, and it is left alone for %s", got)
	}
	if h.succeed(); !h.notBefore.IsZero() {
		t.Error("what it asked for outlives its reason")
	}
}
