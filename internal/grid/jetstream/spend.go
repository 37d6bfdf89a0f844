package jetstream

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Counting every request of a busy limit in the stream would cost each one a round trip. A node therefore takes several at
// once while the limit is far, and one by one when it is near; what it did not use it gives back soon. The sum in the stream
// is what was used and what is in hand together, so it never says less than was used: a limit is never exceeded.

const (
	// takeShare is which part of what is left a node takes at once.
	takeShare = 64
	maxTake   = 512
	// giveBack is how long a node keeps what it does not use.
	giveBack = 250 * time.Millisecond
)

// purses hold what this node took of counters.
type purses struct {
	mu  sync.Mutex
	all map[string]*purse
}

type purse struct {
	counter string
	ttl     time.Duration

	mu      sync.Mutex
	next    int64 // the number of the next one
	left    int64
	known   int64 // the sum when it was last looked at
	refill  chan struct{}
	err     error // of the last refill
	touched bool  // since the timer last looked
	waiting int64
	over    bool // given back: whoever still has it gets another one
}

func (p *purses) get(counter string, ttl time.Duration) (found *purse, made bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	found = p.all[counter]
	if found == nil {
		found = &purse{counter: counter, ttl: ttl}
		if p.all == nil {
			p.all = make(map[string]*purse)
		}
		p.all[counter] = found
		return found, true
	}
	return found, false
}

func (p *purses) drop(old *purse) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all[old.counter] == old {
		delete(p.all, old.counter)
	}
}

// Spend implements grid.Counters.
func (n *Grid) Spend(ctx context.Context, counter string, limit int64, ttl time.Duration) (int64, error) {
	for {
		p, made := n.purses.get(counter, ttl)
		if made && !n.spawn(func() { n.tidy(p) }) {
			return 0, errClosed
		}
		if sum, err := n.spendFrom(ctx, p, limit); !errors.Is(err, errOver) {
			return sum, err
		}
	}
}

// errOver says that a purse was given back.
var errOver = errors.New("grid: the purse is over")

// spendFrom takes one out of a purse.
func (n *Grid) spendFrom(ctx context.Context, p *purse, limit int64) (sum int64, err error) {
	p.mu.Lock()
	for {
		if p.over {
			p.mu.Unlock()
			return 0, errOver
		}
		p.touched = true
		if p.left > 0 {
			number := p.next
			p.next++
			p.left--
			p.mu.Unlock()
			return number, nil
		}
		p.waiting++
		refill := p.refill
		if refill == nil {
			refill = make(chan struct{})
			p.refill = refill
			take := p.waiting + min(max(0, (limit-p.known)/takeShare), maxTake)
			if !n.spawn(func() { n.take(p, take, refill) }) {
				p.refill = nil
				p.mu.Unlock()
				return 0, errClosed
			}
		}
		p.mu.Unlock()
		select {
		case <-refill:
		case <-ctx.Done():
			return 0, unknown(ctx.Err())
		}
		p.mu.Lock()
		if p.err != nil && p.left == 0 {
			err := p.err
			p.mu.Unlock()
			return 0, err
		}
	}
}

// take takes more out of the counter.
func (n *Grid) take(p *purse, amount int64, done chan struct{}) {
	sum, err := n.Add(n.ctx, p.counter, amount, p.ttl)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err, p.refill, p.waiting = err, nil, 0
	if err == nil {
		p.next, p.left, p.known = sum-amount+1, amount, sum
	}
	close(done)
}

// tidy gives back what is not used, and ends with the purse.
func (n *Grid) tidy(p *purse) {
	for {
		stopped := !pause(n.ctx, giveBack)
		p.mu.Lock()
		if p.touched && !stopped {
			p.touched = false
			p.mu.Unlock()
			continue
		}
		if p.refill != nil && !stopped {
			p.mu.Unlock()
			continue
		}
		rest := p.left
		p.left, p.over = 0, true
		n.purses.drop(p)
		p.mu.Unlock()
		if rest > 0 {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(n.ctx), tryTimeout)
			_, _ = n.addBatch(ctx, n.valueSubject("count", p.counter), []*addition{{delta: -rest, ttl: p.ttl}}) // lost, it expires with the counter
			cancel()
		}
		return
	}
}
