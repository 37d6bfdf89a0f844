package poll

import (
	"hash/maphash"
	"sync"
)

// line lets a bounded number in at a time; the others wait in order, without a goroutine.
type line struct {
	running int
	waiting []*source
}

// enter reports whether s may go on. If not, leave of another will return it.
func (l *line) enter(s *source, limit int) bool {
	if limit > 0 && l.running >= limit {
		l.waiting = append(l.waiting, s)
		return false
	}
	l.running++
	return true
}

// leave gives the place to the next, if there is one.
func (l *line) leave() (next *source) {
	if len(l.waiting) == 0 {
		l.running--
		return nil
	}
	next = l.waiting[0]
	l.waiting[0] = nil
	if l.waiting = l.waiting[1:]; len(l.waiting) == 0 {
		l.waiting = nil
	}
	return next
}

// gate bounds what one part of all sources does at a time.
type gate struct {
	limit int

	mu   sync.Mutex
	line line // Guarded by mu.
}

func (g *gate) enter(s *source) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.line.enter(s, g.limit)
}

func (g *gate) leave() *source {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.line.leave()
}

const numHostShards = 64

// hosts is the budget of each target host: however many topics have their source there, only so many requests are under
// way at a time.
type hosts struct {
	limit  int
	seed   maphash.Seed
	shards [numHostShards]struct {
		mu    sync.Mutex
		lines map[string]*line // Guarded by mu. Those in use.
	}
}

func newHosts(limit int) *hosts {
	h := &hosts{limit: limit, seed: maphash.MakeSeed()}
	for i := range h.shards {
		h.shards[i].lines = make(map[string]*line)
	}
	return h
}

func (h *hosts) enter(host string, s *source) bool {
	shard := &h.shards[maphash.String(h.seed, host)%numHostShards]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	l := shard.lines[host]
	if l == nil {
		l = new(line)
		shard.lines[host] = l
	}
	return l.enter(s, h.limit)
}

func (h *hosts) leave(host string) *source {
	shard := &h.shards[maphash.String(h.seed, host)%numHostShards]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	l := shard.lines[host]
	next := l.leave()
	if l.running == 0 {
		delete(shard.lines, host)
	}
	return next
}
