package jetstream

import (
	"context"
	"sync"
	"time"

	"github.com/freshet-io/freshet/internal/grid"
)

// cell is a small text in a stream, as this node last saw or wrote it.
type cell struct {
	seq     uint64
	marks   []mark
	text    string // empty: not set
	expires time.Time
}

// maxCells bounds what a node remembers; forgetting one costs a read.
const maxCells = 100_000

// cells are the small texts of one kind, each replaced on condition of what was there. They remember what this node wrote, so that
// renewing a lease or counting on takes one round trip.
type cells struct {
	stream *stream
	kind   string // part of their subjects

	mu    sync.Mutex
	known map[string]cell
}

func (c *cells) subject(name string) string {
	return c.stream.link.subject("val", c.kind, grid.Digest(name))
}

// read returns the cell from the leader.
func (c *cells) read(ctx context.Context, subject string) (cell, error) {
	msg, err := c.stream.last(ctx, subject)
	if err != nil || msg.seq == 0 {
		return cell{}, err
	}
	marks, payload, err := unseal(msg.data)
	return cell{seq: msg.seq, marks: marks, text: string(payload)}, err
}

// replace writes a text in place of a cell that was read. The empty text removes it. Its errors are those of stream.store.
func (c *cells) replace(ctx context.Context, subject string, old cell, text string, ttl time.Duration) error {
	m := newMark()
	now := cell{marks: follow(m, old.marks), text: text, expires: time.Now().Add(ttl)}
	w := &write{subject: subject, expected: old.seq, ttl: max(ttl, minTTL), mark: m, body: seal(now.marks, []byte(text))}
	if len(old.marks) > 0 {
		w.replaces = old.marks[0]
	}
	seq, err := c.stream.store(ctx, w)
	if err != nil {
		c.forget(subject)
		return err
	}
	now.seq = seq
	c.remember(subject, now)
	return nil
}

// recall returns a cell that this node wrote, if it was not forgotten since.
func (c *cells) recall(subject string) (cell, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.known[subject]
	if ok && !found.expires.IsZero() && !time.Now().Before(found.expires) {
		delete(c.known, subject)
		return cell{}, false
	}
	return found, ok
}

func (c *cells) remember(subject string, now cell) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil || len(c.known) >= maxCells {
		c.known = make(map[string]cell)
	}
	c.known[subject] = now
}

func (c *cells) forget(subject string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, subject)
}
