package grid

import (
	"context"
	"crypto/rand"
	"strconv"
	"sync"
	"time"

	"github.com/freshet-io/freshet"
)

// MemoryOptions are the limits of a memory grid.
type MemoryOptions struct {
	// MessageTTL drops a document that long after its publication. 0 keeps it.
	MessageTTL time.Duration

	// Held, unless nil, is told how many bytes of memory documents take more, or less if negative. It must not block.
	Held func(bytes int64)
}

// Memory is the grid of a single process. It forgets everything at exit.
type Memory struct {
	// Static after NewMemory.
	ttl  time.Duration
	salt string
	held func(bytes int64)

	// Guarded by mu, which is taken before a slot's own lock only to count references, never while one is held.
	mu     sync.Mutex
	slots  map[string]*slot
	epochs int64 // microseconds; the last epoch given out
	closed bool

	presence presence
	notices  listeners[Notice]
	values   values
	answers  answerers
}

// slot is one topic. It exists while it has a document, a watch, or a call in progress.
type slot struct {
	refs int // guarded by Memory.mu

	mu      sync.Mutex // held while watches are called: that makes their order the order of Puts
	doc     Document
	size    int64 // of doc, as it was told to Memory.held
	onces   onces
	watches map[*watch]struct{}
	expiry  *time.Timer
}

type watch struct{ changed func(Document) }

// NewMemory returns an empty grid.
func NewMemory(opts MemoryOptions) *Memory {
	// The clock alone could repeat itself after a restart on a machine whose clock went back.
	salt := rand.Text()[:2]
	return &Memory{
		ttl:      opts.MessageTTL,
		held:     opts.Held,
		salt:     string([]byte{salt[0] | 0x20, salt[1] | 0x20}),
		slots:    make(map[string]*slot),
		presence: presence{joined: make(map[string]int)},
		values:   values{claims: make(map[string]*claim), counters: make(map[string]*counter)},
	}
}

// Document implements Documents.
func (m *Memory) Document(_ context.Context, topic string) (Document, error) {
	s := m.acquire(topic)
	defer m.release(topic, s)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.doc, nil
}

// Put implements Documents.
func (m *Memory) Put(_ context.Context, topic string, expected freshet.Position, doc Document) (freshet.Position, error) {
	s := m.acquire(topic)
	defer m.release(topic, s)
	s.mu.Lock()
	defer s.mu.Unlock()
	if pos, is := s.onces.find(doc.Once); is {
		return pos, ErrRepeated
	}
	if s.doc.Position != expected || !doc.isFrom(s.doc.At) {
		return freshet.Position{}, ErrConflict
	}
	doc.Position = m.position(expected, doc.Renewal)
	s.onces = s.onces.with(&doc, doc.Position)
	s.doc = doc
	m.arm(topic, s)
	s.announce()
	if len(doc.Patch) > maxKeptPatch {
		s.doc.Patch = nil // who comes later gets the document
	}
	m.count(s)
	return doc.Position, nil
}

// Measure implements Documents.
func (m *Memory) Measure(ctx context.Context, topics []string, _ *Lengths) (sum int64, err error) {
	for _, topic := range topics {
		doc, err := m.Document(ctx, topic)
		if err != nil {
			return 0, err
		}
		sum += doc.length()
	}
	return sum, nil
}

// Recall implements Documents.
func (m *Memory) Recall(_ context.Context, topic, once string) (freshet.Position, error) {
	s := m.acquire(topic)
	defer m.release(topic, s)
	s.mu.Lock()
	defer s.mu.Unlock()
	pos, _ := s.onces.find(once)
	return pos, nil
}

// Refresh implements Documents. Watches are told inside Put.
func (m *Memory) Refresh(context.Context, string) error { return nil }

// Confirm implements Documents.
func (m *Memory) Confirm(ctx context.Context, topic string, pos freshet.Position) error {
	doc, err := m.Document(ctx, topic)
	if err == nil && doc.Position != pos {
		err = ErrConflict
	}
	return err
}

