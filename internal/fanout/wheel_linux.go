package fanout

import "time"

// wheel is a timing wheel: it knows which connections a loop has to look at, and when. A connection stands in exactly one slot.
//
// It is lazy: when a connection becomes due, whoever looks at it decides what is to be done and puts it back at a later tick. So
// writing to a connection costs nothing here. What lies beyond the horizon is put at the horizon and looked at again there.
//
// It is coarse, because many heartbeats in a row are cheaper than a few at a time.
type wheel struct {
	every time.Duration // one tick
	began time.Time
	tick  uint32 // how many have passed
	slots [slots][]*conn
	due   []*conn // of ticks that have passed
	next  int     // the first of them that was not looked at yet
}

// slots is the horizon, in ticks.
const slots = 32

func newWheel(every time.Duration, now time.Time) wheel { return wheel{every: every, began: now} }

// sleep is how long it is to the next tick.
func (w *wheel) sleep(now time.Time) time.Duration {
	if w.next < len(w.due) {
		return 0
	}
	return max(0, w.began.Add(time.Duration(w.tick+1)*w.every).Sub(now))
}

// put enters a connection at the tick last, or a little earlier, but not before first, where there are clearly fewer others. So
// connections that come together are spread out, and whoever is spread out stays at its last tick. Both ticks lie ahead, within the
// horizon.
func (w *wheel) put(c *conn, first, last uint32) {
	at := last
	for t := first; t != last; t++ {
		if 5*len(w.slots[t%slots]) < 4*len(w.slots[at%slots]) {
			at = t
		}
	}
	w.slots[at%slots] = append(w.slots[at%slots], c)
}

// advance goes on to the tick of this moment.
func (w *wheel) advance(now time.Time) {
	if w.next == len(w.due) {
		clear(w.due)
		w.due, w.next = w.due[:0], 0
	}
	present := uint32(now.Sub(w.began) / w.every)
	// After a long sleep without subscribers there is nothing in the slots that were skipped.
	if present-w.tick > slots {
		w.tick = present - slots
	}
	for w.tick != present {
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

// take returns some of those who are due. They are good until the wheel advances.
func (w *wheel) take(most int) []*conn {
	some := w.due[w.next:min(w.next+most, len(w.due))]
	w.next += len(some)
	return some
}
