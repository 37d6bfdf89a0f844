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
	if !s.alone || s.opts.MaxConnections > 0 || s.draining.Load() {
		return fanout.Stream{}, false
	}
	target := parseTarget(h.Target)
	var q request
	if q.read(h, &target, s.names) != nil || q.longPoll || q.lastID != "" || q.encoding != sse.Identity || q.ask.Signed != nil {
		return fanout.Stream{}, false
	}
	var ok bool
	if q.ask.TopicID, ok = target.topicID(); !ok {
		return fanout.Stream{}, false
	}
	seen := s.audience.seen()
	if !s.catalog.MaySubscribeNow(&q.ask) {
		return fanout.Stream{}, false
	}
	g := s.audience.joinNow(&q, seen)
	if g == nil {
		return fanout.Stream{}, false
	}
	s.connections.Add(1)
	return s.stream(&q, g), true
}

// joinNow is join for whoever cannot wait. It returns nil, and nobody joined, if something is not ready, or if the registry had a
// notice since seen: then the permission may be an old one.
func (r *registry) joinNow(q *request, seen uint64) *group {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.audiences[keyOf(&q.ask)]
	if a == nil || r.count != seen {
		return nil
	}
	g := a.groups[groupKey{q.variant, q.legacy}]
	if g == nil || !g.isReady() || !r.seats.takeFree(a.userID, a.appID) {
		return nil
	}
	r.enter(g)
	return g
}

// isReady reports whether members get what they came for without waiting.
func (g *group) isReady() bool {
	select {
	case <-g.ready:
		return g.err == nil
	default:
		return false
	}
}
