package jetstream

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/freshet-io/freshet/internal/grid"
)

// cell is a small value in the stream, as this node last saw or wrote it.
type cell struct {
	seq     uint64
	marks   []mark
	text    string // empty: not set
	expires time.Time
}

// maxCells bounds what a node remembers; forgetting one costs a read.
const maxCells = 100_000

// cells remembers the values that this node wrote, so that renewing a lease or counting on takes one round trip.
type cells struct {
	mu  sync.Mutex
	all map[string]cell
}

func (c *cells) get(subject string) (cell, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.all[subject]
	if ok && !found.expires.IsZero() && !time.Now().Before(found.expires) {
		delete(c.all, subject)
		return cell{}, false
	}
	return found, ok
}

func (c *cells) set(subject string, value cell) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil || len(c.all) >= maxCells {
		c.all = make(map[string]cell)
	}
	c.all[subject] = value
}

func (c *cells) drop(subject string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.all, subject)
}

func (n *Grid) readCell(ctx context.Context, subject string) (cell, error) {
	msg, err := n.last(ctx, subject)
	if err != nil || msg.seq == 0 {
		return cell{}, err
	}
	marks, payload, err := unseal(msg.data)
	return cell{seq: msg.seq, marks: marks, text: string(payload)}, err
}

// writeCell replaces a value that was read. The empty text removes it.
func (n *Grid) writeCell(ctx context.Context, subject string, old cell, text string, ttl time.Duration) (cell, error) {
	m := newMark()
	now := cell{marks: follow(m, old.marks), text: text, expires: time.Now().Add(ttl)}
	w := &write{subject: subject, expected: old.seq, ttl: max(ttl, minTTL), body: seal(now.marks, []byte(text))}
	if len(old.marks) > 0 {
		w.replaces = old.marks[0]
	}
	var err error
	now.seq, err = n.store(ctx, w, m)
	return now, err
}

func (n *Grid) valueSubject(kind, name string) string {
	return n.subject("val", kind, grid.Digest(name))
}

type natsClaims struct{ cells }

func (c *natsClaims) init() {}

// Value implements grid.Values.
func (n *Grid) Value(ctx context.Context, name string) (string, error) {
	c, err := n.readCell(ctx, n.valueSubject("claim", name))
	return c.text, err
}

// Swap implements grid.Values.
func (n *Grid) Swap(ctx context.Context, name, old, new string, ttl time.Duration) (string, error) {
	subject := n.valueSubject("claim", name)
	found, known := n.claims.get(subject)
	if (!known && old != "") || found.text != old {
		var err error
		if found, err = n.readCell(ctx, subject); err != nil {
			return "", err
		}
	}
	for range maxTries {
		if found.text != old || old == new && new == "" {
			return found.text, nil
		}
		now, err := n.writeCell(ctx, subject, found, new, ttl)
		switch {
		case err == nil:
			n.claims.set(subject, now)
			return new, nil
		case errors.Is(err, errOvertaken):
			n.claims.drop(subject)
			return new, nil
		case !errors.Is(err, grid.ErrConflict):
			n.claims.drop(subject)
			return "", err
		}
		n.claims.drop(subject)
		if found, err = n.readCell(ctx, subject); err != nil {
			return "", err
		}
	}
	return found.text, nil
}

// natsCounters adds up what is added at the same time on this node, so that a counter costs one write at a time however
// many add to it.
type natsCounters struct {
	cells

	mu     sync.Mutex
	queues map[string]*sumQueue
}

func (c *natsCounters) init() { c.queues = make(map[string]*sumQueue) }

// sumQueue is the additions to one counter that wait for a write. It exists while one is under way.
type sumQueue struct{ waiting []*addition }

type addition struct {
	delta int64
	ttl   time.Duration
	done  chan struct{} // closed once the rest is set
	sum   int64
	err   error
}

// Add implements grid.Counters.
func (n *Grid) Add(ctx context.Context, counter string, delta int64, ttl time.Duration) (int64, error) {
	subject := n.valueSubject("count", counter)
	if delta == 0 {
		found, err := n.readCell(ctx, subject)
		return found.sum(), err
	}
	a := &addition{delta: delta, ttl: ttl, done: make(chan struct{})}
	c := &n.counters
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
	if first && !n.spawn(func() { n.addUp(n.ctx, subject, q) }) {
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
func (n *Grid) addUp(ctx context.Context, subject string, q *sumQueue) {
	c := &n.counters
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
		sum, err := n.addBatch(ctx, subject, batch)
		for _, a := range batch {
			sum += a.delta
			a.sum, a.err = sum, err
			close(a.done)
		}
	}
}

// addBatch adds everything at once and returns the sum before it.
func (n *Grid) addBatch(ctx context.Context, subject string, batch []*addition) (before int64, err error) {
	total, ttl := int64(0), time.Duration(0)
	for _, a := range batch {
		total += a.delta
		ttl = max(ttl, a.ttl)
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	found, known := n.counters.get(subject)
	for try := range 10 * maxTries {
		if !known {
			if found, err = n.readCell(ctx, subject); err != nil {
				return 0, err
			}
		}
		now, err := n.writeCell(ctx, subject, found, strconv.FormatInt(found.sum()+total, 10), ttl)
		switch {
		case err == nil:
			n.counters.set(subject, now)
			return found.sum(), nil
		case errors.Is(err, errOvertaken):
			n.counters.drop(subject)
			return found.sum(), nil
		case !errors.Is(err, grid.ErrConflict):
			n.counters.drop(subject)
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
