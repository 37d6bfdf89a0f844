package jetstream

import (
	"context"
	"sync/atomic"
	"time"
)

// clock is the time by which documents are published and expire. Nodes have clocks that differ, by hours if somebody set one. So it is the
// clock of the NATS servers, which also remove documents: a node reads it now and then, and counts on from there by the clock that nobody
// can set.
type clock struct {
	stream *stream          // whose leader is asked
	local  func() time.Time // of this machine
	read   atomic.Pointer[reading]
}

// reading is what the servers' clock said, and when that was here.
type reading struct {
	there time.Time
	here  time.Time
}

// readClockEvery is how often the servers' clock is read: clocks that count do not drift far from each other.
const readClockEvery = 5 // beats

// blurred is how long an answer may take that tells the time.
const blurred = time.Second

func (c *clock) now() time.Time {
	if r := c.read.Load(); r != nil {
		return r.there.Add(c.local().Sub(r.here))
	}
	return c.local()
}

// ask reads the servers' clock. Without an answer the last one goes on counting.
func (c *clock) ask(ctx context.Context) {
	var reply struct {
		Time time.Time `json:"ts"`
	}
	sent := c.local()
	err := c.stream.link.call(ctx, "STREAM.INFO."+c.stream.name, nil, &reply)
	if took := c.local().Sub(sent); err == nil && !reply.Time.IsZero() && took < blurred {
		c.read.Store(&reading{there: reply.Time, here: sent.Add(took / 2)})
	}
}

// lifetime is how long documents are kept.
type lifetime struct {
	ttl   time.Duration // 0: for ever
	clock *clock
}

// isOver reports whether what was published at a time has expired.
func (l *lifetime) isOver(at time.Time) bool { return l.ttl > 0 && l.left(at) <= 0 }

// left is how long a document is kept yet that was published at a time. It is of no use without a TTL.
func (l *lifetime) left(at time.Time) time.Duration { return at.Add(l.ttl).Sub(l.clock.now()) }
