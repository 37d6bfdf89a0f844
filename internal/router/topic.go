package router

import (
	"context"
	"sync"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/content"
	"github.com/freshet-io/freshet/internal/fanout"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/jsonpatch"
	"github.com/freshet-io/freshet/internal/trace"
)

// topic is one topic on this node: what the grid last said, the history that led there, and the feeds made from it.
type topic struct {
	// Static.
	id     string
	app    string
	rules  content.Rules
	router *Router

	// Guarded by Router.mu.
	users    int
	lastUsed time.Time

	follow sync.Once
	err    error // of following; set once
	stop   func()

	// Held during a publication, one at a time: on one node they would only lose races against each other.
	publishing sync.Mutex
	base       freshet.Position // what the last one was published on, or led to
	moved      time.Time        // when this node learned that another one had published since
	found      time.Time        // when this node came to the topic and read the document that was there; zero: there was none

	presence sync.Mutex // guards the two below
	readers  int
	leave    func()

	// Guarded by mu. cursor counts what happened here; unlike versions it has no gaps and survives epochs.
	mu      sync.Mutex
	cursor  fanout.Cursor
	pos     freshet.Position
	at      time.Time
	learned time.Time     // when this node heard of pos
	state   content.State // nil: no document
	carried *stored       // what the grid holds of it; nil: something else
	counted int           // in Router.held
	left    time.Time     // when the last reader left; zero: there was none
	history history
	feeds   map[Variant]*Feed
	whole   []*Feed        // those without a filter: every revision concerns them
	views   *content.Views // of an item topic with filtered feeds
	byView  map[*content.View][]*Feed
	frames  frameCache
	expiry  *time.Timer // of the oldest item
	letGo   bool        // the grid tells us nothing of it any more
	lately  Lately
	noted   []string // names of publications whose outcome is noted; never changed in place

	cached lruEntry // in Router.cache

	lateMu   sync.Mutex // guards the two below; taken last of all
	late     []*Feed    // to be brought along
	bringing bool       // somebody does

	delivery *trace.Delivery // of the revision being added; nil: nobody follows it
}

// stored carries a state through the grid without a detour over bytes.
type stored struct {
	rules content.Rules

	mu    sync.Mutex
	state content.State
	prev  content.State // of an item topic, while it is being put
}

// Bytes implements grid.Content.
func (s *stored) Bytes() []byte { return s.rules.Store(s.held()) }

// Size implements grid.Sized. It is that of the folded state: the rest comes and goes, and is counted here.
func (s *stored) Size() int { return content.FoldedSize(s.held()) }

// held returns the state itself.
func (s *stored) held() content.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// replace replaces the state by one that says the same.
func (s *stored) replace(state content.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = state
}

func (s *stored) itself() *stored { return s }

// storedItems is the state of an item topic, which can also be carried as the step from the one before.
type storedItems struct{ stored }

// Delta implements grid.Incremental.
func (s *storedItems) Delta() []byte {
	s.mu.Lock()
	prev, state := s.prev, s.state
	s.mu.Unlock()
	return s.rules.StoreDelta(prev, state)
}

// arrived lets go of the state before, which is needed only on the way into the grid.
func (s *stored) arrived() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prev = nil
}

// contentOf is what the grid gets to carry for a state that replaces another one.
func (t *topic) contentOf(state, prev content.State) grid.Content {
	if t.rules.IsItems() {
		return &storedItems{stored{rules: t.rules, state: state, prev: prev}}
	}
	return &stored{rules: t.rules, state: state}
}

// carriedBy returns what carries a state through the grid, nil if it came from another node.
func carriedBy(c grid.Content) *stored {
	if s, ok := c.(interface{ itself() *stored }); ok {
		return s.itself()
	}
	return nil
}

// madeFrom is what a document says of the one at this time that it was made from. A snapshot is the same whenever it was published; items
// tell when each of them was.
func (t *topic) madeFrom(at time.Time) time.Time {
	if t.rules.IsItems() {
		return at
	}
	return time.Time{}
}

// followTimeout bounds how long the first use of a topic waits for the grid.
const followTimeout = 10 * time.Second

func (t *topic) startFollowing(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, followTimeout)
	defer cancel()
	t.publishing.Lock() // from items that are due to expire
	defer t.publishing.Unlock()
	t.stop, err = t.router.grid.Watch(ctx, t.id, t.changed)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.base = t.pos; !t.base.IsZero() {
		t.found = time.Now()
	}
	return err
}

func (t *topic) unfollow() {
	t.follow.Do(func() { t.err = freshet.Errorf(freshet.Unavailable, "The server is shutting down") })
	if t.stop != nil {
		t.stop()
	}
	t.router.cache.remove(t)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fold()
	t.letGo = true // which an expiry under way must know
	t.recount()
	if t.expiry != nil {
		t.expiry.Stop()
		t.expiry = nil
	}
}

