// Package poll turns APIs into topics: while somebody is subscribed to a poller topic, it asks the topic's target at the
// topic's frequency, politely, and publishes each response the way a POST would be.
//
// # Who polls
//
// Topics are divided into shards. A lease in the grid says which node polls a shard (leases); which node asks for which follows by
// rendezvous hashing from the nodes that are alive. The grid tells when the first subscriber of a topic comes and the last one leaves
// (attendance). That is a hint: a sweep looks at all topics once a minute and after a node got more shards.
//
// # The life of a source
//
// A source exists for each topic that is polled here. It has a timer and no goroutine. First it looks up in the catalog where
// the content comes from (lookup, plan) and opens a writer at the router. When its timer fires (schedule), it acquires the semaphore
// of the target's host and that of its shard, and a goroutine makes the request: a conditional one, if the newest document came
// with validators. A document is published; a failure is counted (health), and if subscribers have to know, written down in the grid
// (outage) for every node to see. Then the next poll is arranged: at the topic's frequency, later after failures, and not before the
// target wants it.
//
// Nobody subscribed for the grace time: the source ends, and a topic that subscribers made is deleted. A source whose target asked to
// be left alone is parked until then, so that whoever comes back does not make us forget it.
//
// # Invariants
//
//   - Only the holder of a shard's lease begins a source, asks a target or publishes what it said. The lease is looked at before each
//     of these, the last time right before the document takes effect; whatever a successor published meanwhile makes the grid refuse.
//   - At most one poll of a source is under way. Whoever made the source busy owns its attempt, validators, health and writer.
//   - Validators are those of a document that was published. What was dropped or refused is asked for in full again.
//   - An outage is told once and taken back once, also by another node than the one that told it.
//   - No poll takes a lock that shards share, except those of its host and of the grid.
//
// # What it does not do
//
// It does not decide who may subscribe, and does not tell subscribers anything itself (see freshet.SourceFailure). It keeps nothing: where
// and what to ask is the catalog's knowledge.
//
// # Concurrency
//
// A Poller is safe for concurrent use. Locks are taken in the order shard.mu, source.mu, semaphores; none is held during a request, a
// publication, or a call of the router, the grid or the catalog. A publication takes source.mu, to ask whether it is still wanted.
package poll

import (
	"context"
	"hash/fnv"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/router"
	"github.com/freshet-io/freshet/internal/trace"
)

// Catalog knows where the content of topics comes from.
type Catalog interface {
	Source(ctx context.Context, topicID string) (*catalog.Source, error)
	PollerTopics(ctx context.Context, after string, limit int) ([]freshet.Topic, error)
	Retire(ctx context.Context, topicID string, present func(context.Context) (bool, error)) error
}

// Router takes publications.
type Router interface {
	OpenWriter(ctx context.Context, topic *freshet.Topic) (*router.Writer, error)
}

// Grid is what pollers share with other nodes.
type Grid interface {
	grid.Presence
	grid.Notices
	grid.Values
}

// Parts are what a Poller is made of.
type Parts struct {
	Log     *slog.Logger
	Catalog Catalog
	Router  Router
	Grid    Grid
}

// Options are the settings of a Poller. Zero values mean the defaults.
type Options struct {
	Version         string        // for User-Agent
	DenyPrivate     bool          // keep away from internal addresses
	ErrorThreshold  int           // failures in a row before subscribers with a document are told; 3
	HostConcurrency int           // requests under way to one host; 0 does not bound them
	Concurrency     int           // requests under way in all; 0 does not bound them
	MessageTTL      time.Duration // of documents: a target that changes nothing must not let its document expire
	Timeout         time.Duration // of a request; 10 s
	MaxBody         int64         // decoded; 8 MiB
	Grace           time.Duration // how long to go on after the last subscriber left; 10 s

	// Quota returns what limits the documents of a source's app and account; nil where nothing does. Nil: there are no limits.
	Quota func(*catalog.Source) router.Quota

	// Tracer follows polls. Nil: nobody does.
	Tracer *trace.Tracer

	// Polled is told of every request to a target, and what came of it. It must not block. Nil is nobody.
	Polled func(Polled)
}

func (o *Options) fill() {
	if o.ErrorThreshold <= 0 {
		o.ErrorThreshold = 3
	}
	if o.Timeout <= 0 {
		o.Timeout = 10 * time.Second
	}
	if o.MaxBody <= 0 {
		o.MaxBody = 8 << 20
	}
	if o.Grace <= 0 {
		o.Grace = 10 * time.Second
	}
	if o.Version == "" {
		o.Version = "dev"
	}
}

func (o *Options) client() clientOptions {
	return clientOptions{version: o.Version, guarded: o.DenyPrivate, timeout: o.Timeout, maxBody: o.MaxBody}
}

// fetcher asks targets. The client is one; tests of time have another, since real sockets do not wait for a clock.
type fetcher interface {
	fetch(ctx context.Context, q *request) (*response, error)
}

// numShards is how finely topics are divided among nodes: enough for some dozen nodes, few enough that renewing every lease
// costs next to nothing.
const numShards = 64

// Poller polls the targets of topics.
type Poller struct {
	// Static after New.
	log     *slog.Logger
	catalog Catalog
	router  Router
	grid    Grid
	opts    Options
	fetcher fetcher
	client  *client // nil in tests
	hosts   *hosts
	leases  *leases
	outages outages
	ctx     context.Context // of everything that a Poller does
	cancel  context.CancelFunc
	stops   []func()

	shards  [numShards]shard
	stats   stats
	jobs    jobs
	working sync.WaitGroup // requests, jobs and the rounds of leases and sweeps
	closed  atomic.Bool
	sweeps  chan struct{} // asks for one; holds one
}

