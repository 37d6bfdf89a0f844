package router

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/content"
	"github.com/freshet-io/freshet/internal/fanout"
	"github.com/freshet-io/freshet/internal/jsonpatch"
	"github.com/freshet-io/freshet/internal/trace"
)

// Feed is one variant of a topic: the frames that all its subscribers share. It implements fanout.Feed.
type Feed struct {
	// Static.
	topic   *topic
	variant Variant
	mark    string // of the filter, at the end of every epoch

	// Guarded by topic.mu.
	refs      int
	view      *content.View // of a filtered feed
	full      []byte        // the frame of the whole document at fullAt, for filtered feeds
	fullAt    fanout.Cursor
	caught    map[fanout.Cursor]fanout.Batch // what leads from older cursors to caughtAt
	caughtAt  fanout.Cursor
	caughtIn  int           // bytes of caught that nobody else holds
	ratio     float64       // of the last whole document's frame to what it was before compression
	staleFrom fanout.Cursor // a stale feed leads to what was there then

	// Guarded by mu.
	mu        sync.Mutex
	log       frameLog
	freshness freshness
	watches   map[*func()]struct{}
}

// Subscribe returns the feed of a topic's variant. Close it after use.
func (r *Router) Subscribe(ctx context.Context, topic *freshet.Topic, v Variant) (*Feed, error) {
	if err := v.check(topic); err != nil {
		return nil, err
	}
	t, err := r.hostFresh(ctx, topic)
	if err != nil {
		return nil, err
	}
	// Before anybody relies on it.
	if err := t.presence.enter(func() (func(), error) { return r.grid.Join(ctx, t.id) }); err != nil {
		r.release(t)
		return nil, err
	}
	return t.open(v), nil
}

// Refresh returns once what Begin returns includes everything that was published before the call, on any node; or soon, if
// nobody can tell.
func (f *Feed) Refresh(ctx context.Context) { f.topic.router.refresh(ctx, f.topic) }

// reachPatience is how long a reader waits for a node that is behind it. A lost link to the grid is noticed and mended sooner.
const reachPatience = 10 * time.Second

// Reach returns once the feed includes the event that a reader has seen, perhaps on another node, or there surely never was such
// an event: what Begin returns then does not take the reader back. If this node stays behind, Reach returns an error, and the
// reader is better off elsewhere.
func (f *Feed) Reach(ctx context.Context, lastID string) error {
	ctx, cancel := context.WithTimeout(ctx, reachPatience)
	defer cancel()
	for f.isBehind(lastID) {
		if f.topic.router.grid.Refresh(ctx, f.topic.id) == nil {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			e := freshet.Errorf(freshet.Unavailable, "This server is behind what you have seen; come back in a moment")
			e.RetryAfter = time.Second + rand.N(4*time.Second)
			return e
		}
	}
	return nil
}

// isBehind reports whether the event would be one that this node has yet to hear of.
func (f *Feed) isBehind(lastID string) bool {
	pos, ok := f.position(lastID)
	if !ok {
		return false
	}
	f.topic.mu.Lock()
	defer f.topic.mu.Unlock()
	return pos.Epoch == f.topic.log.pos.Epoch && pos.Version > f.topic.log.pos.Version
}

// Close gives the feed back.
func (f *Feed) Close() {
	f.topic.close(f)
	f.topic.settle()
	f.topic.presence.exit()
	f.topic.router.release(f.topic)
}

func (t *topic) open(v Variant) *Feed {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.audience.feeds[v]
	if f == nil {
		f = &Feed{topic: t, variant: v, mark: v.Filter.Mark(), log: newFrameLog(t.log.cursor)}
		t.audience.add(f, t.log.state)
	}
	f.refs++
	return f
}

func (t *topic) close(f *Feed) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f.refs--; f.refs == 0 {
		t.audience.remove(f, time.Now())
	}
}

func (f *Feed) filtered() bool { return !f.variant.Filter.IsZero() }

// Begin returns what a new subscriber gets first: the one event that leads from the event it last saw to the newest
// document, a snapshot if that is unknown, or nothing while there is no document.
func (f *Feed) Begin(lastID string) fanout.Batch {
	t := f.topic
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.log.state == nil {
		return fanout.Batch{Next: t.log.cursor}
	}
	f.update()
	i := f.place(lastID)
	if i < 0 {
		return f.snapshot()
	}
	at := t.log.history.revisions[i].cursor
	batch := f.catchUp(at)
	if batch.Events == 0 && f.view == nil && at < t.log.cursor {
		// The document changed and changed back. The reader has it, but not by its present name.
		batch.Bytes, batch.Events, batch.Full = f.encode(patchEvent, []byte("[]")), 1, f.wholeLen()
	}
	return batch
}

// place is the index of the revision that an event of this feed led to, or -1 if its id is not known here.
func (f *Feed) place(lastID string) int {
	pos, ok := f.position(lastID)
	if !ok {
		return -1
	}
	return f.topic.log.history.position(pos)
}

