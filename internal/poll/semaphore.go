package poll

import (
	"hash/maphash"
	"sync"
)

// waitQueue is a semaphore without its lock: it lets a bounded number in at a time. The others wait in order, without a goroutine.
type waitQueue struct {
	running int
	waiting []*source
}

// acquire reports whether s may go on. If not, release of another will return it. A limit of 0 bounds nothing.
func (q *waitQueue) acquire(s *source, limit int) bool {
	if limit > 0 && q.running >= limit {
		q.waiting = append(q.waiting, s)
		return false
	}
	q.running++
	return true
}

// release hands the place on to the next source, if one waits.
func (q *waitQueue) release() (next *source) {
	if len(q.waiting) == 0 {
		q.running--
		return nil
	}
	next = q.waiting[0]
	q.waiting[0] = nil
	if q.waiting = q.waiting[1:]; len(q.waiting) == 0 {
		q.waiting = nil
	}
	return next
}

// semaphore bounds how many sources of a shard are asking at a time.
type semaphore struct {
	limit int

	mu    sync.Mutex
	queue waitQueue // Guarded by mu.
}

func (m *semaphore) acquire(s *source) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.queue.acquire(s, m.limit)
}

func (m *semaphore) release() *source {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.queue.release()
}

const numHostShards = 64

// hosts has a semaphore for each target host: however many topics have their source there, only so many requests are under
// way at a time.
type hosts struct {
	limit  int
	seed   maphash.Seed
	shards [numHostShards]struct {
		mu     sync.Mutex
		queues map[string]*waitQueue // Guarded by mu. Those in use.
	}
}

func newHosts(limit int) *hosts {
	h := &hosts{limit: limit, seed: maphash.MakeSeed()}
	for i := range h.shards {
		h.shards[i].queues = make(map[string]*waitQueue)
	}
	return h
}

func (h *hosts) acquire(host string, s *source) bool {
	shard := &h.shards[maphash.String(h.seed, host)%numHostShards]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	q := shard.queues[host]
	if q == nil {
		q = new(waitQueue)
		shard.queues[host] = q
	}
	return q.acquire(s, h.limit)
}

func (h *hosts) release(host string) *source {
	shard := &h.shards[maphash.String(h.seed, host)%numHostShards]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	q := shard.queues[host]
	next := q.release()
	if q.running == 0 {
		delete(shard.queues, host)
	}
	return next
}
