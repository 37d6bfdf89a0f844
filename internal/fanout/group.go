package fanout

import (
	"sync"
	"time"

	"github.com/freshet-io/freshet/internal/sse"
)

// Group is a set of subscribers that read the same feed in the same encoding and end together.
type Group struct {
	// Tag is whatever the caller wants to find with the group again. Sent is told, from any goroutine, what members were sent
	// since the last time; it must not block. Set both before the first member comes; nil is nobody.
	Tag  any
	Sent func(Sent)

	// Static after NewGroup.
	feed       Feed
	left       func()
	compressed bool
	heartbeat  []byte
	stop       func()

	loopGroups // members that event loops own

	// Guarded by mu.
	mu       sync.Mutex
	changed  *change       // the next one; nil while nobody waits
	ended    chan struct{} // closed by End
	final    []byte        // set before ended is closed
	portable map[*portable]struct{}
}

// NewGroup returns a group without members. left is called, from any goroutine, once for every stream that was served
// for the group; it must not block. compressed says that the feed's bytes are deflate segments, so that heartbeats
// and last words must be too.
func (f *Fanout) NewGroup(feed Feed, compressed bool, left func()) *Group {
	g := &Group{feed: feed, left: left, compressed: compressed, heartbeat: []byte(sse.Heartbeat), ended: make(chan struct{})}
	if compressed {
		g.heartbeat = sse.AppendSegment(nil, g.heartbeat)
	}
	g.initLoops(f)
	g.stop = feed.Watch(g.wake)
	return g
}

// End sends every member, present and future, a last frame and closes it.
func (g *Group) End(frame []byte) {
	g.mu.Lock()
	select {
	case <-g.ended:
		g.mu.Unlock()
		return
	default:
	}
	g.final = frame
	if g.compressed {
		g.final = sse.AppendSegment(nil, frame)
	}
	close(g.ended)
	for p := range g.portable {
		p.hurry() // it may be waiting for a reader that takes nothing
	}
	g.mu.Unlock()
	g.wakeLoops()
}

// enter and exit add and remove a member with a goroutine.
func (g *Group) enter(p *portable) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.portable == nil {
		g.portable = make(map[*portable]struct{})
	}
	g.portable[p] = struct{}{}
}

func (g *Group) exit(p *portable) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.portable, p)
}

// Close takes the group off its feed. It must have no members.
func (g *Group) Close() { g.stop() }

// wake runs in the goroutine of whoever published.
func (g *Group) wake() {
	g.mu.Lock()
	if g.changed != nil {
		g.changed.at = time.Now()
		close(g.changed.told)
		g.changed = nil
	}
	g.mu.Unlock()
	g.wakeLoops()
}

// change is something that happens to a feed.
type change struct {
	told chan struct{} // closed when it has happened
	at   time.Time     // when; set before
}

// since is when it happened, or zero if it did not yet.
func (c *change) since() time.Time {
	select {
	case <-c.told:
		return c.at
	default:
		return time.Time{}
	}
}

// change returns the next change. Take it before asking the feed, or miss one.
func (g *Group) change() *change {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.changed == nil {
		g.changed = &change{told: make(chan struct{})}
	}
	return g.changed
}

// isEnded returns the last frame once the group has ended.
func (g *Group) isEnded() ([]byte, bool) {
	select {
	case <-g.ended:
		return g.final, true
	default:
		return nil, false
	}
}
