package gateway

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/store"
)

// Notices tell of changes that any node made. The grid has them.
type Notices interface {
	Notify(ctx context.Context, n grid.Notice) error
	OnNotice(func(grid.Notice)) (stop func())
}

// lookEvery is how often the revision is compared even if no notice came: one may get lost.
const lookEvery = time.Second

// loadTimeout bounds one look; a store that takes longer is away.
const loadTimeout = 10 * time.Second

// Registry keeps a gateway's table like what the store says.
type Registry struct {
	// Static after Follow.
	gateway *Gateway
	store   *store.Store
	notices Notices
	log     *slog.Logger
	poke    chan struct{} // holds at most one wish to look
	stop    func()        // ends the goroutine and the interest in notices

	// Guarded by mu, which is held during a look: one at a time.
	mu          sync.Mutex
	seen        store.Revision
	apis        map[string]*freshet.API
	plugins     map[string]map[string]*freshet.Plugin // by API and identifier
	credentials map[string]digest                     // by identifier
}

// Follow loads what is registered and keeps the gateway up to date until Close.
func Follow(ctx context.Context, g *Gateway, s *store.Store, n Notices, log *slog.Logger) (*Registry, error) {
	r := &Registry{gateway: g, store: s, notices: n, log: log, poke: make(chan struct{}, 1)}
	r.forget()
	if err := r.catchUp(ctx, 0); err != nil {
		return nil, err
	}
	quiet := n.OnNotice(func(n grid.Notice) {
		if n.Scope != grid.ScopeGateway {
			return
		}
		g.outdated.set()
		select {
		case r.poke <- struct{}{}:
		default: // somebody asked already
		}
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { r.run(ctx) })
	r.stop = func() { quiet(); cancel(); running.Wait() }
	return r, nil
}

// Close stops looking. The gateway keeps its last table.
func (r *Registry) Close() { r.stop() }

// run looks whenever asked to, and every second in any case. While the store is away the last table stays.
func (r *Registry) run(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	away := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.poke:
		case <-tick.C:
		}
		told := r.gateway.outdated.waiting()
		err := r.catchUp(ctx, 0)
		r.gateway.outdated.clear(told)
		if ctx.Err() == nil && (err != nil) != away {
			away = err != nil
			if away {
				r.log.Warn("registered APIs cannot be read; the last known ones stay in use", "err", err)
			} else {
				r.log.Info("registered APIs can be read again")
			}
		}
	}
}

// outdated is set from a notice until the table was read again. Requests wait for that, so that whoever changed something on
// one node meets the change on every other.
type outdated struct{ read atomic.Pointer[unread] }

// unread is what notices told of and nobody has read yet.
type unread struct {
	since time.Time     // the first of these notices
	done  chan struct{} // closed when it is read, or when another notice came
}

func (o *outdated) set() {
	next := &unread{since: time.Now(), done: make(chan struct{})}
	for {
		old := o.read.Load()
		if old != nil {
			next.since = old.since
		}
		if o.read.CompareAndSwap(old, next) {
			if old != nil {
				close(old.done) // whoever waits goes on waiting for the new one
			}
			return
		}
	}
}

// waiting is what a look that begins now makes up for.
func (o *outdated) waiting() *unread { return o.read.Load() }

func (o *outdated) clear(told *unread) {
	if told != nil && o.read.CompareAndSwap(told, nil) {
		close(told.done)
	}
}

// outdatedPatience is how long after a notice requests wait. A database that is away must not hold up what works without it: neither
// those that come while it is, again and again, nor those that find more notices.
const outdatedPatience = 2 * time.Second

func (o *outdated) wait(ctx context.Context) {
	for {
		told := o.read.Load()
		if told == nil {
			return
		}
		left := outdatedPatience - time.Since(told.since)
		if left <= 0 {
			return
		}
		patience := time.NewTimer(left)
		select {
		case <-told.done:
		case <-patience.C:
		case <-ctx.Done():
			patience.Stop()
			return
		}
		patience.Stop()
	}
}

// changed brings this node up to the revision before the answer is given, and tells the others.
func (r *Registry) changed(ctx context.Context, revision int64) {
	ctx = context.WithoutCancel(ctx)
	if err := r.catchUp(ctx, revision); err != nil {
		r.log.Warn("the change is stored, but not yet in effect here", "err", err)
	}
	announcer{r.notices, r.log}.changed(ctx, revision)
}

// catchUp makes the table at least as new as the revision; 0 asks the store what is newest.
func (r *Registry) catchUp(ctx context.Context, revision int64) error {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	r.mu.Lock()
	defer r.mu.Unlock()
	if revision > 0 && r.seen.Newest >= revision {
		return nil
	}
	newest, err := r.store.GatewayRevision(ctx)
	if err != nil || newest == r.seen {
		return err
	}
	since := r.seen.Newest
	if newest.Deleted > since || newest.Newest < since { // or another database
		since = 0
	}
	// Rows may be newer than the revision; the next look reads them once more, which does no harm. So a row that refers
	// to one not seen yet stays without effect for one look at most.
	var news news
	if err := news.read(ctx, r.store, since); err != nil {
		return err
	}
	next := r.gateway.table.Load().clone(since > 0)
	if since == 0 {
		r.forget()
	}
	r.apply(&news, next)
	r.gateway.table.Store(next)
	r.seen = newest
	return nil
}

// news is what changed since a revision.
type news struct {
	apis        []freshet.API
	plugins     []freshet.Plugin
	consumers   []freshet.Consumer
	credentials []freshet.Credential
}

