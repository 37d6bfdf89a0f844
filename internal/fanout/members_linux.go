package fanout

import (
	"sync/atomic"
	"time"
)

// loopGroups is the part of a group that event loops own, one members per loop.
type loopGroups struct {
	members []members
}

// members are the subscribers of a group on one loop, and the pass over them.
type members struct {
	group *Group
	loop  *loop
	count atomic.Int32 // of the list, for others to see whether waking the loop is worth it

	// Guarded by loop.inbox.mu.
	noted   bool      // the inbox knows that the feed changed
	notedAt time.Time // since when

	// Owned by loop.run.
	memberList
	pacer
	serving bool // in scheduler.queue
	waiting bool // in scheduler.waiting
	again   bool // something changed since the pass began

	sent     Sent      // since the loop last reported
	news     time.Time // when that came which the next pass will bring; zero: nothing that is measured
	bringing time.Time // the same of the pass under way
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
			m.loop.inbox.addNews(m, !m.loop.f.unmeasured)
		}
	}
}

// beginPass begins a pass over the group.
func (m *members) beginPass(now time.Time) {
	m.serving, m.next = true, 0
	m.bringing, m.news = m.news, time.Time{}
	if m.isPaced() {
		m.pacer.begin(now, time.Duration(len(m.conns))*m.loop.f.loops.pace)
	}
}

// endPass ends it.
func (m *members) endPass(now time.Time) {
	m.serving = false
	if m.isPaced() {
		m.pacer.end(now)
	}
}

// isPaced reports whether there is time between two passes over the group.
func (m *members) isPaced() bool { return len(m.conns) >= fewConns && m.loop.f.loops.pace >= 0 }

// mustWait reports whether no pass is under way and none may begin yet.
func (m *members) mustWait(now time.Time) bool { return !m.serving && m.notBefore.After(now) }

// addNews notes since when the next pass has something to bring.
func (m *members) addNews(at time.Time) {
	if m.news.IsZero() {
		m.news = at
	}
}

func (m *members) add(c *conn) {
	m.memberList.add(c)
	m.count.Store(int32(len(m.conns)))
}

func (m *members) remove(c *conn) {
	m.memberList.remove(c)
	m.count.Store(int32(len(m.conns)))
}

// memberList is a list that a pass goes through while members come and go. Those before next were served in this pass, the others
// were not, and removing one keeps it so.
type memberList struct {
	conns []*conn
	next  int
}

func (l *memberList) add(c *conn) {
	c.index = int32(len(l.conns))
	l.conns = append(l.conns, c)
}

func (l *memberList) remove(c *conn) {
	i := int(c.index)
	if i < l.next {
		l.next--
		l.move(l.next, i)
		i = l.next
	}
	last := len(l.conns) - 1
	if i != last { // otherwise the last one has just moved
		l.move(last, i)
	}
	l.conns[last] = nil
	l.conns = l.conns[:last]
	if last == 0 {
		l.conns = nil // the list may have been long
	}
}

func (l *memberList) move(from, to int) {
	l.conns[to] = l.conns[from]
	l.conns[to].index = int32(to)
}

// isDone reports whether the pass has reached the end.
func (l *memberList) isDone() bool { return l.next >= len(l.conns) }
