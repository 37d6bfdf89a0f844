package gateway

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/registry"
)

// Notices tell of changes that any node made. The grid has them.
type Notices interface {
	OnNotice(func(grid.Notice)) (stop func())
}

// Registrations are what the table is made from. The registry has them.
type Registrations interface {
	// Revision returns where they stand.
	Revision(ctx context.Context) (registry.Revision, error)

	// Since returns what changed after a revision.
	Since(ctx context.Context, revision int64) (registry.Rows, error)
}

// lookEvery is how often the revision is compared even if no notice came: one may get lost.
const lookEvery = time.Second

// loadTimeout bounds one look; a store that takes longer is away.
const loadTimeout = 10 * time.Second

// Follower keeps a gateway's table up to date with what is registered.
type Follower struct {
	// Static after Follow.
	gateway *Gateway
	source  Registrations
	log     *slog.Logger
	poke    chan struct{} // holds at most one wish to look
	stop    func()        // ends the goroutine and the interest in notices

	// Guarded by mu, which is held during a look: one at a time.
	mu          sync.Mutex
	seen        registry.Revision
	apis        map[string]*freshet.API
	plugins     map[string]map[string]*freshet.Plugin // by API and identifier
	credentials map[string]digest                     // by identifier
}

// Follow loads what is registered and keeps the gateway up to date until Close.
func Follow(ctx context.Context, g *Gateway, source Registrations, n Notices, log *slog.Logger) (*Follower, error) {
	f := &Follower{gateway: g, source: source, log: log, poke: make(chan struct{}, 1)}
	f.forget()
	if err := f.CatchUp(ctx, 0); err != nil {
		return nil, err
	}
	quiet := n.OnNotice(func(n grid.Notice) {
		if n.Scope != grid.ScopeGateway {
			return
		}
		g.outdated.set()
		select {
		case f.poke <- struct{}{}:
		default: // somebody asked already
		}
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { f.run(ctx) })
	f.stop = func() { quiet(); cancel(); running.Wait() }
	return f, nil
}

// Close stops looking. The gateway keeps its last table.
func (f *Follower) Close() { f.stop() }

// run looks whenever asked to, and every second in any case. While the store is away the last table stays.
func (f *Follower) run(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	away := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.poke:
		case <-tick.C:
		}
		told := f.gateway.outdated.waiting()
		err := f.CatchUp(ctx, 0)
		f.gateway.outdated.clear(told)
		if ctx.Err() == nil && (err != nil) != away {
			away = err != nil
			if away {
				f.log.Warn("registered APIs cannot be read; the last known ones stay in use", "err", err)
			} else {
				f.log.Info("registered APIs can be read again")
			}
		}
	}
}

// CatchUp makes the table at least as new as the revision; 0 asks what is newest.
func (f *Follower) CatchUp(ctx context.Context, revision int64) error {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	f.mu.Lock()
	defer f.mu.Unlock()
	if revision > 0 && f.seen.Newest >= revision {
		return nil
	}
	newest, err := f.source.Revision(ctx)
	if err != nil || newest == f.seen {
		return err
	}
	since := f.seen.Newest
	if newest.Deleted > since || newest.Newest < since { // or another database
		since = 0
	}
	// Rows may be newer than the revision; the next look reads them once more, which does no harm. So a row that refers
	// to one not seen yet stays without effect for one look at most.
	rows, err := f.source.Since(ctx, since)
	if err != nil {
		return err
	}
	next := f.gateway.table.Load().clone(since > 0)
	if since == 0 {
		f.forget()
	}
	f.apply(&rows, next)
	f.gateway.table.Store(next)
	f.seen = newest
	return nil
}

func (f *Follower) forget() {
	f.apis = map[string]*freshet.API{}
	f.plugins = map[string]map[string]*freshet.Plugin{}
	f.credentials = map[string]digest{}
}

// apply works the rows into those we hold and into a table that nobody else sees yet.
func (f *Follower) apply(rows *registry.Rows, t *table) {
	changed := map[string]bool{}
	for i := range rows.APIs {
		a := &rows.APIs[i]
		if old := f.apis[a.ID]; old != nil {
			t.removeAPI(old)
		}
		f.apis[a.ID] = a
		changed[a.ID] = true
	}
	for i := range rows.Plugins {
		p := &rows.Plugins[i]
		if f.plugins[p.APIID] == nil {
			f.plugins[p.APIID] = map[string]*freshet.Plugin{}
		}
		f.plugins[p.APIID][p.ID] = p
		changed[p.APIID] = true
	}
	for id := range changed {
		if a := f.apis[id]; a != nil {
			f.gateway.place(t, a, f.pluginsOf(id))
		}
	}
	t.addConsumers(rows.Consumers)
	t.addCredentials(rows.Credentials, f.credentials)
}

func (f *Follower) pluginsOf(apiID string) []*freshet.Plugin {
	all := make([]*freshet.Plugin, 0, len(f.plugins[apiID]))
	for _, p := range f.plugins[apiID] {
		all = append(all, p)
	}
	return all
}

// PluginsInUse names the plugins that any API has.
func (f *Follower) PluginsInUse() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	names := []string{}
	for _, all := range f.plugins {
		for _, p := range all {
			if !slices.Contains(names, p.Name) {
				names = append(names, p.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}
