package subscribe

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
	"github.com/freshet-io/freshet/internal/fanout"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/router"
	"github.com/freshet-io/freshet/internal/usage"
)

// registry knows which permissions the open streams live on, and asks for them again when something changed.
type registry struct {
	// Static after newRegistry.
	log        *slog.Logger
	catalog    Catalog
	router     Router
	fanout     *fanout.Fanout
	sources    Sources // nil: nothing is polled
	recheck    time.Duration
	patience   time.Duration // with polled topics that have no document
	left       func()        // called for every member that goes
	seats      *seats
	edition    editionLimit
	stats      *stats
	meter      *usage.Meter // nil: nobody counts
	stopNotice func()
	done       chan struct{}
	finished   chan struct{}
	wake       chan struct{}  // of run; holds one
	opening    sync.WaitGroup // those who wait for a group to open

	refusals refusals
	errors   errorLog

	// Guarded by mu.
	mu        sync.Mutex
	audiences map[askKey]*audience
	spent     map[usage.Owner]struct{} // without messages left, to be looked at
	notices   map[grid.Notice]struct{} // to be looked at
	count     uint64                   // of notices so far
	suspects  []*audience              // to be asked for again
	closing   []*group                 // without members, to be closed
}

// askKey is what makes two questions to the catalog the same.
type askKey struct{ topic, key, timestamp, signature string }

func keyOf(ask *catalog.SubscribeAsk) askKey {
	k := askKey{topic: ask.TopicID, key: ask.Key}
	if ask.Signed != nil {
		k.timestamp, k.signature = ask.Signed.Timestamp, ask.Signed.Value
	}
	return k
}

// audience is everybody who subscribed by the same question.
type audience struct {
	key    askKey
	ask    catalog.SubscribeAsk
	appID  string
	userID string
	topic  freshet.Topic
	groups map[groupKey]*group
}

type groupKey struct {
	variant router.Variant
	legacy  bool // errors look different
}

// group is the part of an audience that gets the same bytes.
type group struct {
	key      groupKey
	audience *audience
	ready    chan struct{} // closed once the rest is set
	err      error
	feed     *router.Feed
	source   *sourceFeed // of a polled topic
	waiting  *time.Timer // for its first document
	streams  *fanout.Group
	over     chan struct{} // closed when the permission is gone
	reason   error         // why; set before over is closed
	ending   sync.Once

	members int            // guarded by registry.mu
	counter *usage.Counter // set once, with the first member; nil: nobody counts
}

func newRegistry(parts Parts, opts *Options, left func()) *registry {
	r := &registry{
		log:       parts.Log,
		catalog:   parts.Catalog,
		router:    parts.Router,
		fanout:    parts.Fanout,
		sources:   parts.Sources,
		recheck:   opts.Recheck,
		patience:  opts.SnapshotTimeout,
		edition:   editionLimit{opts.MaxConnections, opts.Refusal},
		left:      left,
		done:      make(chan struct{}),
		finished:  make(chan struct{}),
		wake:      make(chan struct{}, 1),
		audiences: make(map[askKey]*audience),
		spent:     make(map[usage.Owner]struct{}),
		notices:   make(map[grid.Notice]struct{}),
		seats:     newSeats(parts.Log, parts.Counters, opts.SeatWait),
		meter:     parts.Meter,
		stats:     newStats(),
		errors:    newErrorLog(parts.Log, opts.Proxies),
	}
	if r.meter != nil {
		r.meter.OnSpent(r.noteSpent)
	}
	r.stopNotice = parts.Notices.OnNotice(r.notice)
	go r.run()
	return r
}

func (r *registry) close() {
	r.stopNotice()
	close(r.done)
	<-r.finished
	r.opening.Wait()
	r.seats.close()
	r.errors.lines.Close()
}

// seen counts the notices so far. What was asked before it changed must be asked again.
func (r *registry) seen() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count
}

// recheckSince closes the gap between asking and joining: a notice in between found no stream of this group to end.
func (r *registry) recheckSince(seen uint64, g *group) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count != seen {
		r.suspects = append(r.suspects, g.audience)
		r.signal()
	}
}

// join adds a member to the group for a request that the catalog granted, if the quotas of its account allow. A member must
// leave again; who could not join has left already.
func (r *registry) join(ctx context.Context, q *request, grant *catalog.Grant) (*group, error) {
	if err := r.checkQuotas(ctx, grant); err != nil {
		r.left()
		return nil, err
	}
	g, first := r.member(q.ask, groupKey{q.variant, q.legacy}, grant)
	if first {
		g.open(ctx, r, grant.Topic)
	}
	<-g.ready
	if g.err != nil {
		r.leave(g)
		return nil, g.err
	}
	if !first {
		g.feed.Refresh(ctx) // the first one's feed is as new as its request
	}
	if err := g.feed.Reach(ctx, q.lastID); err != nil {
		r.leave(g)
		return nil, err
	}
	return g, nil
}

