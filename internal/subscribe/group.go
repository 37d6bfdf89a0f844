package subscribe

import (
	"sync"
	"time"

	"github.com/freshet-io/freshet/internal/fanout"
	"github.com/freshet-io/freshet/internal/router"
	"github.com/freshet-io/freshet/internal/usage"
)

// group is the part of an audience that gets the same bytes. It is opened by its first member, while the others wait, ends at most
// once, and is closed when its last member has left.
type group struct {
	// Static after newGroup.
	key      groupKey
	audience *audience
	counter  *usage.Counter // nil: nobody counts
	ready    chan struct{}  // closed once it is open, or failed to open
	over     chan struct{}  // closed when it has ended

	// Set before ready is closed.
	err     error // why it failed to open
	feed    *router.Feed
	source  *sourceFeed // of a polled topic
	waiting *time.Timer // for its first document
	streams *fanout.Group

	ending sync.Once
	reason error // why it ended; set before over is closed

	members int // guarded by audiences.mu
}

type groupKey struct {
	variant router.Variant
	legacy  bool // errors look different
}

func newGroup(key groupKey, a *audience, counter *usage.Counter) *group {
	return &group{key: key, audience: a, counter: counter, ready: make(chan struct{}), over: make(chan struct{})}
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

// count tells the meter what members were sent.
func (g *group) count(s fanout.Sent) {
	if s.Bytes > 0 {
		g.counter.Sent(s.Events, s.Bytes, s.Full)
	}
	if s.Prompt > 0 {
		g.counter.Late(s.Lag, s.Prompt)
	}
}

// countMembers tells the meter that members came or went.
func (g *group) countMembers(delta int64) {
	if g.counter != nil {
		g.counter.Connect(delta)
	}
}

// begin is what a new member gets first. One that asks again and again is not told every time that the source fails.
func (g *group) begin(q *request) fanout.Batch {
	switch {
	case g.source == nil:
		return g.feed.Begin(q.lastID)
	case q.longPoll && q.lastID != "":
		return g.source.quiet(q.lastID)
	}
	return g.source.begin(q.lastID)
}

// since is what comes after.
func (g *group) since(c fanout.Cursor) fanout.Batch {
	if g.source == nil {
		return g.feed.Since(c)
	}
	return g.source.Since(c)
}

func (g *group) watch(changed func()) (stop func()) {
	if g.source == nil {
		return g.feed.Watch(changed)
	}
	return g.source.Watch(changed)
}

// close ends what the group holds. It has no members, and gets none any more.
func (g *group) close() {
	if g.counter != nil {
		g.counter.Close()
	}
	if g.err != nil {
		return
	}
	if g.waiting != nil {
		g.waiting.Stop()
	}
	g.streams.Close()
	g.feed.Close()
}
