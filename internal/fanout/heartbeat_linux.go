package fanout

import "time"

// heartbeats has every connection looked at once in a heartbeat's time.
type heartbeats struct{ wheel }

const (
	beatTicks  = 16 // ticks between heartbeats, at most
	beatSpread = 3  // ticks that one may come early
	minTick    = time.Millisecond
)

func newHeartbeats(every time.Duration, now time.Time) heartbeats {
	return heartbeats{newWheel(max(every/beatTicks, minTick), now)}
}

// wrote notes that a connection was just written to.
func (h *heartbeats) wrote(c *conn) { c.written = h.tick }

// schedule enters a connection by its last write.
func (h *heartbeats) schedule(c *conn) {
	last := c.written + beatTicks
	h.put(c, last-beatSpread, last)
}

// isDue reports whether nothing was written to a connection for so long that it must be given a heartbeat.
func (h *heartbeats) isDue(c *conn) bool { return h.tick-c.written >= beatTicks-beatSpread }

// beat looks at some of the connections that are due, and sends heartbeats to those who were sent nothing else. The others wait for the
// next round: in between, groups with news are served.
func (l *loop) beat() {
	l.heartbeats.advance(l.now)
	for _, c := range l.heartbeats.take(sliceLen) {
		if c.members == nil || c.stall == nil && l.dropVanished(c) {
			continue // gone
		}
		if l.heartbeats.isDue(c) {
			if c.stall == nil {
				l.heartbeat(c)
			}
			l.heartbeats.wrote(c)
		}
		if c.members != nil {
			l.heartbeats.schedule(c)
		}
	}
}

func (l *loop) heartbeat(c *conn) {
	b := c.members.group.heartbeat
	n, ok := l.write(c, b)
	if !ok {
		return
	}
	l.meter.account(c.members, 0, n, len(b))
	l.meter.sent.beats++
	if n < len(b) {
		l.addStall(c, b[n:])
	}
}
