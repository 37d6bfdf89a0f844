// Package router makes revisions of publications, and brings every subscriber's cursor to the newest one.
//
// # The log and its readers
//
// Every topic is a log of revisions and every subscriber is a cursor into it. For each topic that this node serves the router holds
// a revisionLog: the newest document (head) and a bounded history of what led there. Each way to receive a topic that somebody uses
// (a [Variant]) is a [Feed]. A revision is compared once, encoded once for each variant and appended to the frame log of each feed.
// A reader who is a little behind gets the very frames he missed. A reader further behind gets one event: a patch from the revision
// he has, or the whole document. There are no queues for single readers, and nobody waits for a slow one.
//
// # How a publication passes
//
// Router.Publish finds the topic, or begins to follow it in the grid (watch). The sequencer lets the publications of this node to one
// topic pass one at a time. Each one reads the head, is admitted if its documents are long (admission), is applied to the head's state
// by package content, makes room in memory, and is put into the grid on the condition that the head still is the newest. If another
// node was faster, the grid refuses, the router reads the newest document and starts over. An idempotency key is held by a record
// in the grid; what a node that died stored without recording it is found in the topic.
//
// The grid tells every node that follows the topic, the publishing one too (topic.changed). Only there a document becomes a revision:
// the patch that came with it is used if it leads on from what this node has, otherwise the node compares the two documents itself.
// A lost message therefore makes a patch span more, and never breaks a chain.
//
// # Filters, time and memory
//
// The audience finds filtered feeds by the items that changed. What would take a publication too long is deferred: such feeds are
// stale until a goroutine of the topic, or a reader, updates them. Single items expire by a timer for the oldest one, whose owner
// publishes what is left.
//
// A topic that nobody follows keeps what can be derived from its document (the tape, the history) only within the bound of an LRU.
// Where documents reach the bound of the account, that goes first, and then it goes on followed topics too. Only then a publication
// is refused.
//
// # Invariants
//
//   - Cursors have no gaps and never go back. A cursor moves exactly when the newest document changes or goes.
//   - A log never goes back within an epoch, whatever order the grid tells documents in.
//   - Every frame leads from the document of the cursor before it, or is whole. Bytes that a reader may have seen never change.
//   - A feed's log ends at the topic's cursor, unless the feed is stale; nobody is given a cursor that his feed does not lead to.
//   - An acknowledged publication was in the grid before, on top of the document that it was applied to.
//   - What this node holds is counted in the account at every change, and a topic that ended counts nothing.
//
// # What it does not do
//
// It does not know who may publish or subscribe, sockets, or HTTP.
//
// # Concurrency
//
// Everything exported is safe for concurrent use. Locks are taken in the order Router.mu, sequencer.mu, topic.mu, Feed.mu, updateQueue.mu.
// While the grid is called, and while an admission is waited for, none of them is held but the sequencer's. The locks of presence,
// recordedKeys, lru and carrier guard a few lines each and are taken last; presence's is also held while the grid is told.
package router

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/content"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/jsonpatch"
	"github.com/freshet-io/freshet/internal/loglimit"
	"github.com/freshet-io/freshet/internal/memory"
	"github.com/freshet-io/freshet/internal/trace"
)

// Options are the limits of a Router. Zero values mean the defaults.
type Options struct {
	Log *slog.Logger

	// MessageTTL is how long an item of an item topic stays without being published again; 0 keeps it. It must be the grid's.
	MessageTTL time.Duration

	// MaxDocument bounds what the publications to a topic may add up to, in bytes; 32 MiB by default.
	MaxDocument int

	// Linger is how long this node stays with a topic after its last use here, for subscribers that come back; 5 minutes by
	// default. All of its history is kept for a minute after its last reader left.
	Linger time.Duration

	// Memory counts what topics hold in memory. Nil: nobody counts, and there is no bound.
	Memory *memory.Account

	// GridCounts says that the grid itself counts the documents that it holds in Memory.
	GridCounts bool

	// CacheBytes bounds what topics that nobody follows hold together although it can be derived from their documents; 64 MiB by
	// default.
	CacheBytes int

	// Work admits whoever reads and compares long documents, by their bytes. Nil: everybody at once.
	Work *memory.Semaphore

	// ViewWork is how many changes of items, each counted in every filtered view that shows it, a publication makes itself before
	// it answers; beyond it the views come later. 16,384 by default.
	ViewWork int

	// Tracer follows publications that somebody else began to follow. Nil: nobody does.
	Tracer *trace.Tracer
}

// DefaultMaxDocument is how long a document may be if Options do not say, in bytes.
const DefaultMaxDocument = 32 << 20

const (
	defaultLinger = 5 * time.Minute
	defaultCache  = 64 << 20
)

