package jetstream

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/freshet-io/freshet/internal/grid"
)

// counters keeps sums in cells. It coalesces what is added at the same time on this node, so that a counter costs one write at a time
// however many add to it.
type counters struct {
	cells cells
	tasks *group

	mu     sync.Mutex
	queues map[string]*sumQueue
}

// sumQueue is the additions to one counter that wait for a write. It exists while one is under way.
type sumQueue struct{ waiting []*addition }

type addition struct {
	delta int64
	ttl   time.Duration
	done  chan struct{} // closed once the rest is set
	sum   int64
	err   error
}

func newCounters(s *stream) *counters {
	return &counters{cells: cells{stream: s, kind: "count"}, tasks: s.link.tasks, queues: make(map[string]*sumQueue)}
}

// Add implements grid.Counters.
func (c *counters) Add(ctx context.Context, counter string, delta int64, ttl time.Duration) (int64, error) {
	subject := c.cells.subject(counter)
	if delta == 0 {
		found, err := c.cells.read(ctx, subject)
		return found.sum(), err
	}
	a := &addition{delta: delta, ttl: ttl, done: make(chan struct{})}
	c.mu.Lock()
	q := c.queues[subject]
	first := q == nil
	if first {
		q = &sumQueue{}
		c.queues[subject] = q
	}
	q.waiting = append(q.waiting, a)
	c.mu.Unlock()
	// Whoever comes first writes for the others too, who must not fail when he gives up.
	if first && !c.tasks.spawn(func() { c.addUp(subject, q) }) {
		return 0, errClosed
	}
	select {
	case <-a.done:
		return a.sum, a.err
	case <-ctx.Done():
		return 0, unknown(ctx.Err())
	}
}

// addUp writes until nothing waits.
func (c *counters) addUp(subject string, q *sumQueue) {
	for {
		c.mu.Lock()
		batch := q.waiting
		q.waiting = nil
		if len(batch) == 0 {
			delete(c.queues, subject)
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		total, ttl := int64(0), time.Duration(0)
		for _, a := range batch {
			total += a.delta
			ttl = max(ttl, a.ttl)
		}
		sum, err := c.addNow(c.tasks.ctx, subject, total, ttl)
		for _, a := range batch {
			sum += a.delta
			a.sum, a.err = sum, err
			close(a.done)
		}
	}
}

// addNow adds to a counter and returns the sum before it.
func (c *counters) addNow(ctx context.Context, subject string, delta int64, ttl time.Duration) (before int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	found, known := c.cells.recall(subject)
	for try := range 10 * maxTries {
		if !known {
			if found, err = c.cells.read(ctx, subject); err != nil {
				return 0, err
			}
		}
		err := c.cells.replace(ctx, subject, found, strconv.FormatInt(found.sum()+delta, 10), ttl)
		switch {
		case err == nil, errors.Is(err, errOvertaken):
			return found.sum(), nil
		case !errors.Is(err, grid.ErrConflict):
			return 0, err
		}
		known = false
		if !pause(ctx, backoff(min(try, 2))/8) {
			return 0, unknown(ctx.Err())
		}
	}
	return 0, unknown(errors.New("too many nodes add to one counter"))
}

func (c *cell) sum() int64 {
	sum, _ := strconv.ParseInt(c.text, 10, 64) // not set is 0
	return sum
}
