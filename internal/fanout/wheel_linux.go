package fanout

import (
	"math/rand/v2"
	"time"
)

// wheel knows when heartbeats are due. It is coarse and lazy: a subscriber stands in one slot, and only when that comes up is it
// seen whether something was written meanwhile; then it moves to a later one. So writing costs nothing here.
type wheel struct {
	every time.Duration // one tick
	began time.Time
	tick  uint32 // how many have passed
	slots [slots][]*conn
}

const (
	beatTicks = 64 // ticks between heartbeats, at most
	jitter    = beatTicks / 10
	slots     = 2 * beatTicks
	minTick   = time.Millisecond
)

func newWheel(heartbeat time.Duration, now time.Time) wheel {
	return wheel{every: max(heartbeat/beatTicks, minTick), began: now}
}

// sleep is how long it is to the next tick.
func (w *wheel) sleep(now time.Time) time.Duration {
	return max(0, w.began.Add(time.Duration(w.tick+1)*w.every).Sub(now))
}

// add enters a subscriber that was just written to.
func (w *wheel) add(c *conn) {
	c.written = w.tick
	w.put(c, w.due(c))
}

// due is the tick at which the subscriber needs a heartbeat: a little early, and not with those that came together with it.
func (w *wheel) due(c *conn) uint32 { return c.written + beatTicks - rand.Uint32N(jitter) }

func (w *wheel) put(c *conn, tick uint32) {
	slot := &w.slots[tick%slots]
	*slot = append(*slot, c)
}

// tick does what is due: heartbeats, full sockets that stay full, and good-byes.
func (l *loop) tick() {
	w := &l.wheel
	target := uint32(l.now.Sub(w.began) / w.every)
	if target == w.tick {
		return
	}
	// After a long sleep without subscribers there is nothing in the slots that were skipped.
	if target-w.tick > slots {
		w.tick = target - slots
	}
	for w.tick != target {
		w.tick++
		l.beat(w.tick)
	}
	l.cutStalled()
	l.leaveSome()
}

func (l *loop) beat(tick uint32) {
	w := &l.wheel
	slot := w.slots[tick%slots]
	w.slots[tick%slots] = nil // what is put back while it is walked through must not be walked over
	for _, c := range slot {
		if c.members == nil {
			continue // gone meanwhile
		}
		if c.stall == nil && l.dropVanished(c) {
			continue
		}
		if tick-c.written < beatTicks-jitter {
			w.put(c, w.due(c)) // something was written meanwhile
			continue
		}
		if c.stall == nil {
			l.heartbeat(c)
		}
		if c.members != nil {
			c.written = tick
			w.put(c, w.due(c))
		}
	}
	if w.slots[tick%slots] == nil {
		w.slots[tick%slots] = slot[:0] // keep its memory
		clear(slot)
	}
}

func (l *loop) heartbeat(c *conn) {
	b := c.members.group.heartbeat
	n, ok := l.write(c, b)
	if !ok {
		return
	}
	l.account(c.members, 0, n, len(b))
	l.sent.beats++
	if n < len(b) {
		l.addStall(c, b[n:])
	}
}

// cutStalled closes subscribers that took nothing for too long.
func (l *loop) cutStalled() {
	for i := len(l.stalled) - 1; i >= 0; i-- {
		c := l.stalled[i]
		if l.lookAfter(c); c.members == nil {
			continue // vanished; the last one took its place, and was looked at
		}
		if l.now.After(c.stall.until) {
			if !c.stall.fixed {
				l.f.counters.timeout.Add(1)
			}
			l.abort(c)
		}
	}
}

// leaving is a drain under way.
type leaving struct {
	begun bool
	conns []*conn   // in random order
	from  time.Time // the drain's first moment
	until time.Time
	total int
}

func (l *loop) beginLeaving(d time.Duration) {
	v := &l.leaving
	v.begun, v.from, v.until = true, l.now, l.now.Add(d)
	for _, c := range l.conns {
		if c != nil {
			v.conns = append(v.conns, c)
		}
	}
	v.total = len(v.conns)
	rand.Shuffle(v.total, func(i, j int) { v.conns[i], v.conns[j] = v.conns[j], v.conns[i] })
	l.leaveSome()
}

// leaveSome closes as many as should be gone by now, and everybody who came after the drain began.
func (l *loop) leaveSome() {
	v := &l.leaving
	if !v.begun {
		return
	}
	keep := 0
	if left := v.until.Sub(l.now); left > 0 {
		keep = int(float64(v.total) * float64(left) / float64(v.until.Sub(v.from)))
	}
	for len(v.conns) > keep {
		c := v.conns[len(v.conns)-1]
		v.conns = v.conns[:len(v.conns)-1]
		if c.members == nil {
			continue
		}
		if c.stall != nil {
			c.stall.hurry(l.now) // it cannot be told anything before it took what it was sent
			continue
		}
		l.finish(c, farewell(c.members.group.compressed))
	}
	if keep == 0 && len(v.conns) == 0 && l.count > len(l.stalled) && l.now.After(v.until) {
		for _, c := range l.conns {
			if c != nil && c.stall == nil {
				l.finish(c, farewell(c.members.group.compressed))
			}
		}
	}
}
