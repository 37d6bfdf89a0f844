// Package gateway serves many APIs on one address: it sends each request to the API it names, and runs that API's
// plugins first. The platform's own APIs are answered in process or by another one; registered APIs are forwarded to
// their upstreams. It knows nothing of how they are registered.
//
// It routes by whole segments and never cleans a path: what it matches is what it forwards. It does not balance load,
// retry or cache. What is registered comes from the registry; requests are answered from an immutable table in memory. It is replaced
// after a notice, and once a second the gateway looks whether it is the newest. Everything is safe for concurrent use.
package gateway

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/freshet-io/freshet/internal/httpkit"
	"github.com/freshet-io/freshet/internal/registry"
	"github.com/freshet-io/freshet/internal/wire"
)

// API is one of the platform's own APIs in one major version.
type API struct {
	Name    string // the first segment of its paths: api, publish
	Version string // the second: v1; empty for what has no versions
	Handler http.Handler
}

// latest is the word that may stand in place of the newest version's number.
const latest = "latest"

// Options is what a gateway stands on.
type Options struct {
	Log     *slog.Logger
	Proxies []netip.Prefix // proxies in front of us whose word about the client counts
	APIs    []API          // those that are answered in this process
	Remote  []Remote       // those that another process answers
	Counter httpkit.Counter
	Barred  registry.Barred // no upstream leads there

	Timeouts Timeouts
	Now      func() time.Time // nil = time.Now
}

// Remote is one of the platform's own APIs that runs in another process.
type Remote struct {
	Name, Version string
	URL           string // of that process's gateway listener
}

// Gateway routes requests.
type Gateway struct {
	// Static after New.
	log      *slog.Logger
	proxies  httpkit.Proxies
	counter  httpkit.Counter
	now      func() time.Time
	client   *wire.Client
	standard *transport

	bodyTimeout time.Duration
	platform    map[string]http.Handler // by path prefix, "/api/v1"
	handler     http.Handler            // route, with what every request passes through

	table    atomic.Pointer[table]
	outdated outdated
	traffic  traffic
}

// New makes a gateway that knows the platform's own APIs; Follow tells it about the registered ones. Of several
// versions of one API, the last one given is also the latest. Close lets go of connections to upstreams.
func New(o Options) (*Gateway, error) {
	general := newTransport(o.Timeouts, o.Barred)
	g := &Gateway{log: o.Log, proxies: o.Proxies, counter: o.Counter, now: o.Now, client: newClient(general),
		standard: keepConnections(general), platform: map[string]http.Handler{}}
	if g.now == nil {
		g.now = time.Now
	}
	if g.bodyTimeout = o.Timeouts.Body; g.bodyTimeout <= 0 {
		g.bodyTimeout = usualBodyTimeout
	}
	for _, a := range o.APIs {
		for _, prefix := range platformPaths(a.Name, a.Version) {
			g.platform[prefix] = httpkit.DrainBodies(http.StripPrefix(prefix, a.Handler))
		}
	}
	for _, a := range o.Remote {
		u, err := newUpstream(g, a.URL)
		if err != nil {
			return nil, err
		}
		u.preserveHost = true // it is the same service, and may answer with links to itself
		for _, prefix := range platformPaths(a.Name, a.Version) {
			g.platform[prefix] = u.proxy()
		}
	}
	g.table.Store(emptyTable(g.platform))
	g.handler = httpkit.Chain(http.HandlerFunc(g.route), httpkit.AccessLog(o.Log), httpkit.Recover(o.Log), httpkit.LimitHeaders)
	return g, nil
}

// Close drops idle connections to upstreams.
func (g *Gateway) Close() {
	g.client.Close()
	g.standard.CloseIdleConnections()
}

func platformPaths(name, version string) []string {
	if version == "" {
		return []string{"/" + name}
	}
	return []string{"/" + name + "/" + version, "/" + name + "/" + latest}
}

// trustedPeer is the context key of the proxy's own address in a request that came through a trusted one.
type trustedPeer struct{}

// ServeHTTP implements http.Handler.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.traffic.begun.Add(1)
	defer g.traffic.answered.Add(1)
	g.handler.ServeHTTP(w, g.believe(r))
}

