package router

import (
	"testing"
	"time"

	"github.com/freshet-io/freshet"
)

func TestWhatAnotherNodePublishedIsNotOverwrittenByWhatWaitedLong(t *testing.T) {
	received := time.Now()
	after := func(d time.Duration) time.Time { return received.Add(d) }
	here, elsewhere := freshet.Position{Epoch: "e", Version: 1}, freshet.Position{Epoch: "e", Version: 2}
	for name, test := range map[string]struct {
		found   time.Time // zero: the topic was empty when this node came
		pos     freshet.Position
		learned time.Time
		now     time.Time
		want    bool
	}{
		"nobody else published":                        {pos: here, now: after(time.Hour)},
		"another node did, and nothing waited":         {pos: elsewhere, learned: after(time.Millisecond), now: after(maxWait)},
		"another node did, and the publication waited": {pos: elsewhere, learned: after(time.Millisecond), now: after(maxWait + 1), want: true},
		"another node did, before it was received":     {pos: elsewhere, learned: after(-1), now: after(time.Hour)},
		"the document went":                            {learned: after(time.Millisecond), now: after(time.Hour)},
		"the node came soon, and found a document":     {found: after(maxWait), pos: here, now: after(time.Hour)},
		"the node came late, and found a document":     {found: after(maxWait + 1), pos: here, now: after(maxWait + 1), want: true},
	} {
		var s sequencer
		if test.found.IsZero() {
			s.begin(freshet.Position{}, after(time.Hour))
		} else {
			s.begin(here, test.found)
		}
		s.stored(here)
		if got := s.isOvertaken(test.pos, test.learned, received, test.now); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestWhatCameFromAnotherNodeIsRemembered(t *testing.T) {
	received := time.Now()
	var s sequencer
	s.begin(freshet.Position{}, received)
	elsewhere := freshet.Position{Epoch: "e", Version: 2}
	if s.isOvertaken(elsewhere, received, received, received) {
		t.Error("it did not wait")
	}
	s.stored(freshet.Position{Epoch: "e", Version: 3})
	if !s.isOvertaken(freshet.Position{Epoch: "e", Version: 3}, received, received, received.Add(time.Hour)) {
		t.Error("a publication of this node in between makes what another one published before count no more")
	}
}
