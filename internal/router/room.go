package router

import (
	"container/list"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/content"
	"github.com/freshet-io/freshet/internal/memory"
)

// What topics hold is counted in one account, against a hard bound. Of it, what can be made again while nobody follows a topic
// (the tape of its document, its history) has a bound of its own, and goes first. What reading and comparing long documents takes
// for a moment is bounded by a semaphore, which also leaves processors for everybody else.

const (
	// smallWork is how many bytes of documents are read and compared without asking anybody: nearly all publications.
	smallWork = 64 << 10
	// workFactor is how many bytes of memory are reckoned for each byte of documents that is read and compared.
	workFactor = 30
	// smallKept is what a topic that nobody follows may keep in any case. The tape of a short document costs less than the
	// bookkeeping, and would be needed again at the next publication.
	smallKept = 8 << 10
	// smallGrowth is by how much a document may grow when there is no room, up to a part of all room: an update of somebody's
	// document must not fail because a number got one more digit.
	smallGrowth  = 4 << 10
	reservedPart = 16
	busyFor      = 2 * time.Second
	fullFor      = 30 * time.Second
)

// A turn is the right to read and compare long documents. Whoever has one waits for no publication: others wait for it while theirs is
// under way. The zero value is that of short ones, who need none.
type turn struct {
	work   *memory.Semaphore
	weight int64 // of what is held
	rests  bool
}

// begin waits until so many bytes of documents may be read and compared, by somebody who has waited since then. end must be called.
func (r *Router) begin(ctx context.Context, owner string, bytes int, since time.Time) (turn, error) {
	if bytes < smallWork || r.work == nil {
		return turn{}, nil
	}
	weight := int64(bytes)
	switch err := r.work.AcquireSince(ctx, owner, weight, since); {
	case errors.Is(err, memory.ErrBusy):
		r.stats.busy.Add(1)
		e := freshet.Errorf(freshet.Unavailable, "Too many long documents are being published at once; try again")
		e.RetryAfter = busyFor
		return turn{}, r.backpressure(e)
	case err != nil:
		return turn{}, err
	}
	return turn{work: r.work, weight: weight}, nil
}

// rest ends the reading and comparing. What was made takes so many bytes until it is stored or refused, which may be long: the grid, or
// who counts for a quota, may not answer.
func (t *turn) rest(bytes int) {
	if t.work == nil || t.rests {
		return
	}
	kept := min(int64(bytes)/workFactor, t.weight)
	t.work.Rest(t.weight, kept)
	t.weight, t.rests = kept, true
}

func (t *turn) end() {
	switch {
	case t.work == nil:
	case t.rests:
		t.work.Wake(t.weight)
	default:
		t.work.Release(t.weight)
	}
}

// tryBegin is begin for those who cannot wait, and can do without.
func (r *Router) tryBegin(bytes int) (end func(), ok bool) {
	if bytes < smallWork || r.work == nil {
		return func() {}, true
	}
	weight := int64(bytes)
	if !r.work.TryAcquire(weight) {
		return nil, false
	}
	return func() { r.work.Release(weight) }, true
}