// believe returns the request as its client sent it, if a trusted proxy passed it on.
func (g *Gateway) believe(r *http.Request) *http.Request {
	client, trusted := g.proxies.Trust(r)
	if !trusted {
		return r
	}
	peer := r.RemoteAddr
	r = r.WithContext(context.WithValue(r.Context(), trustedPeer{}, peer)) // a copy: the server still needs the original
	r.RemoteAddr = client
	return r
}

// route finds the API, runs its plugins and passes the request on.
func (g *Gateway) route(w http.ResponseWriter, r *http.Request) {
	if r.Method == "PRI" { // the preface of HTTP/2, where it does not belong
		w.Header().Set("Connection", "close")
		notUnderstood.write(w)
		return
	}
	if r.Method == http.MethodTrace || r.Method == http.MethodConnect {
		g.refuse(w, r, notForProxies)
		return
	}
	g.outdated.wait(r.Context())
	t := g.table.Load()
	path := sentPath(r.URL)
	to := t.find(r, path)
	if to == nil {
		httpkit.DrainBodies(http.HandlerFunc(notMatched)).ServeHTTP(w, r)
		return
	}
	if !to.isProxied && len(to.plugins) == 0 {
		to.next.ServeHTTP(w, r)
		return
	}
	header, a := t.judge(r, to, path)
	m := &marked{ResponseWriter: w, isProxied: to.isProxied, header: header}
	switch {
	case a != nil:
		g.refuse(m, r, a)
	case to.isProxied && r.Body != nil && r.Body != http.NoBody:
		g.upload(m, r, to.next)
	default:
		to.next.ServeHTTP(m, r)
	}
}

// judge has the plugins of an API look at a request. It returns the headers of its answer, whoever gives it, and the answer if the
// request must not be passed on.
func (t *table) judge(r *http.Request, to *route, path string) ([]mark, *answer) {
	if to.isProxied {
		if a := unfit(r, path); a != nil {
			return nil, a
		}
	}
	if len(to.plugins) == 0 {
		return nil, nil
	}
	x := &exchange{r: r, table: t, route: to}
	x.header = x.room[:0]
	a := x.run()
	return x.header, a
}

// unfit makes a request fit to be seen by plugins and upstreams, or says why it cannot be.
func unfit(r *http.Request, path string) *answer {
	dropSpoofed(r)
	dropTunnels(r.Header)
	if climbs(path) {
		return &answer{status: http.StatusBadRequest, message: "The path must not lead upwards"}
	}
	if hops(r) >= maxHops {
		return &answer{status: http.StatusLoopDetected, message: "The request goes round in circles"}
	}
	return nil
}

var notUnderstood = &answer{status: http.StatusBadRequest, message: "HTTP/2 begins with the connection"}

// notForProxies is the answer for what would show a client the headers that we add, or make a tunnel of us.
var notForProxies = &answer{status: http.StatusMethodNotAllowed, message: "Method not allowed",
	header: []mark{{"Allow", []string{"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"}}}}

// refuse answers without passing the request on.
func (g *Gateway) refuse(w http.ResponseWriter, r *http.Request, a *answer) {
	httpkit.DrainBodies(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { a.write(w) })).ServeHTTP(w, r)
}

// unmatched is the answer for paths that lead nowhere.
type unmatched struct {
	Message     string `json:"message"`
	RequestPath string `json:"request_path"`
}

func notMatched(w http.ResponseWriter, r *http.Request) {
	httpkit.WriteJSON(w, http.StatusNotFound, unmatched{Message: "API not found with these values", RequestPath: sentPath(r.URL)})
}

// twoSegments returns "/a/b" for "/a/b/c", and the whole path if it has no more.
func twoSegments(path string) string {
	if path == "" || path[0] != '/' {
		return ""
	}
	first := strings.IndexByte(path[1:], '/')
	if first < 0 {
		return path
	}
	first++
	second := strings.IndexByte(path[first+1:], '/')
	if second < 0 {
		return path
	}
	return path[:first+1+second]
}
