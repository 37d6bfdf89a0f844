package jetstream

import (
	"slices"
	"sync"
)

// topics are the slots of the topics that this node uses, by the token of their name.
type topics struct {
	newSlot func(topic string) *slot // static

	mu     sync.Mutex // no other lock is taken while it is held
	slots  map[string]*slot
	closed bool
}

func newTopics(newSlot func(topic string) *slot) *topics {
	return &topics{newSlot: newSlot, slots: make(map[string]*slot)}
}

// acquire returns the slot of a topic, until release.
func (t *topics) acquire(topic string) (*slot, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, errClosed
	}
	key := token(topic)
	s := t.slots[key]
	if s == nil {
		s = t.newSlot(topic)
		t.slots[key] = s
	}
	s.refs++
	return s, nil
}

// release forgets the slot when nobody needs it any more.
func (t *topics) release(s *slot) {
	t.mu.Lock()
	s.refs--
	idle := s.refs == 0
	if idle && t.slots[token(s.topic)] == s {
		delete(t.slots, token(s.topic))
	}
	t.mu.Unlock()
	if !idle {
		return
	}
	s.following.Lock()
	defer s.following.Unlock()
	if s.sub != nil {
		_ = s.sub.Unsubscribe() // fails only if the connection is closed
		s.sub = nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.disarm()
}

// find returns the slot of a topic that is used, or nil. It is by the token of the name, as in subjects.
func (t *topics) find(token string) *slot {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.slots[token]
}

// watched returns the topics of a stream that are watched here.
func (t *topics) watched(stream *stream) []*slot {
	t.mu.Lock()
	all := make([]*slot, 0, len(t.slots))
	for _, s := range t.slots {
		all = append(all, s)
	}
	t.mu.Unlock()
	return slices.DeleteFunc(all, func(s *slot) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.watches) == 0 || s.stream != stream
	})
}

// close returns the slots that there were. Nothing can be acquired any more.
func (t *topics) close() map[string]*slot {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	slots := t.slots
	t.slots = make(map[string]*slot)
	return slots
}
