package jetstream

import (
	"sync"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/nats-io/nats.go"
)

// slot is what this node knows of a topic. It exists while the topic is watched or used.
type slot struct {
	// Static.
	topic   string
	subject string
	stream  *stream
	life    *lifetime

	refs int // guarded by topics.mu

	following sync.Mutex // guards sub; held while the subscription is made
	sub       *nats.Subscription

	refresh singleflight

	mu      sync.Mutex // held while watches are called: that makes their order the order of documents
	head    head
	watches map[*watch]struct{}
	own     map[mark]*grid.Document // writes of this node under way: they need not be read back
	expiry  *time.Timer

	swept    bool      // whether it was compared with the stream since it is followed
	heard    time.Time // when there last were news
	verified uint64    // up to this sequence of the stream, the head is surely the newest
	unheard  uint64    // the newest message that there was no watch to tell of
}

type watch struct{ changed func(grid.Document) }

// adopt makes a message the head and tells the watches. The caller holds mu.
func (s *slot) adopt(rec *record, seq uint64, content grid.Content) {
	before := s.head
	s.head = head{known: true, rec: rec, seq: seq}
	s.heard, s.verified = time.Now(), seq
	s.head.expired = !rec.isTombstone() && s.life.isOver(rec.at)
	if !s.head.none() || !before.none() {
		doc := s.document(content)
		for w := range s.watches {
			w.changed(doc)
		}
	}
	rec.strip()
	s.arm()
}

// document is what watches are told about the head. The caller holds mu.
func (s *slot) document(content grid.Content) grid.Document {
	if s.head.none() {
		return grid.Document{}
	}
	rec := s.head.rec
	doc := grid.Document{Position: rec.pos, Content: content, At: rec.at, Trace: rec.trace}
	if rec.change != changeUnknown && rec.pos.Version > 1 {
		doc.PatchFrom = freshet.Position{Epoch: rec.pos.Epoch, Version: rec.pos.Version - 1}
		if rec.change == changePatched {
			doc.Patch = rec.patch
		}
	}
	return doc
}

// snapshot returns the head for whoever does not hold mu.
func (s *slot) snapshot() head {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.head
}

// distrust has the next sweep compare the topic, whatever was heard or verified.
func (s *slot) distrust() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.swept, s.verified = false, 0
}

// arm sees to it that the document disappears in time. A timer that comes too early, because the document was replaced meanwhile, arms
// itself again: so a busy topic does not touch its timer at every publication. The caller holds mu.
func (s *slot) arm() {
	if s.life.ttl > 0 && s.expiry == nil && !s.head.none() && len(s.watches) > 0 {
		s.expiry = time.AfterFunc(s.life.left(s.head.rec.at), s.expire)
	}
}

// disarm stops the timer. The caller holds mu.
func (s *slot) disarm() {
	if s.expiry != nil {
		s.expiry.Stop()
		s.expiry = nil
	}
}

func (s *slot) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.expiry == nil || s.head.none() {
		return
	}
	s.expiry = nil
	if !s.life.isOver(s.head.rec.at) {
		s.arm()
		return
	}
	s.head.expired = true
	for w := range s.watches {
		w.changed(grid.Document{})
	}
}

// close ends watches and timers.
func (s *slot) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.watches)
	s.disarm()
}
