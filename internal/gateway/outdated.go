package gateway

import (
	"context"
	"sync/atomic"
	"time"
)

// outdated is set from a notice until the table was read again. Requests wait for that, so that whoever changed something on
// one node meets the change on every other.
type outdated struct{ read atomic.Pointer[unread] }

// unread is what notices told of and nobody has read yet.
type unread struct {
	since time.Time     // the first of these notices
	done  chan struct{} // closed when it is read, or when another notice came
}

func (o *outdated) set() {
	next := &unread{since: time.Now(), done: make(chan struct{})}
	for {
		old := o.read.Load()
		if old != nil {
			next.since = old.since
		}
		if o.read.CompareAndSwap(old, next) {
			if old != nil {
				close(old.done) // whoever waits goes on waiting for the new one
			}
			return
		}
	}
}

// waiting is what a look that begins now makes up for.
func (o *outdated) waiting() *unread { return o.read.Load() }

func (o *outdated) clear(told *unread) {
	if told != nil && o.read.CompareAndSwap(told, nil) {
		close(told.done)
	}
}

// outdatedPatience is how long after a notice requests wait. A database that is away must not hold up what works without it: neither
// those that come while it is, again and again, nor those that find more notices.
const outdatedPatience = 2 * time.Second

func (o *outdated) wait(ctx context.Context) {
	for {
		told := o.read.Load()
		if told == nil {
			return
		}
		left := outdatedPatience - time.Since(told.since)
		if left <= 0 {
			return
		}
		patience := time.NewTimer(left)
		select {
		case <-told.done:
		case <-patience.C:
		case <-ctx.Done():
			patience.Stop()
			return
		}
		patience.Stop()
	}
}
