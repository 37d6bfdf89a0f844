package subscribe

import (
	"cmp"
	"slices"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/fanout"
	"github.com/freshet-io/freshet/internal/sse"
)

// Live lists the open streams of this node that the filter selects, oldest first: limit of them after offset, and how many
// there are in all. Those who poll are not among them: they have no stream.
func (s *Server) Live(filter freshet.ConnectionFilter, offset, limit int64) ([]freshet.Connection, int64) {
	all := s.fanout.Conns(func(streams *fanout.Group) bool {
		g, ok := streams.Tag.(*group)
		return ok && g.audience.matches(filter)
	})
	slices.SortFunc(all, func(a, b fanout.Conn) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID))
	})
	total := int64(len(all))
	offset = min(max(0, offset), total)
	page := all[offset:min(offset+max(0, limit), total)]
	s.fanout.Describe(page)
	list := make([]freshet.Connection, len(page))
	for i := range page {
		list[i] = s.connection(&page[i])
	}
	return list, total
}

// Subscribers is how many follow a topic on this node now, also those who poll.
func (s *Server) Subscribers(topicID string) int64 { return s.registry.audiences.followers(topicID) }

// Connection returns one open stream.
func (s *Server) Connection(id string) (freshet.Connection, bool) {
	all := s.fanout.Conns(func(streams *fanout.Group) bool { _, ok := streams.Tag.(*group); return ok })
	i := slices.IndexFunc(all, func(c fanout.Conn) bool { return c.ID == id })
	if i < 0 {
		return freshet.Connection{}, false
	}
	s.fanout.Describe(all[i : i+1])
	return s.connection(&all[i]), true
}

func (s *Server) connection(c *fanout.Conn) freshet.Connection {
	g := c.Group.Tag.(*group)
	out := freshet.Connection{
		ID: c.ID, Node: s.fanout.Node(), UserID: g.audience.userID, AppID: g.audience.appID, TopicID: g.audience.topic.ID,
		Since: c.Since, Remote: c.Remote, Mode: modeNames[g.key.variant.Mode], Encoding: "identity", Transport: "goroutine",
		Filtered: !g.key.variant.Filter.IsZero(), Bytes: c.Bytes, Lag: g.lag(c.Cursor), Behind: c.Behind,
	}
	if g.key.variant.Compressed {
		out.Encoding = "compressed"
	}
	if c.Loop {
		out.Transport = "loop"
	}
	return out
}

// lag is how many versions a reader at the cursor has not got.
func (g *group) lag(c fanout.Cursor) uint64 {
	if g.source != nil {
		c >>= outageBits
	}
	if head := g.feed.Head(); head > c {
		return uint64(head - c)
	}
	return 0
}

// cutRetry keeps a client that was cut, which comes back by itself, away for a while.
const cutRetry = 30 * time.Second

// Cut ends one stream. It returns false if this node has no such stream.
func (s *Server) Cut(id string) bool {
	c, ok := s.Connection(id)
	if !ok {
		return false
	}
	final := sse.AppendRetry(nil, cutRetry)
	if c.Encoding != "identity" {
		final = sse.AppendSegment(nil, final)
	}
	return s.fanout.Cut(id, final)
}

// Refusals returns with which errors subscribers of a topic were answered, or their streams ended, on this node in the last hour.
func (s *Server) Refusals(topicID string) []freshet.Refusal {
	return s.registry.reports.recent.of(topicID)
}