// member counts a member into its group and says whether it is the first there.
func (r *registry) member(ask catalog.SubscribeAsk, key groupKey, grant *catalog.Grant) (g *group, first bool) {
	ak := keyOf(&ask)
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.audiences[ak]
	if a == nil {
		ask.TopicID, ask.Key = strings.Clone(ask.TopicID), strings.Clone(ask.Key) // they are parts of one subscriber's request
		ak.topic, ak.key = ask.TopicID, ask.Key
		a = &audience{key: ak, ask: ask, appID: grant.AppID, userID: grant.UserID, topic: grant.Topic, groups: make(map[groupKey]*group)}
		r.audiences[ak] = a
	}
	g = a.groups[key]
	if g == nil {
		first = true
		g = &group{key: key, audience: a, ready: make(chan struct{}), over: make(chan struct{})}
		a.groups[key] = g
	}
	if r.meter != nil && g.counter == nil {
		g.counter = r.meter.Counter(usage.Place{TopicID: a.topic.ID, AppID: a.appID, UserID: a.userID})
	}
	r.enter(g)
	return g, first
}

// enter counts a member in. The caller holds mu.
func (r *registry) enter(g *group) {
	g.members++
	r.stats.connect(g.key.variant, 1)
	if g.counter != nil {
		g.counter.Connect(1)
	}
}

// open does what takes time, once for all who wait.
func (g *group) open(ctx context.Context, r *registry, topic freshet.Topic) {
	defer close(g.ready)
	ctx = context.WithoutCancel(ctx)
	g.feed, g.err = r.router.Subscribe(ctx, &topic, g.key.variant)
	if g.err != nil {
		return
	}
	if g.audience.ask.Source != nil {
		// The topic may have been deleted before we were there to be seen.
		if _, g.err = r.catalog.Provision(ctx, g.audience.ask); g.err != nil {
			g.feed.Close()
			return
		}
	}
	var feed fanout.Feed = g.feed
	if topic.Publisher.Type == freshet.HTTPPoller {
		g.source = &sourceFeed{Feed: g.feed, legacy: g.key.legacy, compressed: g.key.variant.Compressed}
		feed = g.source
	}
	g.streams = r.fanout.NewGroup(feed, g.key.variant.Compressed, func() { r.leave(g) })
	g.streams.Tag = g
	if g.counter != nil {
		g.streams.Sent = g.count
	}
	if g.source != nil {
		g.openSource(r, topic.ID)
	}
}

// count tells the meter what members were sent.
func (g *group) count(s fanout.Sent) {
	if s.Bytes > 0 {
		g.counter.Sent(s.Events, s.Bytes, s.Full)
	}
	if s.Prompt > 0 {
		g.counter.Late(s.Lag, s.Prompt)
	}
}

// openSource learns how the data source is. If that ends streams, those who come now still get the document first.
func (g *group) openSource(r *registry, topicID string) {
	failure, _ := r.look(topicID)
	if failure != nil && failure.Fatal {
		r.mu.Lock()
		r.detach(g)
		r.mu.Unlock()
		r.endGroup(g, failure.Err())
		return
	}
	r.tell(g, failure)
	g.waiting = r.await(g)
}

// begin is what a new member gets first. One that asks again and again is not told every time that the source fails.
func (g *group) begin(q *request) fanout.Batch {
	switch {
	case g.source == nil:
		return g.feed.Begin(q.lastID)
	case q.longPoll && q.lastID != "":
		return g.source.quiet(q.lastID)
	}
	return g.source.begin(q.lastID)
}

// since is what comes after.
func (g *group) since(c fanout.Cursor) fanout.Batch {
	if g.source == nil {
		return g.feed.Since(c)
	}
	return g.source.Since(c)
}

func (g *group) watch(changed func()) (stop func()) {
	if g.source == nil {
		return g.feed.Watch(changed)
	}
	return g.source.Watch(changed)
}

// leave takes a member out. It may run in an event loop, so what takes time is left to run.
func (r *registry) leave(g *group) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seats.free(g.audience.userID)
	r.seats.free(g.audience.appID)
	r.left()        // now: whoever sees that somebody went finds the seat free
	r.freeEdition() // after that: whoever waits for it finds that somebody went
	r.stats.connect(g.key.variant, -1)
	if g.counter != nil {
		g.counter.Connect(-1)
	}
	if g.members--; g.members > 0 {
		return
	}
	r.detach(g)
	r.closing = append(r.closing, g)
	r.signal()
}

// detach keeps new members out of the group. The caller holds mu.
func (r *registry) detach(g *group) {
	a := g.audience
	if a.groups[g.key] == g {
		delete(a.groups, g.key)
	}
	if len(a.groups) == 0 && r.audiences[a.key] == a {
		delete(r.audiences, a.key)
	}
}

