package router

import (
	"testing"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/content"
)

func TestATopicThatIsPublishedToAgainAndAgainKeepsItsPlaceAmongThoseUsedLast(t *testing.T) {
	s, often, once := newLRU(1000), new(topic), new(topic)
	s.touch(often, 100)
	s.touch(once, 100)
	if n := testing.AllocsPerRun(100, func() { s.touch(often, 200) }); n != 0 {
		t.Errorf("each time takes %v allocations", n)
	}
	if n := s.size(); n != 300 {
		t.Errorf("%d bytes are kept", n)
	}
	s.limit = 200
	if over := s.touch(often, 10); len(over) != 0 {
		t.Errorf("%d give up what they hold, and there is room", len(over))
	}
	if over := s.touch(new(topic), 50); len(over) != 0 || s.size() != 160 {
		t.Errorf("%d give up what they hold, and %d bytes are kept", len(over), s.size())
	}
	if over := s.touch(new(topic), 50); len(over) != 1 || over[0] != once || once.cached.listed.Load() || !often.cached.listed.Load() {
		t.Error("the one that was used first does not go first")
	}
}

// TestAHistoryThatIsForgottenHoldsNothing: what is not counted any more must not stay either.
func TestAHistoryThatIsForgottenHoldsNothing(t *testing.T) {
	var h history
	for i := range 3 {
		h.add(revision{pos: freshet.Position{Epoch: "a", Version: freshet.Version(i)}, state: content.NewText([]byte("1"))}, fullBounds)
	}
	h.reset()
	for _, r := range h.revisions[:cap(h.revisions)] {
		if r.state != nil {
			t.Error("it holds a document that is gone")
		}
	}
}
