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

// topic is one topic on this node: what the grid last said, the revisions that led there, and the feeds made from them.
type topic struct {
	// Static.
	id     string
	app    string
	rules  content.Rules
	router *Router

	usage usage // Guarded by Router.mu.

	// Parts with a lock of their own.
	watch     watch
	sequencer sequencer
	presence  presence
	recorded  recordedKeys
	cached    lruEntry
	deferred  updateQueue

	// Guarded by mu.
	mu        sync.Mutex
	log       revisionLog
	audience  audience
	frames    frameCache
	expiry    expiryTimer
	footprint footprint
	lately    Lately
	ended     bool // the grid tells us nothing of it any more
}

func (r *Router) newTopic(ft *freshet.Topic) *topic {
	return &topic{id: ft.ID, app: ft.AppID, rules: r.rules(ft), router: r,
		audience: audience{feeds: make(map[Variant]*Feed)}, footprint: footprint{account: r.memory}}
}

// followTimeout bounds how long the first use of a topic waits for the grid.
const followTimeout = 10 * time.Second

// follow begins to watch the topic in the grid.
func (t *topic) follow(ctx context.Context) (stop func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, followTimeout)
	defer cancel()
	t.sequencer.mu.Lock() // from items that are due to expire
	defer t.sequencer.mu.Unlock()
	stop, err = t.router.grid.Watch(ctx, t.id, t.changed)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sequencer.begin(t.log.pos, time.Now())
	return stop, err
}

// unfollow lets go of everything. Feeds stay readable.
func (t *topic) unfollow() {
	t.watch.end(freshet.Errorf(freshet.Unavailable, "The server is shutting down"))
	t.router.cache.remove(t)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fold()
	t.ended = true // which an expiry under way must know
	t.recount()
	t.expiry.stop()
}

// changed takes what the grid says is the newest document. It may be told the same twice.
func (t *topic) changed(doc grid.Document) {
	t.mu.Lock()
	t.take(doc)
	t.mu.Unlock()
	if carrierOf(doc.Content) == nil {
		t.settle() // whoever publishes here does so when he is done
	}
}

// learn takes a document that a call to the grid brought about or found. If the watch was told of another one since that call began,
// when the cursor was at before, then this one may be gone already, and the watch knows better.
func (t *topic) learn(doc grid.Document, before fanout.Cursor) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.log.cursor == before {
		t.take(doc)
	}
}

// head returns the newest document.
func (t *topic) head() head {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.log.head
}

// The methods below run with mu held.

func (t *topic) take(doc grid.Document) {
	switch {
	case doc.IsZero():
		t.vanish()
	case doc.Position == t.log.pos:
		t.renew(doc)
	case doc.Position.Epoch == t.log.pos.Epoch && doc.Position.Version < t.log.pos.Version:
		// Reads of a cluster may go back in time; we do not.
	default:
		t.advance(doc)
	}
	t.recount()
}

// vanish forgets the document. Subscribers keep what they have; the next document will reach them whole.
func (t *topic) vanish() {
	if t.log.state == nil {
		return
	}
	t.lately.Vanished = time.Now()
	t.log.clear()
	t.frames.reset()
	t.audience.rebuildViews(nil)
}

// renew takes a state that says the same but was published later. The same publication told twice is no such thing; taking its
// state again could only lose what the one here shares with those before it.
func (t *topic) renew(doc grid.Document) {
	if !doc.At.After(t.log.at) {
		return
	}
	state, ok := t.stateOf(doc)
	if !ok {
		t.log.at = doc.At
		return
	}
	if state != t.log.state {
		if delta := t.audience.delta(t.log.state, state); delta != nil {
			t.audience.views.Advance(delta)
		}
		defer t.armExpiry(0)
	}
	t.log.renew(state, doc.At, carrierOf(doc.Content))
}

// advance makes the document the newest revision.
func (t *topic) advance(doc grid.Document) {
	state, ok := t.stateOf(doc)
	if !ok {
		return
	}
	change := t.changeTo(&doc, state)
	var delta *content.Delta
	if doc.Position.Epoch == t.log.pos.Epoch {
		delta = t.audience.delta(t.log.state, state)
	}
	added := change
	if t.leadsHere(&doc) {
		t.log.history.seed(t.log.cursor, doc.PatchFrom)
		added = jsonpatch.Change{Kind: jsonpatch.Patched, Patch: doc.Patch}
	}
	next := head{pos: doc.Position, at: doc.At, learned: time.Now(), state: state}
	t.log.append(next, carrierOf(doc.Content), added, t.bounds())
	t.frames.reset()
	t.deliver(change, delta, t.deliveryOf(&doc))
	t.armExpiry(0)
}

// deliver gives the newest revision to the feeds.
func (t *topic) deliver(change jsonpatch.Change, delta *content.Delta, delivery *trace.Delivery) {
	for _, f := range t.audience.whole {
		f.add(change, delivery)
	}
	if t.rules.IsItems() {
		t.deliverFiltered(delta, delivery)
	}
}

// deliveryOf begins the delivery of a document whose publication is followed, on whichever node that began.
func (t *topic) deliveryOf(doc *grid.Document) *trace.Delivery {
	if doc.Trace == "" || len(t.audience.feeds) == 0 {
		return nil
	}
	d := t.router.tracer.Deliver(trace.ParseParent(doc.Trace))
	if d == nil {
		return nil
	}
	d.Span().Set("freshet.topic", t.id)
	d.Span().Set("freshet.version", doc.Position.String())
	d.Span().SetInt("freshet.variants", int64(len(t.audience.feeds)))
	return d
}

// leadsHere reports whether the first document that this node ever holds tells how it came about. Whoever had the version
// before, from another node, then gets the patch. Items are compared by their states only.
func (t *topic) leadsHere(doc *grid.Document) bool {
	return t.log.cursor == 0 && len(t.audience.feeds) == 0 && !t.rules.IsItems() && doc.Patch != nil && doc.PatchFrom.Epoch == doc.Position.Epoch
}

// changeTo is what leads from the newest state to the document's. The publisher's own patch is used if it fits.
func (t *topic) changeTo(doc *grid.Document, state content.State) jsonpatch.Change {
	switch {
	case t.log.state == nil || doc.Position.Epoch != t.log.pos.Epoch:
		return jsonpatch.Change{Kind: jsonpatch.Whole}
	case doc.PatchFrom != t.log.pos:
		return t.compare(t.log.state, state)
	case doc.Patch == nil:
		return jsonpatch.Change{Kind: jsonpatch.Whole}
	}
	return jsonpatch.Change{Kind: jsonpatch.Patched, Patch: doc.Patch}
}

// bounds are those of the topic's history now. Patches of item topics lead nowhere without their states.
func (t *topic) bounds() historyBounds {
	switch {
	case t.audience.isFollowedLately(time.Now()):
		return fullBounds
	case t.rules.IsItems():
		return foldedBounds
	}
	return thinBounds
}