// position is where in the topic an event of this feed was.
func (f *Feed) position(lastID string) (pos freshet.Position, ok bool) {
	if pos, ok = freshet.ParsePosition(lastID); ok {
		pos.Epoch, ok = strings.CutSuffix(pos.Epoch, f.mark)
	}
	return pos, ok
}

// Since implements fanout.Feed. Readers that are only a little behind get the very frames they missed; those beyond the log
// get one event.
func (f *Feed) Since(cursor fanout.Cursor) fanout.Batch {
	f.mu.Lock()
	batch, ok := f.log.since(cursor)
	queued := f.queueIfRead()
	f.mu.Unlock()
	if queued {
		f.topic.startUpdates()
	}
	if ok {
		return batch
	}
	f.topic.mu.Lock()
	defer f.topic.mu.Unlock()
	batch = f.catchUp(cursor)
	batch.Merged = true
	return batch
}

// Watch implements fanout.Feed.
func (f *Feed) Watch(changed func()) (stop func()) {
	key := &changed
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.watches == nil {
		f.watches = make(map[*func()]struct{})
	}
	f.watches[key] = struct{}{}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.watches, key)
	}
}

// Bounds of the catch-up events that are kept, in case more readers are behind by the same distance.
const (
	maxCaught      = 256
	maxCaughtBytes = 256 << 10
)

// catchUp is one event from cursor to the newest version. The caller holds topic.mu.
func (f *Feed) catchUp(cursor fanout.Cursor) fanout.Batch {
	t := f.topic
	f.update()
	if t.log.state == nil || cursor >= t.log.cursor {
		return fanout.Batch{Next: t.log.cursor}
	}
	if f.variant.Mode == Snapshots {
		return f.snapshot()
	}
	if f.caughtAt != t.log.cursor {
		f.caught, f.caughtAt, f.caughtIn = nil, t.log.cursor, 0
	}
	if batch, ok := f.caught[cursor]; ok {
		return batch
	}
	batch := f.compose(cursor)
	if f.caught == nil {
		f.caught = make(map[fanout.Cursor]fanout.Batch)
	}
	if len(f.caught) < maxCaught && f.caughtIn <= maxCaughtBytes {
		f.caught[cursor] = batch
	}
	return batch
}

// compose makes the event that catchUp returns.
func (f *Feed) compose(cursor fanout.Cursor) fanout.Batch {
	t := f.topic
	i := t.log.history.at(cursor)
	if i < 0 {
		return f.snapshot()
	}
	change := f.changeSince(i)
	switch change.Kind {
	case jsonpatch.Same:
		return fanout.Batch{Next: t.log.cursor}
	case jsonpatch.Whole:
		return f.snapshot()
	}
	frame := f.encode(patchEvent, change.Patch)
	f.caughtIn += len(frame)
	return fanout.Batch{Bytes: frame, Events: 1, Full: f.wholeLen(), Next: t.log.cursor}
}

func (f *Feed) changeSince(i int) jsonpatch.Change {
	t := f.topic
	if f.view == nil {
		return t.since(i)
	}
	old, ok := t.log.history.revisions[i].state.(*content.Items)
	if !ok {
		return jsonpatch.Change{Kind: jsonpatch.Whole}
	}
	return content.FilteredDiff(old, t.log.state.(*content.Items), f.variant.Filter.content())
}

// snapshot is the whole document as one event. The caller holds topic.mu, and there is a document.
func (f *Feed) snapshot() fanout.Batch {
	t := f.topic
	batch := fanout.Batch{Events: 1, Next: t.log.cursor}
	if f.view == nil {
		batch.Bytes = t.frames.get(frameKey{f.variant.Event, f.variant.Compressed}, func() []byte {
			return f.encode(f.variant.Event, t.log.state.Bytes())
		})
		f.learnRatio(len(batch.Bytes))
		t.recount()
		return batch
	}
	if f.full == nil || f.fullAt != t.log.cursor {
		f.full, f.fullAt = f.encode(f.variant.Event, f.view.Bytes()), t.log.cursor
		f.learnRatio(len(f.full))
	}
	batch.Bytes = f.full
	return batch
}

// add appends the frame of the newest revision, whose delivery somebody may follow. The caller holds topic.mu.
func (f *Feed) add(change jsonpatch.Change, delivery *trace.Delivery) {
	t := f.topic
	if change.Kind == jsonpatch.Same {
		return // another version of the same document: whoever has one has the other
	}
	var frame []byte
	switch {
	case f.variant.Mode == Snapshots || change.Kind == jsonpatch.Whole:
		frame = f.snapshot().Bytes
	case f.view != nil:
		frame = f.encode(patchEvent, change.Patch)
	default:
		frame = t.frames.get(frameKey{patchEvent, f.variant.Compressed}, func() []byte {
			return f.encode(patchEvent, change.Patch)
		})
	}
	whole := f.wholeLen()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log.append(t.log.cursor, frame, whole)
	if delivery != nil {
		f.log.delivery, f.log.followed = delivery, t.log.cursor
	}
	f.wake()
}

func (f *Feed) wake() {
	for changed := range f.watches {
		(*changed)()
	}
}
