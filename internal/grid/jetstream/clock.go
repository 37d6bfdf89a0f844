package jetstream

import (
	"context"
	"sync/atomic"
	"time"
)

// Nodes have clocks that differ, by hours if somebody set one. When a document was published, and whether its time is over, goes by the
// clock of the NATS servers, which also remove it: a node reads it now and then, and counts on from there by the clock that nobody can set.

// clockEvery is how often the servers' clock is read: clocks that count do not drift far from each other.
const clockEvery = 5 // beats

// blurred is how long an answer may take that tells the time.
const blurred = time.Second

// serverClock is what the servers' clock said, and when that was here.
type serverClock struct {
	there time.Time
	here  time.Time
}

type natsClock struct {
	read  atomic.Pointer[serverClock]
	local func() time.Time // of this machine; static
}

// Now implements grid.Documents.
func (n *Grid) Now() time.Time {
	if c := n.clock.read.Load(); c != nil {
		return c.there.Add(n.clock.local().Sub(c.here))
	}
	return n.clock.local()
}

// readClock asks a stream's leader for the time. Without an answer the last one goes on counting.
func (n *Grid) readClock(ctx context.Context) {
	var answer struct {
		Time time.Time `json:"ts"`
	}
	sent := n.clock.local()
	err := n.api(ctx, "STREAM.INFO."+n.docStreams()[0], nil, &answer)
	if took := n.clock.local().Sub(sent); err == nil && !answer.Time.IsZero() && took < blurred {
		n.clock.read.Store(&serverClock{there: answer.Time, here: sent.Add(took / 2)})
	}
}