// changed takes what the grid says is the newest document. It may be told the same twice.
func (t *topic) changed(doc grid.Document) {
	t.mu.Lock()
	t.take(doc)
	t.mu.Unlock()
	if carriedBy(doc.Content) == nil {
		t.settle() // whoever publishes here does so when he is done
	}
}

// learn takes a document that a call to the grid brought about or found. If the watch was told of another one since that call began,
// when the cursor was at before, then this one may be gone already, and the watch knows better.
func (t *topic) learn(doc grid.Document, before fanout.Cursor) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cursor == before {
		t.take(doc)
	}
}

func (t *topic) take(doc grid.Document) {
	switch {
	case doc.IsZero():
		t.vanish()
	case doc.Position == t.pos:
		t.renew(doc)
	case doc.Position.Epoch == t.pos.Epoch && doc.Position.Version < t.pos.Version:
		// Reads of a cluster may go back in time; we do not.
	default:
		t.advance(doc)
	}
	t.recount()
}

// vanish forgets the document. Subscribers keep what they have; the next document will reach them whole.
func (t *topic) vanish() {
	if t.state == nil {
		return
	}
	t.cursor++
	t.lately.Vanished = time.Now()
	t.pos, t.state, t.at, t.carried = freshet.Position{}, nil, time.Time{}, nil
	t.history.reset()
	t.frames.reset()
	t.rebuildViews()
}

// renew takes a state that says the same but was published later. The same publication told twice is no such thing; taking its
// state again could only lose what the held one shares with those before it.
func (t *topic) renew(doc grid.Document) {
	if !doc.At.After(t.at) {
		return
	}
	state, ok := t.stateOf(doc)
	if ok {
		t.carried = carriedBy(doc.Content)
	}
	if !ok || state == t.state {
		t.at = doc.At
		return
	}
	if delta := t.delta(state); delta != nil {
		t.views.Advance(delta)
	}
	t.state, t.at = state, doc.At
	t.history.renew(state)
	t.armExpiry(0)
}

// advance makes the document the newest revision.
func (t *topic) advance(doc grid.Document) {
	state, ok := t.stateOf(doc)
	if !ok {
		return
	}
	change := t.changeTo(&doc, state)
	var delta *content.Delta
	if doc.Position.Epoch == t.pos.Epoch {
		delta = t.delta(state)
	}
	added := change
	if t.leadsHere(&doc) {
		t.history.seed(t.cursor, doc.PatchFrom)
		added = jsonpatch.Change{Kind: jsonpatch.Patched, Patch: doc.Patch}
	}
	t.cursor++
	t.learned = time.Now()
	t.delivery = t.deliveryOf(&doc)
	t.pos, t.state, t.at, t.carried = doc.Position, state, doc.At, carriedBy(doc.Content)
	t.history.add(revision{cursor: t.cursor, pos: t.pos, state: state, change: added}, t.bounds())
	t.frames.reset()
	for _, f := range t.whole {
		f.add(change)
	}
	t.advanceViews(delta)
	t.delivery = nil
	t.armExpiry(0)
}

// deliveryOf begins the delivery of a document whose publication is followed, on whichever node that began.
func (t *topic) deliveryOf(doc *grid.Document) *trace.Delivery {
	if doc.Trace == "" || len(t.feeds) == 0 {
		return nil
	}
	d := t.router.tracer.Deliver(trace.ParseParent(doc.Trace))
	if d == nil {
		return nil
	}
	d.Span().Set("freshet.topic", t.id)
	d.Span().Set("freshet.version", doc.Position.String())
	d.Span().SetInt("freshet.variants", int64(len(t.feeds)))
	return d
}

// leadsHere reports whether the first document that this node ever holds tells how it came about. Whoever had the version
// before, from another node, then gets the patch. Items are compared by their states only.
func (t *topic) leadsHere(doc *grid.Document) bool {
	return t.cursor == 0 && len(t.feeds) == 0 && !t.rules.IsItems() && doc.Patch != nil && doc.PatchFrom.Epoch == doc.Position.Epoch
}

// changeTo is what leads from the held state to the document's. The publisher's own answer is used if it fits.
func (t *topic) changeTo(doc *grid.Document, state content.State) jsonpatch.Change {
	switch {
	case t.state == nil || doc.Position.Epoch != t.pos.Epoch:
		return jsonpatch.Change{Kind: jsonpatch.Whole}
	case doc.PatchFrom != t.pos:
		return t.compare(t.state, state)
	case doc.Patch == nil:
		return jsonpatch.Change{Kind: jsonpatch.Whole}
	}
	return jsonpatch.Change{Kind: jsonpatch.Patched, Patch: doc.Patch}
}