func (n *news) read(ctx context.Context, s *store.Store, since int64) (err error) {
	if n.apis, err = s.APIsSince(ctx, since); err != nil {
		return err
	}
	if n.plugins, err = s.PluginsSince(ctx, since); err != nil {
		return err
	}
	if n.consumers, err = s.ConsumersSince(ctx, since); err != nil {
		return err
	}
	n.credentials, err = s.CredentialsSince(ctx, since)
	return err
}

func (r *Registry) forget() {
	r.apis = map[string]*freshet.API{}
	r.plugins = map[string]map[string]*freshet.Plugin{}
	r.credentials = map[string]digest{}
}

// apply works the news into the rows we hold and into a table that nobody else sees yet.
func (r *Registry) apply(n *news, t *table) {
	changed := map[string]bool{}
	for i := range n.apis {
		a := &n.apis[i]
		if old := r.apis[a.ID]; old != nil {
			t.removeAPI(old)
		}
		r.apis[a.ID] = a
		changed[a.ID] = true
	}
	for i := range n.plugins {
		p := &n.plugins[i]
		if r.plugins[p.APIID] == nil {
			r.plugins[p.APIID] = map[string]*freshet.Plugin{}
		}
		r.plugins[p.APIID][p.ID] = p
		changed[p.APIID] = true
	}
	for id := range changed {
		if a := r.apis[id]; a != nil {
			r.gateway.place(t, a, r.pluginsOf(id))
		}
	}
	t.addConsumers(n.consumers)
	t.addCredentials(n.credentials, r.credentials)
}

func (r *Registry) pluginsOf(apiID string) []*freshet.Plugin {
	all := make([]*freshet.Plugin, 0, len(r.plugins[apiID]))
	for _, p := range r.plugins[apiID] {
		all = append(all, p)
	}
	return all
}

// place puts an API into the table, in place of what was there.
func (g *Gateway) place(t *table, a *freshet.API, all []*freshet.Plugin) {
	slots := g.compile(all)
	if a.BuiltIn {
		for prefix, next := range g.platform {
			if prefix == a.RequestPath || strings.HasPrefix(prefix, a.RequestPath+"/") {
				t.platform[prefix] = &route{api: a, plugins: slots, next: next}
			}
		}
		return
	}
	u, err := newUpstream(g, a.UpstreamURL)
	if err != nil {
		g.log.Error("API cannot be used", "api", a.ID, "name", a.Name, "err", err)
		return
	}
	u.preserveHost = a.PreserveHost
	if a.RequestPath != "" {
		byPath := *u
		if a.StripPath {
			byPath.strip = pathKey(a.RequestPath)
		}
		t.addPath(pathKey(a.RequestPath), &route{api: a, plugins: slots, next: byPath.proxy(), isProxied: true})
	}
	if a.RequestHost != "" {
		t.addHost(a.RequestHost, &route{api: a, plugins: slots, next: u.proxy(), isProxied: true})
	}
}

// pathKey is how a path appears in the table: the root is empty.
func pathKey(path string) string { return strings.TrimSuffix(path, "/") }

// clone copies the table so that the copy can be changed. Without the rows only what does not come from the store stays.
func (t *table) clone(withRows bool) *table {
	if !withRows {
		next := map[string]http.Handler{}
		for prefix, to := range t.platform {
			next[prefix] = to.next
		}
		return emptyTable(next)
	}
	c := *t
	c.platform, c.paths, c.hosts = maps.Clone(t.platform), maps.Clone(t.paths), maps.Clone(t.hosts)
	c.suffixes, c.prefixes = maps.Clone(t.suffixes), maps.Clone(t.prefixes)
	return &c
}

func (t *table) addPath(path string, to *route) {
	if t.paths == nil {
		t.paths = map[string]*route{}
	}
	t.paths[path] = to
	t.depth = max(t.depth, strings.Count(path, "/"))
}

func (t *table) addHost(host string, to *route) {
	at := &t.hosts
	switch name := hostName(host); {
	case strings.HasPrefix(name, "*."):
		at, host = &t.suffixes, name[1:]
	case strings.HasSuffix(name, ".*"):
		at, host = &t.prefixes, name[:len(name)-1]
	default:
		host = name
	}
	if *at == nil {
		*at = map[string]*route{}
	}
	(*at)[host] = to
}

// removeAPI takes away what the API had before it changed, unless another one has taken its place.
func (t *table) removeAPI(a *freshet.API) {
	drop := func(m map[string]*route, key string) {
		if to := m[key]; to != nil && to.api.ID == a.ID {
			delete(m, key)
		}
	}
	if a.RequestPath != "" {
		drop(t.paths, pathKey(a.RequestPath))
	}
	if name := hostName(a.RequestHost); name != "" {
		drop(t.hosts, name)
		drop(t.suffixes, strings.TrimPrefix(name, "*"))
		drop(t.prefixes, strings.TrimSuffix(name, "*"))
	}
}

func (t *table) addConsumers(all []freshet.Consumer) {
	if len(all) == 0 {
		return
	}
	t.consumers = cloneOrNew(t.consumers)
	for i := range all {
		t.consumers[all[i].ID] = &all[i]
	}
}

// addCredentials remembers each credential's digest in known, to find the one it replaces.
func (t *table) addCredentials(all []freshet.Credential, known map[string]digest) {
	if len(all) == 0 {
		return
	}
	t.keys = cloneOrNew(t.keys)
	for i := range all { // first, since one credential may have taken over another's key
		if old, ok := known[all[i].ID]; ok {
			delete(t.keys, old)
		}
	}
	for i := range all {
		c := &all[i]
		d := digest(sha256.Sum256([]byte(c.Key.Reveal())))
		t.keys[d] = c.ConsumerID
		known[c.ID] = d
	}
}

func cloneOrNew[K comparable, V any](m map[K]V) map[K]V {
	if m == nil {
		return map[K]V{}
	}
	return maps.Clone(m)
}