// Router holds the topics that are in use on this node.
type Router struct {
	// Static after New.
	grid   grid.Grid
	log    *slog.Logger
	ttl    time.Duration
	linger time.Duration
	limits jsonpatch.Limits
	tracer *trace.Tracer
	stats  stats
	work   *memory.Semaphore
	memory *memory.Account
	cache  *lru

	refusals   *loglimit.Logger // for lack of memory
	gridCounts bool
	viewWork   int

	updating sync.Mutex // held by whoever updates a stale feed; taken before topic.mu

	// Guarded by mu.
	mu      sync.Mutex
	topics  map[string]*topic
	janitor *time.Timer
	closed  bool

	squeezed time.Time // when topics were last asked to do with less
}

// New returns a Router over g. Close it before the grid.
func New(g grid.Grid, opts Options) *Router {
	r := &Router{grid: g, log: opts.Log, ttl: opts.MessageTTL, linger: opts.Linger, tracer: opts.Tracer, topics: make(map[string]*topic),
		work: opts.Work, memory: opts.Memory, gridCounts: opts.GridCounts}
	if r.memory == nil {
		r.memory = memory.NewAccount(0)
	}
	if opts.CacheBytes <= 0 {
		opts.CacheBytes = defaultCache
	}
	r.cache = newLRU(opts.CacheBytes)
	if r.viewWork = opts.ViewWork; r.viewWork <= 0 {
		r.viewWork = defaultViewWork
	}
	r.limits.MaxBytes = opts.MaxDocument
	if r.limits.MaxBytes <= 0 {
		r.limits.MaxBytes = DefaultMaxDocument
	}
	if r.linger <= 0 {
		r.linger = defaultLinger
	}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	r.refusals = loglimit.New(r.log, "publications refused for lack of memory", 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.janitor = time.AfterFunc(r.linger, r.sweep) // which needs to know it
	return r
}

// Close lets go of every topic. Feeds stay readable but learn nothing new.
func (r *Router) Close() error {
	r.mu.Lock()
	r.closed = true
	r.janitor.Stop()
	topics := r.topics
	r.topics = make(map[string]*topic)
	r.mu.Unlock()
	for _, t := range topics {
		t.unfollow()
	}
	r.refusals.Close()
	return nil
}

// Document returns the topic's current document as its subscribers see it. A zero position means that there is none.
func (r *Router) Document(ctx context.Context, topic freshet.Topic) (body []byte, at freshet.Position, err error) {
	t, err := r.hostFresh(ctx, &topic)
	if err != nil {
		return nil, freshet.Position{}, err
	}
	defer r.release(t)
	head := t.head()
	if head.state == nil {
		return nil, freshet.Position{}, nil
	}
	return head.state.Bytes(), head.pos, nil
}

// refresh brings the topic up to what was published before the call, on any node. If nobody can tell, a reader gets what this
// node holds, and hears of the newest as soon as there is a way.
func (r *Router) refresh(ctx context.Context, t *topic) {
	if err := r.grid.Refresh(ctx, t.id); err != nil {
		r.log.Debug("a reader may get an older document first", "topic", t.id, "err", err)
	}
}

// Forget drops the document of a topic that no longer exists.
func (r *Router) Forget(ctx context.Context, topicID string) error {
	return r.grid.Delete(ctx, topicID)
}

// rules are how the publications of a topic are understood.
func (r *Router) rules(topic *freshet.Topic) content.Rules {
	if p := topic.Publisher.Payload; p.Type == freshet.PayloadItem {
		return content.ItemRules(p.ItemIDPath.Segments(), r.limits)
	}
	return content.SnapshotRules(r.limits)
}

// hostFresh is host for readers: they get what was published before they asked, on any node.
func (r *Router) hostFresh(ctx context.Context, ft *freshet.Topic) (*topic, error) {
	t, read, err := r.host(ctx, ft)
	if err == nil && !read {
		r.refresh(ctx, t)
	}
	return t, err
}

// host returns the topic, following it if nobody did yet; read says that this was so, and that the topic was read for it.
// Release it after use.
func (r *Router) host(ctx context.Context, ft *freshet.Topic) (_ *topic, read bool, err error) {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil, false, freshet.Errorf(freshet.Unavailable, "The server is shutting down")
	}
	t := r.topics[ft.ID]
	if t == nil {
		t = r.newTopic(ft)
		r.topics[ft.ID] = t
	}
	t.usage.acquire()
	r.mu.Unlock()
	// The first one follows the topic for all who wait; it must not fail them by giving up itself.
	read, err = t.watch.start(func() (func(), error) { return t.follow(context.WithoutCancel(ctx)) })
	if err != nil {
		r.mu.Lock()
		if r.topics[ft.ID] == t {
			delete(r.topics, ft.ID) // the next one tries again
		}
		r.mu.Unlock()
		return nil, false, err
	}
	return t, read, nil
}

func (r *Router) release(t *topic) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t.usage.release(time.Now())
}

// sweep lets go of topics that were not used for a while.
func (r *Router) sweep() {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return
	}
	var idle []*topic
	now := time.Now()
	for id, t := range r.topics {
		if t.usage.isIdle(now, r.linger) {
			delete(r.topics, id)
			idle = append(idle, t)
		}
	}
	r.janitor.Reset(r.linger / 2)
	r.mu.Unlock()
	for _, t := range idle {
		t.unfollow()
	}
}