// shard is a part of all topics: those that one lease covers.
type shard struct {
	until    atomic.Pointer[time.Time] // when the lease ends unless it is renewed; nil: there is none
	requests semaphore                 // under way

	mu      sync.Mutex
	sources map[string]*source // Guarded by mu.
	second  int64              // Guarded by mu. The last one in which sources began, since the Poller's start.
	burst   int                // Guarded by mu. How many did.
}

// maxBurst is how many sources begin within a second in one shard before they are driven apart: some hundreds in all.
const maxBurst = 4

// inBurst counts a source that polls at once, and reports whether too many do. The caller holds mu.
func (sh *shard) inBurst(second int64) bool {
	if sh.second != second {
		sh.second, sh.burst = second, 0
	}
	sh.burst++
	return sh.burst > maxBurst
}

// New starts a Poller. Close it after use, before the grid and the router.
func New(parts Parts, opts Options) *Poller {
	opts.fill()
	c := newClient(opts.client())
	p := newPoller(parts, opts, c)
	p.client = c
	p.start()
	return p
}

func newPoller(parts Parts, opts Options, f fetcher) *Poller {
	opts.fill()
	p := &Poller{
		log: parts.Log, catalog: parts.Catalog, router: parts.Router, grid: parts.Grid, opts: opts, fetcher: f,
		hosts: newHosts(opts.HostConcurrency), sweeps: make(chan struct{}, 1),
	}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	for i := range p.shards {
		p.shards[i].sources = make(map[string]*source)
		if opts.Concurrency > 0 {
			p.shards[i].requests.limit = max(1, opts.Concurrency/numShards)
		}
	}
	p.leases = newLeases(p)
	p.outages = outages{grid: p.grid, log: p.log}
	return p
}

// start takes what nobody else holds, before it returns: a single node polls from its first subscriber on.
func (p *Poller) start() {
	p.stops = append(p.stops, p.grid.OnPresence(p.presence), p.grid.OnNotice(p.notice))
	p.leases.round(p.ctx)
	p.working.Go(p.leases.run)
	p.working.Go(p.sweep)
}

// Close stops polling and lets other nodes take over at once. What is under way is dropped.
func (p *Poller) Close() error {
	p.jobs.mu.Lock()
	p.closed.Store(true) // under the lock: no job begins after this
	p.jobs.mu.Unlock()
	for _, stop := range p.stops {
		stop()
	}
	p.cancel()
	for i := range p.shards {
		p.dropShard(i)
	}
	p.working.Wait()
	p.leases.release()
	if p.client != nil {
		p.client.close()
	}
	return nil
}

func shardOf(topicID string) int {
	h := fnv.New32a() // the same on every node
	_, _ = h.Write([]byte(topicID))
	return int(h.Sum32() % numShards)
}

// presence is told by the grid. It must not block.
func (p *Poller) presence(topicID string, present bool) {
	if present {
		p.arrive(topicID, subscriber)
		return
	}
	if s := p.source(topicID); s != nil {
		s.leave()
	}
}

// notice is told by the grid. It must not block.
func (p *Poller) notice(n grid.Notice) {
	switch n.Scope {
	case grid.ScopeTopic:
		if s := p.source(n.ID); s != nil {
			p.later(s.load)
		}
	case grid.ScopeApp, grid.ScopeUser, grid.ScopeCatalog:
		p.later(func() { p.reload(n) })
	case grid.ScopePoll:
		p.arrive(n.ID, refresh)
	}
}

// reload looks again at every source of an app or a user, or at all of them.
func (p *Poller) reload(n grid.Notice) {
	for i := range p.shards {
		for _, s := range p.sourcesOf(i) {
			if n.Scope == grid.ScopeCatalog || s.belongsTo(n.ID) {
				p.later(s.load)
			}
		}
	}
}

func (p *Poller) source(topicID string) *source {
	sh := &p.shards[shardOf(topicID)]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.sources[topicID]
}

func (p *Poller) sourcesOf(shard int) []*source {
	sh := &p.shards[shard]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	all := make([]*source, 0, len(sh.sources))
	for _, s := range sh.sources {
		all = append(all, s)
	}
	return all
}

// reason is why a topic shall be polled.
type reason int

const (
	subscriber reason = iota // somebody came, and waits
	takeover                 // somebody has been there; another node polled until now
	refresh                  // once, now
)

// arrive makes sure that the topic is polled, if it is ours. It must not block.
func (p *Poller) arrive(topicID string, why reason) {
	if p.closed.Load() {
		return
	}
	n := shardOf(topicID)
	sh := &p.shards[n]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	// Under the lock: a lease that ends after this finds the source, and drops it.
	if !p.leases.holds(n) {
		return
	}
	if s := sh.sources[topicID]; s != nil && s.arrive(why) {
		return
	}
	s := newSource(p, sh, topicID, why)
	s.schedule.spread = why == subscriber && sh.inBurst(int64(time.Since(p.leases.start)/time.Second))
	sh.sources[topicID] = s // perhaps in place of one that is just ending
	p.later(s.load)
}

// dropShard forgets what another node polls from now on.
func (p *Poller) dropShard(n int) {
	for _, s := range p.sourcesOf(n) {
		s.stop(lost)
	}
}
