package fanout

import (
	"sync/atomic"
	"time"
)

// loopGroups is the part of a group that event loops own, one members per loop.
type loopGroups struct {
	members []members
}

// members are the subscribers of a group on one loop.
type members struct {
	group *Group
	loop  *loop
	count atomic.Int32 // of conns, for others to see whether waking the loop is worth it

	queued bool      // in loop.dirty; guarded by loop.mu
	since  time.Time // when it was put there; guarded by loop.mu

	// Owned by loop.run.
	conns   []*conn
	next    int  // the next one to be served in this pass
	serving bool // in loop.queue
	again   bool // something changed since the pass began
	paced   bool // in loop.paced

	began     time.Time // the last pass
	notBefore time.Time // of the next pass
	hurry     uint8     // how often the distance between passes is halved
	reached   Cursor    // where the first one was after the last pass

	sent Sent // since the loop last reported

	news     time.Time // when that came which the next pass will bring; zero: nothing that is measured
	bringing time.Time // the same of the pass under way
}

// Bounds of the distance between two passes over a group: what is worth waiting for when publications follow each other
// closely, and what waiting may cost in latency. A few subscribers are quicker served than waited for.
//
// After a long pass there is a rest, a part of the time that it took. Loops that pass over crowds without one leave the processors to
// nobody else, publishers are heard when the runtime's monitor looks for them, and each pass brings so little that the next is due at once.
const (
	minPace  = 2 * time.Millisecond
	maxPace  = 3 * time.Millisecond
	restPart = 4
	maxRest  = time.Millisecond
	fewConns = 16
)

// beginPass begins a pass over the group.
func (m *members) beginPass(now time.Time) {
	m.serving, m.next = true, 0
	m.bringing, m.news = m.news, time.Time{}
	m.began = now
	if m.keepsDistance() {
		pace := time.Duration(len(m.conns)) * m.loop.f.loops.pace
		m.notBefore = now.Add(min(max(pace, minPace), maxPace) >> m.hurry)
	}
}

// endPass ends it.
func (m *members) endPass(now time.Time) {
	m.serving = false
	if m.keepsDistance() {
		rest := min(now.Sub(m.began)/restPart, maxRest) >> m.hurry
		if until := now.Add(rest); until.After(m.notBefore) {
			m.notBefore = until
		}
	}
}

// keepsDistance reports whether there is time between two passes over the group.
func (m *members) keepsDistance() bool { return len(m.conns) >= fewConns && m.loop.f.loops.pace >= 0 }

// A batch within these bounds is worth a write of its own. Waiting for more than the upper one gains nothing, and what does not
// fit into the feed's log any more is merged into one event.
const (
	smallBatch = 24 << 10
	largeBatch = 60 << 10
	maxHurry   = 3
)

// adapt learns from a batch how long to wait for the next one. Only those who were up to date after the last pass have something
// to teach: whoever lags behind them does so for reasons of its own.
func (m *members) adapt(from Cursor, b Batch) {
	if from < m.reached {
		return
	}
	if m.next == 1 { // the first one of this pass
		m.reached = b.Next
	}
	switch {
	case (len(b.Bytes) > largeBatch && b.Events > 1 || b.Merged) && m.hurry < maxHurry:
		m.hurry++
	case len(b.Bytes) < smallBatch && m.hurry > 0 && !b.Merged:
		m.hurry--
	}
}

func (g *Group) initLoops(f *Fanout) {
	g.members = make([]members, len(f.loops.all))
	for i := range g.members {
		g.members[i].group, g.members[i].loop = g, f.loops.all[i]
	}
}

// wakeLoops runs in the goroutine of whoever published.
func (g *Group) wakeLoops() {
	for i := range g.members {
		if m := &g.members[i]; m.count.Load() > 0 {
			m.wake()
		}
	}
}

func (m *members) wake() {
	l := m.loop
	l.mu.Lock()
	fresh := !m.queued
	if fresh {
		m.queued = true
		if !l.f.unmeasured {
			m.since = time.Now()
		}
		l.dirty = append(l.dirty, m)
	}
	l.mu.Unlock()
	if fresh {
		l.wake()
	}
}

func (m *members) add(c *conn) {
	c.index = int32(len(m.conns))
	m.conns = append(m.conns, c)
	m.count.Store(int32(len(m.conns)))
}

// remove takes a member out without losing the place of a pass under way: whoever was served stays before next, whoever was
// not stays behind it.
func (m *members) remove(c *conn) {
	i := int(c.index)
	if i < m.next {
		m.next--
		m.move(m.next, i)
		i = m.next
	}
	last := len(m.conns) - 1
	if i != last { // otherwise the last one has just moved
		m.move(last, i)
	}
	m.conns[last] = nil
	m.conns = m.conns[:last]
	m.count.Store(int32(last))
	if last == 0 {
		m.conns = nil // the crowd may have been large
	}
}

func (m *members) move(from, to int) {
	m.conns[to] = m.conns[from]
	m.conns[to].index = int32(to)
}