// Delete implements Documents.
func (m *Memory) Delete(_ context.Context, topic string) error {
	s := m.acquire(topic)
	defer m.release(topic, s)
	s.mu.Lock()
	defer s.mu.Unlock()
	m.drop(s)
	return nil
}

// Now implements Documents.
func (m *Memory) Now() time.Time { return time.Now() }

// Watch implements Documents.
func (m *Memory) Watch(_ context.Context, topic string, changed func(Document)) (stop func(), err error) {
	w := &watch{changed: changed}
	s := m.acquire(topic)
	defer m.release(topic, s)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watches == nil {
		s.watches = make(map[*watch]struct{})
	}
	s.watches[w] = struct{}{}
	changed(s.doc)
	return func() {
		s := m.acquire(topic)
		defer m.release(topic, s)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watches, w)
	}, nil
}

// Close implements Grid.
func (m *Memory) Close() error {
	m.mu.Lock()
	m.closed = true
	slots := m.slots
	m.slots = make(map[string]*slot)
	m.mu.Unlock()
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

func (m *Memory) acquire(topic string) *slot {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.slots[topic]
	if s == nil {
		s = new(slot)
		m.slots[topic] = s
	}
	s.refs++
	return s
}

// release forgets the slot when nothing is in it. Nobody else can hold its lock then: that needs a reference.
func (m *Memory) release(topic string, s *slot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s.refs--
	if s.refs == 0 && s.doc.IsZero() && len(s.watches) == 0 && m.slots[topic] == s {
		delete(m.slots, topic)
	}
}

// position is where a document comes that replaces the one at the old position.
func (m *Memory) position(old freshet.Position, renewal bool) freshet.Position {
	switch {
	case old.IsZero():
		return freshet.Position{Epoch: m.newEpoch(), Version: 1}
	case renewal:
		return old
	}
	return freshet.Position{Epoch: old.Epoch, Version: old.Version + 1}
}

// newEpoch returns text that no position before it has: lost history must never look like kept history.
func (m *Memory) newEpoch() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.epochs = max(m.epochs+1, time.Now().UnixMicro())
	return strconv.FormatInt(m.epochs, 36) + m.salt
}

// arm makes sure that a timer runs for the slot's document. A timer that comes too early, because the document was
// replaced meanwhile, arms itself again: so a busy topic does not touch its timer at every publication.
func (m *Memory) arm(topic string, s *slot) {
	if m.ttl > 0 && s.expiry == nil {
		s.expiry = time.AfterFunc(m.left(s), func() { m.expire(topic) })
	}
}

func (m *Memory) left(s *slot) time.Duration { return time.Until(s.doc.At.Add(m.ttl)) }

func (m *Memory) expire(topic string) {
	m.mu.Lock()
	closed := m.closed
	m.mu.Unlock()
	if closed {
		return
	}
	s := m.acquire(topic)
	defer m.release(topic, s)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expiry = nil
	if s.doc.IsZero() {
		return
	}
	if m.left(s) <= 0 {
		m.drop(s)
		return
	}
	m.arm(topic, s)
}

func (m *Memory) drop(s *slot) {
	if s.expiry != nil {
		s.expiry.Stop()
		s.expiry = nil
	}
	if s.doc.IsZero() {
		return
	}
	s.doc, s.onces = Document{}, nil
	s.announce()
	m.count(s)
}

const (
	maxKeptPatch = 64 << 10 // so much of a patch is kept with a document
	slotSize     = 512      // what a document takes beside its content, about
)

// count tells how much the document of a slot takes. The caller holds the slot's lock.
func (m *Memory) count(s *slot) {
	if m.held == nil {
		return
	}
	size := int64(0)
	if !s.doc.IsZero() {
		size = slotSize + int64(len(s.doc.Patch))
		if c, ok := s.doc.Content.(Sized); ok {
			size += int64(c.Size())
		} else {
			size += int64(len(s.doc.Content.Bytes()))
		}
	}
	m.held(size - s.size)
	s.size = size
}

func (s *slot) announce() {
	for w := range s.watches {
		w.changed(s.doc)
	}
}
