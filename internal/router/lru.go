package router

import (
	"container/list"
	"sync"
	"sync/atomic"
)

// lru lists the topics that nobody follows and that hold what can be derived from their documents, the last used first. It bounds
// how much they hold together. It does not free anything itself: it returns the topics that have to.
type lru struct {
	limit int // bytes

	mu    sync.Mutex
	order *list.List // of *topic
	bytes int
}

// lruEntry is what the list knows of one topic.
type lruEntry struct {
	listed atomic.Bool // may be read without the lock

	// Guarded by lru.mu.
	element *list.Element
	bytes   int
}

func newLRU(limit int) *lru { return &lru{limit: limit, order: list.New()} }

// touch makes a topic the last used one, with so many bytes. It returns those that have to free theirs.
func (c *lru) touch(t *topic, bytes int) (evicted []*topic) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := &t.cached
	if e.element == nil {
		e.element = c.order.PushFront(t)
		e.listed.Store(true)
	} else {
		c.order.MoveToFront(e.element)
	}
	c.bytes += bytes - e.bytes
	e.bytes = bytes
	if bytes > c.limit/4 {
		c.unlist(t) // it would cost many others
		return []*topic{t}
	}
	for c.bytes > c.limit {
		last := c.order.Back().Value.(*topic)
		c.unlist(last)
		evicted = append(evicted, last)
	}
	return evicted
}

// remove forgets a topic.
func (c *lru) remove(t *topic) {
	if !t.cached.listed.Load() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unlist(t)
}

// evictOldest forgets the topic that was not used for longest and returns it, nil if there is none.
func (c *lru) evictOldest() *topic {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.order.Back()
	if e == nil {
		return nil
	}
	t := e.Value.(*topic)
	c.unlist(t)
	return t
}

// size returns how many bytes the listed topics hold.
func (c *lru) size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes
}

func (c *lru) unlist(t *topic) {
	e := &t.cached
	if e.element == nil {
		return
	}
	c.order.Remove(e.element)
	c.bytes -= e.bytes
	e.element, e.bytes = nil, 0
	e.listed.Store(false)
}