func (t *topic) stateOf(doc grid.Document) (content.State, bool) {
	if s, ok := doc.Content.(interface{ held() content.State }); ok {
		return s.held(), true
	}
	admitted, ok := t.router.tryAdmit(t.loading(doc.Content))
	if !ok {
		// The grid waits for nobody. What came is told to readers whole, or by the patch that came with it.
		return content.NewText(doc.Content.Bytes()), true
	}
	defer admitted.release()
	state, err := t.load(doc.Content)
	if err != nil {
		// What cannot be read cannot be served; the next publication repairs it.
		t.router.log.Error("document in the grid is unreadable", "topic", t.id, "position", doc.Position.String(), "err", err)
		return nil, false
	}
	return state, true
}

// compare returns the change from one state to another: all of it, if they are long and others are comparing.
func (t *topic) compare(old, new content.State) jsonpatch.Change {
	if old == nil || new == nil {
		return jsonpatch.Change{Kind: jsonpatch.Whole}
	}
	if !t.rules.IsItems() {
		admitted, ok := t.router.tryAdmit(old.Len() + new.Len())
		if !ok {
			return jsonpatch.Change{Kind: jsonpatch.Whole}
		}
		defer admitted.release()
	}
	return t.rules.Diff(old, new)
}

// compareHeld is compare with the held state, for several readers who are behind.
func (t *topic) compareHeld(old content.State) jsonpatch.Change {
	admitted, ok := t.router.tryAdmit(old.Len() + t.state.Len())
	if !ok {
		return jsonpatch.Change{Kind: jsonpatch.Whole}
	}
	defer admitted.release()
	t.unfold()
	return t.rules.Diff(old, t.state)
}

// loading is how many bytes of documents it takes to load the content of a snapshot topic. Items are not compared here, and cannot be
// held without being read.
func (t *topic) loading(c grid.Content) int {
	if _, steps := c.(grid.Steps); steps || t.rules.IsItems() {
		return 0
	}
	return len(c.Bytes())
}

// load makes the state that another node put into the grid.
func (t *topic) load(c grid.Content) (state content.State, err error) {
	steps, ok := c.(grid.Steps)
	if !ok {
		return t.rules.Load(t.state, c.Bytes())
	}
	state = t.state
	if steps.Base != nil {
		if state, err = t.rules.Load(t.state, steps.Base); err != nil {
			return nil, err
		}
	}
	for _, delta := range steps.Deltas {
		if state, err = t.rules.LoadDelta(state, delta); err != nil {
			return nil, err
		}
	}
	return state, nil
}

// expiryRetry is how long items that could not be taken out are left alone.
const expiryRetry = time.Second

// armExpiry sees to it that single items disappear when their time has come, but not before so much has passed.
func (t *topic) armExpiry(after time.Duration) {
	items, ok := t.state.(*content.Items)
	if !ok || t.router.ttl <= 0 || t.expiry != nil || t.letGo {
		return
	}
	if oldest, any := items.Oldest(); any {
		t.expiry = time.AfterFunc(max(after, oldest.Add(t.router.ttl).Sub(t.router.grid.Now())+time.Millisecond), t.expireItems)
	}
}

// expireItems takes out items that nobody published for the TTL. Several nodes may try; one wins, the others learn of it.
func (t *topic) expireItems() {
	t.publishing.Lock()
	defer t.publishing.Unlock()
	t.mu.Lock()
	t.expiry = nil
	items, _ := t.state.(*content.Items)
	pos, at, cursor := t.pos, t.at, t.cursor
	t.mu.Unlock()
	if items == nil {
		return
	}
	var after time.Duration
	now := t.router.grid.Now()
	if !now.Before(at.Add(t.router.ttl)) {
		after = expiryRetry // all of it goes, and the grid is about to say so
	} else if left := items.Expire(now.Add(-t.router.ttl)); left != items {
		change := t.rules.Diff(items, left)
		ctx, cancel := context.WithTimeout(context.Background(), followTimeout)
		defer cancel()
		// The TTL of the whole document goes on counting from the last publication. A failure is made good below.
		doc := grid.Document{Content: t.contentOf(left, items), Length: left.Len(), At: at, Since: t.madeFrom(at), Patch: change.Patch, PatchFrom: pos}
		if _, err := t.put(ctx, nil, pos, cursor, doc); err != nil {
			after = expiryRetry
			t.router.log.Debug("items did not expire", "topic", t.id, "err", err)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.armExpiry(after)
}
