package fanout

import (
	"iter"
	"math/rand/v2"
	"time"
)

// drain ends the connections of a loop in random order, spread over a time.
type drain struct {
	begun bool
	conns []*conn // still to end
	from  time.Time
	until time.Time
	total int // how many there were at the beginning
}

func (d *drain) begin(all iter.Seq[*conn], now time.Time, over time.Duration) {
	d.begun, d.from, d.until = true, now, now.Add(over)
	for c := range all {
		d.conns = append(d.conns, c)
	}
	d.total = len(d.conns)
	rand.Shuffle(d.total, func(i, j int) { d.conns[i], d.conns[j] = d.conns[j], d.conns[i] })
}

// next returns a connection that should be gone by now, or nil.
func (d *drain) next(now time.Time) *conn {
	last := len(d.conns) - 1
	if last < d.keep(now) {
		return nil
	}
	c := d.conns[last]
	d.conns[last] = nil
	d.conns = d.conns[:last]
	return c
}

// keep is how many connections need not be gone yet.
func (d *drain) keep(now time.Time) int {
	left := d.until.Sub(now)
	if left <= 0 {
		return 0
	}
	return int(float64(d.total) * float64(left) / float64(d.until.Sub(d.from)))
}

// isOver reports whether the time is over, and whoever came after the drain began must go as well.
func (d *drain) isOver(now time.Time) bool { return d.begun && now.After(d.until) }

func (l *loop) beginDrain(over time.Duration) {
	l.drain.begin(l.table.all(), l.now, over)
	l.drainSome()
}

// drainSome ends as many connections as should be gone by now.
func (l *loop) drainSome() {
	for c := l.drain.next(l.now); c != nil; c = l.drain.next(l.now) {
		if c.members != nil {
			l.sendAway(c)
		}
	}
	if l.drain.isOver(l.now) {
		for c := range l.table.all() {
			l.sendAway(c)
		}
	}
}

// sendAway ends a connection because this node goes away.
func (l *loop) sendAway(c *conn) {
	if c.stall != nil {
		c.stall.hurry(l.now) // it cannot be told anything before it took what it was sent
		return
	}
	l.finish(c, farewell(c.members.group.compressed))
}
