package subscribe

import (
	"context"
	"sync"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
	"github.com/freshet-io/freshet/internal/fanout"
)

// registry has subscribers join groups and leave them again, and ends groups whose permission is gone.
type registry struct {
	// Static after newRegistry.
	catalog         Catalog
	router          Router
	fanout          *fanout.Fanout
	snapshotTimeout time.Duration // for polled topics without a document

	audiences  *audiences
	quotas     *quotas
	sources    *sources
	reports    *reports
	rechecker  *rechecker
	reaper     *reaper
	stopNotice func()

	opening sync.WaitGroup // goroutines that wait for a group to open
}

func newRegistry(parts Parts, opts *Options) *registry {
	r := &registry{
		catalog:         parts.Catalog,
		router:          parts.Router,
		fanout:          parts.Fanout,
		snapshotTimeout: opts.SnapshotTimeout,
		audiences:       newAudiences(parts.Meter),
		quotas: &quotas{
			edition: editionLimit{opts.MaxConnections, opts.LimitMessage},
			seats:   newSeats(parts.Log, parts.Counters, opts.SeatWait),
			meter:   parts.Meter,
		},
		sources: &sources{parts.Log, parts.Sources},
		reports: newReports(parts.Log, opts.Proxies),
		reaper:  newReaper(),
	}
	r.rechecker = &rechecker{
		log: parts.Log, catalog: parts.Catalog, audiences: r.audiences, quotas: r.quotas, sources: r.sources, every: opts.Recheck,
		end: r.end, tell: r.tell, queue: newRecheckQueue(), done: make(chan struct{}),
	}
	r.rechecker.start()
	if parts.Meter != nil {
		parts.Meter.OnSpent(r.rechecker.queue.addSpent)
	}
	r.stopNotice = parts.Notices.OnNotice(r.rechecker.queue.addNotice)
	return r
}

func (r *registry) close() {
	r.stopNotice()
	r.rechecker.close()
	r.reaper.close()
	r.opening.Wait()
	r.quotas.seats.close()
	r.reports.close()
}

// join adds a member to the group for a request that the catalog granted, if the quotas of its account allow. A member must
// leave again; who could not join has left already.
func (r *registry) join(ctx context.Context, q *request, grant *catalog.Grant) (*group, error) {
	if err := r.quotas.enter(ctx, grant); err != nil {
		return nil, err
	}
	g, first := r.audiences.enter(q.ask, groupKey{q.variant, q.legacy}, grant)
	r.countIn(g)
	if first {
		r.open(ctx, g)
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

// joinNow is join for whoever cannot wait. It returns nil, and nobody joined, if something is not ready, or if there was a notice since
// seen: then the permission may be an old one.
func (r *registry) joinNow(q *request, seen uint64) *group {
	g := r.audiences.enterReady(&q.ask, groupKey{q.variant, q.legacy}, func(a *audience) bool {
		return r.rechecker.queue.seen() == seen && r.quotas.enterNow(a.userID, a.appID)
	})
	if g != nil {
		r.countIn(g)
	}
	return g
}

func (r *registry) countIn(g *group) {
	r.reports.stats.connect(g.key.variant, 1)
	g.countMembers(1)
}

// leave takes a member out. It may run in an event loop, so what takes time is left to the reaper.
func (r *registry) leave(g *group) {
	r.quotas.leave(g.audience.userID, g.audience.appID)
	r.reports.stats.connect(g.key.variant, -1)
	g.countMembers(-1)
	if r.audiences.leave(g) {
		r.reaper.add(g)
	}
}

// open does what takes time, once for all who wait.
func (r *registry) open(ctx context.Context, g *group) {
	defer close(g.ready)
	ctx = context.WithoutCancel(ctx)
	topic := g.audience.topic
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
		r.openSource(g)
	}
}

// openSource learns how the data source is. If that ends streams, those who come now still get the document first.
func (r *registry) openSource(g *group) {
	failure, _ := r.sources.look(g.audience.topic.ID)
	if failure != nil && failure.Fatal {
		r.audiences.detach(g)
		r.endGroup(g, failure.Err())
		return
	}
	r.tellGroup(g, failure)
	g.waiting = r.awaitDocument(g)
}

// awaitDocument ends a group that still has no document when its time is over. Members that came late are told a little early; they
// come back.
func (r *registry) awaitDocument(g *group) *time.Timer {
	if len(g.feed.Begin("").Bytes) > 0 {
		return nil
	}
	return time.AfterFunc(r.snapshotTimeout, func() {
		<-g.ready
		if len(g.feed.Begin("").Bytes) == 0 {
			r.endGroups([]*group{g}, freshet.Errorf(freshet.Timeout, "The data source gave no document in time"))
		}
	})
}

// tell has the readers of an audience learn of a failure of their data source, or of its end.
func (r *registry) tell(a *audience, failure *freshet.SourceFailure) {
	for _, g := range r.audiences.groupsOf(a) {
		r.whenOpen(g, func() {
			if g.source != nil {
				r.tellGroup(g, failure)
			}
		})
	}
}

func (r *registry) tellGroup(g *group, failure *freshet.SourceFailure) {
	if told := g.source.tell(failure); told != nil {
		r.reports.log.told(g.audience.topic.ID, told, failure.Err())
	}
}

// end ends every stream of the audience.
func (r *registry) end(a *audience, reason error) {
	r.endGroups(r.audiences.groupsOf(a), reason)
}

func (r *registry) endGroups(groups []*group, reason error) {
	r.audiences.detach(groups...) // whoever comes now must be judged anew
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
	n := r.audiences.membersOf(g)
	now := time.Now()
	f := newFailure(reason, g.key.legacy, now)
	r.reports.ended(g.audience.topic.ID, n, &f, now)
	g.ending.Do(func() {
		g.reason = reason
		close(g.over)
		r.reports.log.ended(g.audience.topic.ID, n, &f, reason)
		g.streams.End(f.frame(retryFor(reason)))
	})
}