// workOf is how many bytes of documents a publication has us read and compare.
func (t *topic) workOf(p *Publication) int {
	if t.rules.IsItems() {
		return 2 * len(p.Body) // other items than those published are not looked at
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state == nil {
		return len(p.Body)
	}
	return len(p.Body) + t.state.Len()
}

// makeRoom refuses a state that does not fit in memory in place of the held one. What can be made again goes first.
func (t *topic) makeRoom(held, next content.State) error {
	r := t.router
	growth := int64(content.FoldedSize(next) - content.FoldedSize(held))
	if r.held.Fits(growth) || held != nil && growth <= smallGrowth && r.held.Fits(growth-r.held.Most()/reservedPart) {
		return nil
	}
	fold(r.kept.empty())
	if !r.held.Fits(growth) {
		r.squeeze()
	}
	if r.held.Fits(growth) {
		return nil
	}
	r.stats.full.Add(1)
	e := freshet.Errorf(freshet.Unavailable,
		"The server's memory for documents is used up. Publications that make no document longer still pass; delete topics, or give the server more memory (grid.memory)")
	e.RetryAfter = fullFor
	return r.backpressure(e)
}

// backpressure logs a refusal for lack of memory, so many a second at most: whoever causes it could fill the log with it.
func (r *Router) backpressure(e *freshet.Error) error {
	r.refusals.Log(slog.LevelWarn, "publication refused for lack of memory", "reason", e.Msg)
	e.Logged = true
	return e
}

// squeezeEvery is how often followed topics are asked for what they could do without: each of them has to be looked at.
const squeezeEvery = time.Second

// squeeze has topics give up what can be made again although somebody follows them. They read their documents again at the next
// publication.
func (r *Router) squeeze() {
	r.mu.Lock()
	if time.Since(r.squeezed) < squeezeEvery {
		r.mu.Unlock()
		return
	}
	r.squeezed = time.Now()
	topics := slices.Collect(maps.Values(r.topics))
	r.mu.Unlock()
	for _, t := range topics {
		if !t.mu.TryLock() {
			continue // it settles when it is done
		}
		if t.remaking() > smallKept {
			t.giveUp()
		}
		t.mu.Unlock()
	}
}

// recount counts what the topic holds beside what the grid does. The caller holds t.mu.
func (t *topic) recount() {
	size := 0
	if t.state != nil && !t.letGo {
		size = content.Size(t.state) + t.history.size() + t.frames.size()
		if t.router.gridCounts {
			size -= content.FoldedSize(t.state)
		}
	}
	t.router.held.Add(int64(size - t.counted))
	t.counted = size
}

// remaking is how many bytes of what the topic holds can be made again. The caller holds t.mu.
func (t *topic) remaking() int {
	return content.Size(t.state) - content.FoldedSize(t.state) + t.history.size()
}

// followedFor is how long after its last reader left a topic keeps everything that readers who come back need.
const followedFor = time.Minute

// followedLately reports whether somebody follows the topic, or may come back. The caller holds t.mu.
func (t *topic) followedLately() bool {
	return len(t.feeds) > 0 || !t.left.IsZero() && time.Since(t.left) < followedFor
}

// settle keeps what the topic holds within bounds, after a publication or after its last reader left. The caller holds no lock of a topic.
func (t *topic) settle() {
	t.mu.Lock()
	kept := 0
	if !t.letGo {
		kept = t.remaking()
	}
	switch {
	case kept > smallKept && !t.router.held.Fits(1):
		t.giveUp() // also where readers would have liked it to stay
		kept = 0
	case len(t.feeds) > 0:
		kept = 0
	}
	t.mu.Unlock()
	if kept <= smallKept {
		if t.shelved.Load() {
			t.router.kept.remove(t)
		}
		return
	}
	fold(t.router.kept.put(t, kept))
}

// fold has topics give up what can be made again. One that is busy settles when it is done.
func fold(topics []*topic) {
	for _, t := range topics {
		if t.mu.TryLock() {
			t.fold()
			t.mu.Unlock()
		}
	}
}

// fold gives up what can be made again, unless somebody follows the topic. The caller holds t.mu.
func (t *topic) fold() {
	if len(t.feeds) == 0 {
		t.giveUp()
	}
}

// giveUp gives up what can be made again. The caller holds t.mu.
func (t *topic) giveUp() {
	t.replaceState(content.Fold(t.state))
	t.history.trim(foldedBounds)
	t.frames.reset()
	t.recount()
}

// unfold makes the held state fit to be compared again and again. The caller holds t.mu.
func (t *topic) unfold() {
	t.replaceState(t.rules.Unfold(t.state))
	t.recount()
}

// replaceState replaces the held state by one that says the same, here and in the grid. The caller holds t.mu.
func (t *topic) replaceState(state content.State) {
	if state == nil || state == t.state {
		return
	}
	t.state = state
	t.history.renew(state)
	if t.carried != nil {
		t.carried.replace(state)
	}
}

// A shelf lists the topics that nobody follows and that hold what can be made again, the last used first.
type shelf struct {
	most int

	mu     sync.Mutex
	topics map[*topic]*list.Element
	order  *list.List // of *shelved
	bytes  int
}

type shelved struct {
	topic *topic
	bytes int
}

func newShelf(most int) *shelf {
	return &shelf{most: most, topics: make(map[*topic]*list.Element), order: list.New()}
}

// put makes a topic the last used one. It returns those that have to give up what they hold.
func (s *shelf) put(t *topic, bytes int) (over []*topic) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.topics[t]
	if e == nil {
		e = s.order.PushFront(&shelved{topic: t})
		s.topics[t] = e
		t.shelved.Store(true)
	}
	s.order.MoveToFront(e)
	on := e.Value.(*shelved)
	s.bytes += bytes - on.bytes
	on.bytes = bytes
	if bytes > s.most/4 {
		s.take(t) // it would cost many others
		return []*topic{t}
	}
	for s.bytes > s.most {
		last := s.order.Back().Value.(*shelved).topic
		s.take(last)
		over = append(over, last)
	}
	return over
}

// remove forgets a topic.
func (s *shelf) remove(t *topic) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.take(t)
}

// empty forgets all topics and returns them.
func (s *shelf) empty() (all []*topic) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for t := range s.topics {
		all = append(all, t)
		s.take(t)
	}
	return all
}

func (s *shelf) take(t *topic) {
	if e := s.topics[t]; e != nil {
		s.bytes -= e.Value.(*shelved).bytes
		s.order.Remove(e)
		delete(s.topics, t)
		t.shelved.Store(false)
	}
}

// kept is the total of what is on the shelf.
func (s *shelf) kept() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}
