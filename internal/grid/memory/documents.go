package memory

import (
	"context"
	"sync"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
)

// Documents keeps the newest documents in memory.
type Documents struct {
	// Static after NewDocuments.
	ttl     time.Duration
	account func(bytes int64)
	epochs  *grid.Epochs

	// Guarded by mu, which is taken before a slot's own lock only to count references, never while one is held.
	mu     sync.Mutex
	slots  map[string]*slot
	closed bool
}

// slot is one topic. It exists while it has a document, a watch, or a call in progress.
type slot struct {
	refs int // guarded by Documents.mu

	mu       sync.Mutex // held while watches are called: that makes their order the order of Puts
	doc      grid.Document
	size     int64 // of doc, as it was told to Documents.account
	outcomes grid.Outcomes
	watches  map[*watch]struct{}
	expiry   *time.Timer
}

type watch struct{ changed func(grid.Document) }

// NewDocuments returns an empty engine.
func NewDocuments(opts Options) *Documents {
	return &Documents{ttl: opts.MessageTTL, account: opts.Account, epochs: grid.NewEpochs(2), slots: make(map[string]*slot)}
}

// Document implements grid.Documents.
func (d *Documents) Document(_ context.Context, topic string) (grid.Document, error) {
	s := d.acquire(topic)
	defer d.release(topic, s)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.doc, nil
}

// Put implements grid.Documents.
func (d *Documents) Put(_ context.Context, topic string, expected freshet.Position, doc grid.Document) (freshet.Position, error) {
	s := d.acquire(topic)
	defer d.release(topic, s)
	s.mu.Lock()
	defer s.mu.Unlock()
	if pos, is := s.outcomes.Find(doc.Once); is {
		return pos, grid.ErrRepeated
	}
	if s.doc.Position != expected || !doc.IsFrom(s.doc.At) {
		return freshet.Position{}, grid.ErrConflict
	}
	doc.Position = d.position(expected, doc.Renewal)
	s.outcomes = s.outcomes.With(&doc, doc.Position)
	s.doc = doc
	d.arm(topic, s)
	s.announce()
	if len(doc.Patch) > maxKeptPatch {
		s.doc.Patch = nil // who comes later gets the document
	}
	d.count(s)
	return doc.Position, nil
}

// Measure implements grid.Documents.
func (d *Documents) Measure(ctx context.Context, topics []string, _ *grid.Lengths) (sum int64, err error) {
	for _, topic := range topics {
		doc, err := d.Document(ctx, topic)
		if err != nil {
			return 0, err
		}
		sum += doc.Counted()
	}
	return sum, nil
}

// Recall implements grid.Documents.
func (d *Documents) Recall(_ context.Context, topic, once string) (freshet.Position, error) {
	s := d.acquire(topic)
	defer d.release(topic, s)
	s.mu.Lock()
	defer s.mu.Unlock()
	pos, _ := s.outcomes.Find(once)
	return pos, nil
}

// Refresh implements grid.Documents. Watches are told inside Put.
func (d *Documents) Refresh(context.Context, string) error { return nil }

// Confirm implements grid.Documents.
func (d *Documents) Confirm(ctx context.Context, topic string, pos freshet.Position) error {
	doc, err := d.Document(ctx, topic)
	if err == nil && doc.Position != pos {
		err = grid.ErrConflict
	}
	return err
}

// Delete implements grid.Documents.
func (d *Documents) Delete(_ context.Context, topic string) error {
	s := d.acquire(topic)
	defer d.release(topic, s)
	s.mu.Lock()
	defer s.mu.Unlock()
	d.drop(s)
	return nil
}

// Now implements grid.Documents.
func (d *Documents) Now() time.Time { return time.Now() }

// Watch implements grid.Documents.
func (d *Documents) Watch(_ context.Context, topic string, changed func(grid.Document)) (stop func(), err error) {
	w := &watch{changed: changed}
	s := d.acquire(topic)
	defer d.release(topic, s)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watches == nil {
		s.watches = make(map[*watch]struct{})
	}
	s.watches[w] = struct{}{}
	changed(s.doc)
	return func() {
		s := d.acquire(topic)
		defer d.release(topic, s)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watches, w)
	}, nil
}

// Close ends every watch and timer.
func (d *Documents) Close() error {
	d.mu.Lock()
	d.closed = true
	slots := d.slots
	d.slots = make(map[string]*slot)
	d.mu.Unlock()
	for _, s := range slots {
		s.mu.Lock()
		s.watches = nil
		if s.expiry != nil {
			s.expiry.Stop()
		}
		s.mu.Unlock()
	}
	return nil
}

func (d *Documents) acquire(topic string) *slot {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.slots[topic]
	if s == nil {
		s = new(slot)
		d.slots[topic] = s
	}
	s.refs++
	return s
}

// release forgets the slot when nothing is in it. Nobody else can hold its lock then: that needs a reference.
func (d *Documents) release(topic string, s *slot) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s.refs--
	if s.refs == 0 && s.doc.IsZero() && len(s.watches) == 0 && d.slots[topic] == s {
		delete(d.slots, topic)
	}
}

// position is where a document comes that replaces the one at the old position.
func (d *Documents) position(old freshet.Position, renewal bool) freshet.Position {
	switch {
	case old.IsZero():
		return freshet.Position{Epoch: d.epochs.Next(), Version: 1}
	case renewal:
		return old
	}
	return freshet.Position{Epoch: old.Epoch, Version: old.Version + 1}
}

// arm makes sure that a timer runs for the slot's document. A timer that comes too early, because the document was
// replaced meanwhile, arms itself again: so a busy topic does not touch its timer at every publication.
func (d *Documents) arm(topic string, s *slot) {
	if d.ttl > 0 && s.expiry == nil {
		s.expiry = time.AfterFunc(d.left(s), func() { d.expire(topic) })
	}
}

func (d *Documents) left(s *slot) time.Duration { return time.Until(s.doc.At.Add(d.ttl)) }

func (d *Documents) expire(topic string) {
	d.mu.Lock()
	closed := d.closed
	d.mu.Unlock()
	if closed {
		return
	}
	s := d.acquire(topic)
	defer d.release(topic, s)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expiry = nil
	if s.doc.IsZero() {
		return
	}
	if d.left(s) <= 0 {
		d.drop(s)
		return
	}
	d.arm(topic, s)
}

func (d *Documents) drop(s *slot) {
	if s.expiry != nil {
		s.expiry.Stop()
		s.expiry = nil
	}
	if s.doc.IsZero() {
		return
	}
	s.doc, s.outcomes = grid.Document{}, nil
	s.announce()
	d.count(s)
}

const (
	maxKeptPatch = 64 << 10 // so much of a patch is kept with a document
	slotSize     = 512      // what a document takes beside its content, about
)

// count tells how much the document of a slot takes. The caller holds the slot's lock.
func (d *Documents) count(s *slot) {
	if d.account == nil {
		return
	}
	size := int64(0)
	if !s.doc.IsZero() {
		size = slotSize + int64(len(s.doc.Patch))
		if c, ok := s.doc.Content.(grid.Sized); ok {
			size += int64(c.Size())
		} else {
			size += int64(len(s.doc.Content.Bytes()))
		}
	}
	d.account(size - s.size)
	s.size = size
}

func (s *slot) announce() {
	for w := range s.watches {
		w.changed(s.doc)
	}
}
