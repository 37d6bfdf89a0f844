package router

import (
	"maps"
	"slices"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/content"
	"github.com/freshet-io/freshet/internal/memory"
)

// What topics hold is counted in one account, against a hard bound. Of it, what can be derived again while nobody follows a topic
// (the tape of its document, its history) has a bound of its own, and goes first. What reading and comparing long documents takes
// for a moment is bounded by a semaphore, which also leaves processors for everybody else.

const (
	// smallCache is what a topic that nobody follows may keep in any case. The tape of a short document costs less than the
	// bookkeeping, and would be needed again at the next publication.
	smallCache = 8 << 10
	// smallGrowth is by how much a document may grow when there is no room, up to a part of all room: an update of somebody's
	// document must not fail because a number got one more digit.
	smallGrowth  = 4 << 10
	reservedPart = 16
	fullFor      = 30 * time.Second
)

// makeRoom refuses a state that does not fit in memory in place of the one before. What can be derived again goes first, unless that
// would not do: a document that does not fit in any case must cost nobody else what speeds his publications up.
func (t *topic) makeRoom(prev, next content.State) error {
	r := t.router
	growth := int64(content.FoldedSize(next) - content.FoldedSize(prev))
	if r.memory.Fits(growth) || prev != nil && growth <= smallGrowth && r.memory.Fits(growth-r.memory.Most()/reservedPart) {
		return nil
	}
	if r.memory.Fits(growth - int64(r.cache.size())) {
		r.evict(growth)
	}
	if !r.memory.Fits(growth) {
		r.squeeze(growth)
	}
	if r.memory.Fits(growth) {
		return nil
	}
	r.stats.full.Add(1)
	e := freshet.Errorf(freshet.Unavailable,
		"The server's memory for documents is used up. Publications that make no document longer still pass; delete topics, or give the server more memory (grid.memory)")
	e.RetryAfter = fullFor
	return r.backpressure(e)
}

// evict has topics that nobody follows give up what can be derived, those that were not used for longest first, until there is room.
func (r *Router) evict(growth int64) {
	for !r.memory.Fits(growth) {
		t := r.cache.evictOldest()
		if t == nil {
			return
		}
		fold([]*topic{t})
	}
}

// squeezeEvery is how often followed topics are asked for what they could do without: each of them has to be looked at.
const squeezeEvery = time.Second

// squeeze has topics give up what can be derived although somebody follows them, if that makes room. They read their documents
// again at the next publication.
func (r *Router) squeeze(growth int64) {
	r.mu.Lock()
	if time.Since(r.squeezed) < squeezeEvery {
		r.mu.Unlock()
		return
	}
	r.squeezed = time.Now()
	topics := slices.Collect(maps.Values(r.topics))
	r.mu.Unlock()
	derived := int64(0)
	for _, t := range topics {
		derived += int64(t.spare())
	}
	if !r.memory.Fits(growth - derived) {
		return
	}
	for _, t := range topics {
		if !t.mu.TryLock() {
			continue // it settles when it is done
		}
		if t.log.derived() > smallCache {
			t.foldAnyway()
		}
		t.mu.Unlock()
	}
}

// spare is how many bytes the topic would give up if it were squeezed: none while it is busy.
func (t *topic) spare() int {
	if !t.mu.TryLock() {
		return 0
	}
	defer t.mu.Unlock()
	if derived := t.log.derived(); derived > smallCache {
		return derived + t.frames.size()
	}
	return 0
}

// footprint is what of a topic is counted in the account.
type footprint struct {
	account *memory.Account
	counted int
}

// set makes it so many bytes.
func (f *footprint) set(bytes int) {
	f.account.Add(int64(bytes - f.counted))
	f.counted = bytes
}

// recount counts what the topic holds beside what the grid does. The caller holds t.mu.
func (t *topic) recount() {
	size := 0
	if t.log.state != nil && !t.ended {
		size = t.log.size(t.router.gridCounts) + t.frames.size()
	}
	t.footprint.set(size)
}

// settle keeps what the topic holds within bounds, after a publication or after its last reader left. The caller holds no lock of a topic.
func (t *topic) settle() {
	t.mu.Lock()
	cached := 0
	if !t.ended {
		cached = t.log.derived()
	}
	switch {
	case cached > smallCache && !t.router.memory.Fits(1):
		t.foldAnyway() // also where readers would have liked it to stay
		cached = 0
	case len(t.audience.feeds) > 0:
		cached = 0
	}
	t.mu.Unlock()
	if cached <= smallCache {
		t.router.cache.remove(t)
		return
	}
	fold(t.router.cache.touch(t, cached))
}

// fold has topics give up what can be derived. One that is busy settles when it is done.
func fold(topics []*topic) {
	for _, t := range topics {
		if t.mu.TryLock() {
			t.fold()
			t.mu.Unlock()
		}
	}
}

// fold gives up what can be derived, unless somebody follows the topic. The caller holds t.mu.
func (t *topic) fold() {
	if len(t.audience.feeds) == 0 {
		t.foldAnyway()
	}
}

// foldAnyway gives up what can be derived. The caller holds t.mu.
func (t *topic) foldAnyway() {
	t.log.fold()
	t.frames.reset()
	t.recount()
}

// unfold makes the newest state fit to be compared again and again. The caller holds t.mu.
func (t *topic) unfold() {
	t.log.replace(t.rules.Unfold(t.log.state))
	t.recount()
}
