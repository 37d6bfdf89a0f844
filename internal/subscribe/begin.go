package subscribe

import (
	"github.com/freshet-io/freshet/internal/fanout"
	"github.com/freshet-io/freshet/internal/plain"
	"github.com/freshet-io/freshet/internal/sse"
)

// BeginNow implements fanout.DeskHandler. It begins the streams of those who join others: the topic is followed here, and what the
// catalog said of the same key a moment ago still holds. Everything else is left to ServeHTTP: who is the first, who is refused,
// whose account or app is limited, who resumes (comparing documents takes time) and who wants its document compressed (so does that).
func (s *Server) BeginNow(h *plain.Head) (fanout.Stream, bool) {
	if !s.alone || s.draining.Load() {
		return fanout.Stream{}, false
	}
	target := parseRequestTarget(h.Target)
	var q request
	if q.read(h, &target, s.names) != nil || q.longPoll || q.lastID != "" || q.encoding != sse.Identity || q.ask.Signed != nil {
		return fanout.Stream{}, false
	}
	var ok bool
	if q.ask.TopicID, ok = target.topicID(); !ok {
		return fanout.Stream{}, false
	}
	seen := s.registry.rechecker.queue.seen()
	if !s.catalog.MaySubscribeNow(&q.ask) {
		return fanout.Stream{}, false
	}
	g := s.registry.joinNow(&q, seen)
	if g == nil {
		return fanout.Stream{}, false
	}
	return s.stream(&q, g), true
}
