package fanout

import (
	"math/rand/v2"
	"time"
)

// wheel knows when heartbeats are due. It is coarse and lazy: a subscriber stands in one slot, and only when that comes up is it
// seen whether something was written meanwhile; then it moves to a later one. So writing costs nothing here.
//
// It is coarse also because many heartbeats in a row are cheaper than a few at a time.
type wheel struct {
	every time.Duration // one tick
	began time.Time
	tick  uint32 // how many have passed
	slots [slots][]*conn
	due   []*conn // of ticks that have passed
	next  int     // the first of them that was not looked at yet
}

const (
	beatTicks = 16 // ticks between heartbeats, at most
	spread    = 3  // ticks that one may come early
	slots     = 2 * beatTicks
	minTick   = time.Millisecond
)

func newWheel(heartbeat time.Duration, now time.Time) wheel {
	return wheel{every: max(heartbeat/beatTicks, minTick), began: now}
}

// sleep is how long it is to the next tick.
func (w *wheel) sleep(now time.Time) time.Duration {
	if w.next < len(w.due) {
		return 0
	}
	return max(0, w.began.Add(time.Duration(w.tick+1)*w.every).Sub(now))
}

// add enters a subscriber that was just written to.
func (w *wheel) add(c *conn) {
	c.written = w.tick
	w.put(c)
}

// put enters a subscriber at the last tick that is not too late, or a little earlier where there are clearly fewer. So a
// crowd that was written to at once is spread out, and whoever is spread out keeps the full distance.
func (w *wheel) put(c *conn) {
	last := c.written + beatTicks
	at := last
	for t := last - spread; t != last; t++ {
		if 5*len(w.slots[t%slots]) < 4*len(w.slots[at%slots]) {
			at = t
		}
	}
	w.slots[at%slots] = append(w.slots[at%slots], c)
}

// turn goes on to the tick of this moment.
func (w *wheel) turn(now time.Time) {
	if w.next == len(w.due) {
		clear(w.due)
		w.due, w.next = w.due[:0], 0
	}
	target := uint32(now.Sub(w.began) / w.every)
	// After a long sleep without subscribers there is nothing in the slots that were skipped.
	if target-w.tick > slots {
		w.tick = target - slots
	}
	for w.tick != target {
		w.tick++
		slot := &w.slots[w.tick%slots]
		if len(w.due) == 0 {
			w.due, *slot = *slot, w.due // both keep their memory
			continue
		}
		w.due = append(w.due, *slot...)
		clear(*slot)
		*slot = (*slot)[:0]
	}
}

// take returns some of those who are due. They are good until the next turn.
func (w *wheel) take(most int) []*conn {
	some := w.due[w.next:min(w.next+most, len(w.due))]
	w.next += len(some)
	return some
}

// beat looks after some of those who are due, and sends heartbeats to those who were sent nothing else. The others wait for the
// next round: between them it is the turn of whoever has news.
func (l *loop) beat() {
	w := &l.wheel
	w.turn(l.now)
	for _, c := range w.take(sliceLen) {
		if c.members == nil || c.stall == nil && l.dropVanished(c) {
			continue // gone
		}
		if w.tick-c.written >= beatTicks-spread {
			if c.stall == nil {
				l.heartbeat(c)
			}
			c.written = w.tick
		}
		if c.members != nil {
			w.put(c)
		}
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

// choresEvery is how often it is seen to those who are stalled or leaving.
const choresEvery = 100 * time.Millisecond

func (l *loop) hasChores() bool { return l.leaving.begun || len(l.stalled) > 0 }

func (l *loop) chores() {
	if !l.hasChores() || l.now.Before(l.nextChores) {
		return
	}
	l.nextChores = l.now.Add(choresEvery)
	l.cutStalled()
	l.leaveSome()
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
	if keep == 0 && len(v.conns) == 0 && l.now.After(v.until) {
		for _, c := range l.conns {
			switch {
			case c == nil:
			case c.stall != nil:
				c.stall.hurry(l.now)
			default:
				l.finish(c, farewell(c.members.group.compressed))
			}
		}
	}
}