func (r *registry) notice(n grid.Notice) {
	if n.Scope == grid.ScopePoll || n.Scope == grid.ScopeGateway {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if n.Scope != grid.ScopeSource {
		r.count++
	}
	r.notices[n] = struct{}{}
	r.signal()
}

func (r *registry) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// settle is how long run waits after a notice: others of the same kind follow at once, and the catalog must have heard it too.
const settle = 50 * time.Millisecond

func (r *registry) run() {
	defer close(r.finished)
	var looking sync.WaitGroup
	looking.Go(r.recheckAll)
	defer looking.Wait()
	for {
		select {
		case <-r.done:
			r.closeGroups()
			return
		case <-r.wake:
			if r.hasNotices() && !r.pause(settle) {
				continue
			}
			asking, looking := r.concerned()
			r.endSpent()
			r.askAgain(asking)
			r.lookAgain(looking)
		}
		r.closeGroups()
	}
}

// recheckAll asks for everything again now and then, since notices can get lost. It has a goroutine of its own: what takes it
// seconds with many topics must not hold up a notice.
func (r *registry) recheckAll() {
	again := time.NewTicker(r.recheck)
	defer again.Stop()
	for {
		select {
		case <-r.done:
			return
		case <-again.C:
			all := r.everybody()
			r.askAgain(all)
			r.lookAgain(all)
		}
	}
}

func (r *registry) hasNotices() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.notices)+len(r.suspects) > 0
}

// pause returns false when the registry is being closed.
func (r *registry) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.done:
		return false
	}
}

func (r *registry) everybody() []*audience {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]*audience, 0, len(r.audiences))
	for _, a := range r.audiences {
		all = append(all, a)
	}
	return all
}

// concerned returns the audiences that the waiting notices are about: permissions, and data sources.
func (r *registry) concerned() (asking, looking []*audience) {
	r.mu.Lock()
	defer r.mu.Unlock()
	asking = r.suspects
	r.suspects = nil
	if len(r.notices) == 0 {
		return asking, nil
	}
	about := func(scope grid.Scope, id string) bool {
		_, ok := r.notices[grid.Notice{Scope: scope, ID: id}]
		return ok
	}
	for _, a := range r.audiences {
		if about(grid.ScopeTopic, a.ask.TopicID) || about(grid.ScopeApp, a.appID) || about(grid.ScopeUser, a.userID) {
			asking = append(asking, a)
		}
		if about(grid.ScopeSource, a.ask.TopicID) {
			looking = append(looking, a)
		}
	}
	clear(r.notices)
	return asking, looking
}

// askTimeout bounds one question, so that a catalog that hangs does not keep the others from being asked.
const askTimeout = 5 * time.Second

// askers is how many questions are asked at the same time. Each takes the database a moment.
const askers = 8

func (r *registry) askAgain(all []*audience) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(askers, len(all)) {
		wg.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(all) && !r.isDone(); i = next.Add(1) - 1 {
				r.askOne(all[i])
			}
		})
	}
	wg.Wait()
}

func (r *registry) isDone() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

func (r *registry) askOne(a *audience) {
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	grant, err := r.catalog.MaySubscribe(ctx, a.ask)
	if err == nil {
		err = r.checkAgain(ctx, grant)
	}
	switch freshet.KindOf(err) {
	case freshet.Internal, freshet.Unavailable, freshet.Timeout:
		// No answer is not a refusal: streams outlive a catalog that is down for a while.
		if err != nil {
			r.log.Warn("permission could not be checked again", "topic", a.ask.TopicID, "err", err)
		}
	case freshet.TopicNotFound, freshet.UnknownCredential: // a key that was known disappears with its app only
		r.end(a, freshet.Errorf(freshet.TopicGone, "The topic was deleted"))
	default:
		r.end(a, err)
	}
}

// end ends every stream of the audience.
func (r *registry) end(a *audience, reason error) {
	r.endGroups(r.groupsOf(a), reason)
}

func (r *registry) endGroups(groups []*group, reason error) {
	r.mu.Lock()
	for _, g := range groups {
		r.detach(g) // whoever comes now must be judged anew
	}
	r.mu.Unlock()
	for _, g := range groups {
		r.whenOpen(g, func() { r.endGroup(g, reason) })
	}
}

// whenOpen calls f once the group is open, now if it is. Opening may take long, and others must not wait for it.
func (r *registry) whenOpen(g *group, f func()) {
	if g.isReady() {
		f()
		return
	}
	r.opening.Go(func() {
		if <-g.ready; g.err == nil {
			f()
		}
	})
}

// endGroup also counts those whom it ends.
func (r *registry) endGroup(g *group, reason error) {
	r.mu.Lock()
	n := g.members
	r.mu.Unlock()
	f := newFailure(reason, g.key.legacy, time.Now())
	r.stats.ended[f.Code].Add(uint64(n))
	r.refusals.add(g.audience.topic.ID, &f, uint64(n), time.Now())
	g.ending.Do(func() {
		g.reason = reason
		close(g.over)
		r.errors.ended(g.audience.topic.ID, n, &f, reason)
		g.streams.End(f.frame(retryFor(reason)))
	})
}

func (r *registry) closeGroups() {
	r.mu.Lock()
	groups := r.closing
	r.closing = nil
	r.mu.Unlock()
	for _, g := range groups {
		if g.counter != nil {
			g.counter.Close()
		}
		if g.err != nil {
			continue
		}
		if g.waiting != nil {
			g.waiting.Stop()
		}
		g.streams.Close()
		g.feed.Close()
	}
}
