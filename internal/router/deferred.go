package router

import (
	"runtime"
	"sync"

	"github.com/freshet-io/freshet/internal/jsonpatch"
)

// A publication updates filtered feeds only up to a bound: many long filters must not make one publication take seconds. The others
// become stale. A goroutine of the topic updates them, one after another, and only those whose readers took what they had: what
// nobody reads is not made. A reader who asks has a stale feed queued.
//
// While a feed is stale its log ends before the topic's cursor, so nobody may be given that cursor: who is about to updates the
// feed first.

// defaultViewWork is how many changes of items, each counted in every view that shows it, a publication makes itself.
const defaultViewWork = 16 << 10

// freshness is how a filtered feed stands to its topic. It is guarded by Feed.mu, and changed with topic.mu held, except that a reader
// may queue a stale feed.
type freshness uint8

const (
	fresh  freshness = iota
	stale            // and nobody took what there is
	queued           // stale, and in topic.deferred
)

// updateQueue is the stale feeds of a topic that are to be updated, by one goroutine at most. Its lock is taken last of all.
type updateQueue struct {
	mu      sync.Mutex
	feeds   []*Feed
	running bool
}

func (q *updateQueue) push(f *Feed) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.feeds = append(q.feeds, f)
}

// tryStart reports whether the caller has to start the goroutine, which then calls next until that returns nil.
func (q *updateQueue) tryStart() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.feeds) == 0 || q.running {
		return false
	}
	q.running = true
	return true
}

// next returns the feed that waits for longest. nil ends the run.
func (q *updateQueue) next() *Feed {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.feeds) == 0 {
		q.feeds, q.running = nil, false
		return nil
	}
	f := q.feeds[0]
	q.feeds = q.feeds[1:]
	return f
}

func (f *Feed) isStale() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.freshness != fresh
}

func (f *Feed) setFreshness(to freshness) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.freshness = to
}

// postpone makes the feed stale by the newest revision. The caller holds topic.mu.
func (f *Feed) postpone() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.freshness != fresh {
		return
	}
	f.staleFrom, f.freshness = f.topic.log.cursor-1, stale
	if !f.queueIfRead() {
		f.wake() // who can read asks, and has it made
	}
}

// queueIfRead queues a stale feed if its readers took everything there is. The caller holds f.mu, and calls startUpdates without it if
// the feed was queued.
func (f *Feed) queueIfRead() bool {
	if f.freshness != stale || f.log.taken < f.log.head {
		return false
	}
	f.freshness = queued
	f.topic.deferred.push(f)
	return true
}

// startUpdates sees to it that somebody updates the queued feeds.
func (t *topic) startUpdates() {
	if t.deferred.tryStart() {
		go t.runUpdates()
	}
}

func (t *topic) runUpdates() {
	for f := t.deferred.next(); f != nil; f = t.deferred.next() {
		t.router.updating.Lock() // one at a time, whatever the topic: this may take long, and everybody else comes first
		t.mu.Lock()
		f.update()
		t.mu.Unlock()
		t.router.updating.Unlock()
		runtime.Gosched()
	}
}

// update makes a stale feed lead to the newest revision. The caller holds topic.mu.
func (f *Feed) update() {
	if !f.isStale() {
		return
	}
	f.setFreshness(fresh)
	if f.view == nil || f.refs == 0 {
		return
	}
	change := jsonpatch.Change{Kind: jsonpatch.Whole}
	if i := f.topic.log.history.at(f.staleFrom); i >= 0 {
		change = f.changeSince(i)
	}
	f.view.CatchUp()
	f.topic.router.stats.deferred.Add(1)
	f.add(change, nil)
}
