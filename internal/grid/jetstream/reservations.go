package jetstream

import (
	"context"
	"errors"
	"sync"
	"time"
)

// reservations spend what a limit allows. Counting every request of a busy limit in the stream would cost each one a round trip. A node
// therefore reserves several at once while the limit is far, and one by one when it is near; what it did not use it gives back soon. The
// sum in the stream is what was used and what is reserved together, so it never says less than was used: a limit is never exceeded.
type reservations struct {
	counters *counters
	tasks    *group

	mu  sync.Mutex
	all map[string]*reservation // by counter
}

const (
	// reserveShare is which part of what is left a node reserves at once.
	reserveShare = 64
	maxReserve   = 512
	// giveBackAfter is how long a node keeps what it does not use.
	giveBackAfter = 250 * time.Millisecond
)

// reservation is what this node took of a counter and did not use yet.
type reservation struct {
	counter string
	ttl     time.Duration

	mu      sync.Mutex
	next    int64 // the number of the next one
	left    int64
	known   int64         // the sum when it was last looked at
	refill  chan struct{} // closed after the refill under way; nil if there is none
	err     error         // of the last refill
	touched bool          // since the timer last looked
	waiting int64
	over    bool // given back: whoever still has it gets another one
}

func newReservations(c *counters) *reservations {
	return &reservations{counters: c, tasks: c.tasks, all: make(map[string]*reservation)}
}

// Spend implements grid.Counters.
func (r *reservations) Spend(ctx context.Context, counter string, limit int64, ttl time.Duration) (int64, error) {
	for {
		one, made := r.get(counter, ttl)
		if made && !r.tasks.spawn(func() { r.giveBack(one) }) {
			return 0, errClosed
		}
		if sum, err := r.spendFrom(ctx, one, limit); !errors.Is(err, errOver) {
			return sum, err
		}
	}
}

func (r *reservations) get(counter string, ttl time.Duration) (found *reservation, made bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if found = r.all[counter]; found != nil {
		return found, false
	}
	found = &reservation{counter: counter, ttl: ttl}
	r.all[counter] = found
	return found, true
}

func (r *reservations) drop(old *reservation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all[old.counter] == old {
		delete(r.all, old.counter)
	}
}

// errOver says that a reservation was given back.
var errOver = errors.New("grid: the reservation is over")

// spendFrom takes one out of a reservation.
func (r *reservations) spendFrom(ctx context.Context, from *reservation, limit int64) (sum int64, err error) {
	from.mu.Lock()
	for {
		if from.over {
			from.mu.Unlock()
			return 0, errOver
		}
		from.touched = true
		if from.left > 0 {
			number := from.next
			from.next++
			from.left--
			from.mu.Unlock()
			return number, nil
		}
		from.waiting++
		refill := from.refill
		if refill == nil {
			refill = make(chan struct{})
			from.refill = refill
			amount := from.waiting + min(max(0, (limit-from.known)/reserveShare), maxReserve)
			if !r.tasks.spawn(func() { r.reserve(from, amount, refill) }) {
				from.refill = nil
				from.mu.Unlock()
				return 0, errClosed
			}
		}
		from.mu.Unlock()
		select {
		case <-refill:
		case <-ctx.Done():
			return 0, unknown(ctx.Err())
		}
		from.mu.Lock()
		if from.err != nil && from.left == 0 {
			err := from.err
			from.mu.Unlock()
			return 0, err
		}
	}
}

// reserve takes more out of the counter.
func (r *reservations) reserve(more *reservation, amount int64, done chan struct{}) {
	sum, err := r.counters.Add(r.tasks.ctx, more.counter, amount, more.ttl)
	more.mu.Lock()
	defer more.mu.Unlock()
	more.err, more.refill, more.waiting = err, nil, 0
	if err == nil {
		more.next, more.left, more.known = sum-amount+1, amount, sum
	}
	close(done)
}

// giveBack ends a reservation that is not used any more.
func (r *reservations) giveBack(one *reservation) {
	for {
		stopped := !pause(r.tasks.ctx, giveBackAfter)
		one.mu.Lock()
		if one.touched && !stopped {
			one.touched = false
			one.mu.Unlock()
			continue
		}
		if one.refill != nil && !stopped {
			one.mu.Unlock()
			continue
		}
		rest := one.left
		one.left, one.over = 0, true
		r.drop(one)
		one.mu.Unlock()
		if rest > 0 {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(r.tasks.ctx), tryTimeout)
			_, _ = r.counters.addNow(ctx, r.counters.cells.subject(one.counter), -rest, one.ttl) // lost, it expires with the counter
			cancel()
		}
		return
	}
}
