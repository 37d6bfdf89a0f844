package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/httpkit"
	"github.com/freshet-io/freshet/internal/store"
)

// Administration registers APIs, plugins, consumers and their keys. It speaks the dialect of Kong 0.5: forms or JSON,
// with or without a trailing slash. Whoever reaches it may do everything; the listener decides who does.
type Administration struct {
	// Static after NewAdministration and Bar.
	store    *store.Store
	registry interface {
		changed(ctx context.Context, revision int64) // it is stored
		inUse() []string                             // names of plugins
		traffic() serverStatus
	}
	version string
	log     *slog.Logger
	now     func() time.Time
	barred  Barred
}

// NewAdministration changes what is registered in the store; changes take effect through the registry.
func NewAdministration(s *store.Store, r *Registry, version string, log *slog.Logger) *Administration {
	return &Administration{store: s, registry: r, version: version, log: log,
		now: func() time.Time { return time.Now().Truncate(time.Millisecond) }} // what the store keeps
}

// Bar refuses upstreams that lead to the address.
func (a *Administration) Bar(b Barred) *Administration {
	a.barred = b
	return a
}

// NewWriter is an administration for the requests of other nodes, in a process that routes nothing itself: it makes changes
// and tells the others.
func NewWriter(s *store.Store, n Notices, version string, log *slog.Logger) *Administration {
	a := NewAdministration(s, nil, version, log)
	a.registry = announcer{n, log}
	return a
}

// announcer tells of changes.
type announcer struct {
	notices Notices
	log     *slog.Logger
}

func (a announcer) changed(ctx context.Context, _ int64) {
	if err := a.notices.Notify(context.WithoutCancel(ctx), grid.Notice{Scope: grid.ScopeGateway}); err != nil {
		a.log.Warn("notice not sent; other nodes learn of the change at their next look", "err", err)
	}
}

func (a announcer) inUse() []string { return []string{} } // only whoever follows the table knows

func (a announcer) traffic() serverStatus { return serverStatus{} } // there is none here

// call is one request to the administration.
type call struct {
	ctx    context.Context
	r      *http.Request
	vars   []string // the parts of the path that the route leaves open
	params params
}

// reply is a status and what to show as JSON; nil for nothing.
type reply struct {
	status int
	body   any
}

func shown(body any) (reply, error)   { return reply{http.StatusOK, body}, nil }
func created(body any) (reply, error) { return reply{http.StatusCreated, body}, nil }
func gone(err error) (reply, error)   { return reply{http.StatusNoContent, nil}, err }

type action func(a *Administration, c *call) (reply, error)

// adminRoute is a path, where * stands for one segment, and what can be done there.
type adminRoute struct {
	path    string
	methods map[string]action
}

// adminRoutes is searched from the top.
var adminRoutes = []adminRoute{
	{"", map[string]action{"GET": (*Administration).node}},
	{"status", map[string]action{"GET": (*Administration).status}},
	{"apis", map[string]action{"GET": (*Administration).listAPIs, "POST": (*Administration).createAPI, "PUT": (*Administration).putAPI}},
	{"apis/*", map[string]action{"GET": (*Administration).showAPI, "PUT": (*Administration).replaceAPI, "PATCH": (*Administration).patchAPI, "DELETE": (*Administration).deleteAPI}},
	{"apis/*/plugins", map[string]action{"GET": (*Administration).listPlugins, "POST": (*Administration).createPlugin, "PUT": (*Administration).putPlugin}},
	{"apis/*/plugins/*", map[string]action{"GET": (*Administration).showPlugin, "PUT": (*Administration).replacePlugin, "PATCH": (*Administration).patchPlugin, "DELETE": (*Administration).deletePlugin}},
	{"plugins", map[string]action{"GET": (*Administration).listPlugins, "POST": (*Administration).createPlugin, "PUT": (*Administration).putPlugin}},
	{"plugins/enabled", map[string]action{"GET": (*Administration).enabledPlugins}},
	{"plugins/schema/*", map[string]action{"GET": (*Administration).pluginSchema}},
	{"plugins/*", map[string]action{"GET": (*Administration).showPlugin, "PUT": (*Administration).replacePlugin, "PATCH": (*Administration).patchPlugin, "DELETE": (*Administration).deletePlugin}},
	{"consumers", map[string]action{"GET": (*Administration).listConsumers, "POST": (*Administration).createConsumer, "PUT": (*Administration).putConsumer}},
	{"consumers/*", map[string]action{"GET": (*Administration).showConsumer, "PUT": (*Administration).replaceConsumer, "PATCH": (*Administration).patchConsumer, "DELETE": (*Administration).deleteConsumer}},
	{"consumers/*/key-auth", map[string]action{"GET": (*Administration).listKeys, "POST": (*Administration).createKey, "PUT": (*Administration).putKey}},
	{"consumers/*/key-auth/*", map[string]action{"GET": (*Administration).showKey, "PUT": (*Administration).replaceKey, "PATCH": (*Administration).patchKey, "DELETE": (*Administration).deleteKey}},
	// The older spelling.
	{"consumers/*/keyauth", map[string]action{"GET": (*Administration).listKeys, "POST": (*Administration).createKey, "PUT": (*Administration).putKey}},
	{"consumers/*/keyauth/*", map[string]action{"GET": (*Administration).showKey, "PUT": (*Administration).replaceKey, "PATCH": (*Administration).patchKey, "DELETE": (*Administration).deleteKey}},
}

// match returns the open parts of the path if it is the route's.
func (route *adminRoute) match(segments []string) (vars []string, ok bool) {
	pattern := strings.Split(route.path, "/")
	if len(pattern) != len(segments) {
		return nil, false
	}
	for i, p := range pattern {
		if p == "*" {
			vars = append(vars, segments[i])
		} else if p != segments[i] {
			return nil, false
		}
	}
	return vars, true
}

// ServeHTTP implements http.Handler.
func (a *Administration) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	result, err := a.do(w, r)
	if err != nil {
		result = a.failure(r, err)
	}
	w.Header().Set("Server", "freshet/"+a.version)
	w.Header().Set("Cache-Control", "no-store")
	if result.body == nil {
		w.WriteHeader(result.status)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	httpkit.WriteBody(w, result.status, result.body)
}

func (a *Administration) do(w http.ResponseWriter, r *http.Request) (reply, error) {
	segments, ok := pathSegments(r.URL)
	if !ok {
		return reply{}, errNotFound
	}
	for i := range adminRoutes {
		route := &adminRoutes[i]
		vars, ok := route.match(segments)
		if !ok {
			continue
		}
		method := r.Method
		if method == http.MethodHead {
			method = http.MethodGet
		}
		act := route.methods[method]
		if act == nil {
			w.Header().Set("Allow", route.allow())
			return reply{}, errMethod
		}
		p, err := readParams(w, r)
		if err != nil {
			return reply{}, err
		}
		return act(a, &call{ctx: r.Context(), r: r, vars: vars, params: p})
	}
	return reply{}, errNotFound
}

func (route *adminRoute) allow() string {
	var all []string
	for method := range route.methods {
		all = append(all, method)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// pathSegments splits the path as it was sent and decodes each part, so that a name may contain an escaped slash.
func pathSegments(u *url.URL) ([]string, bool) {
	parts := strings.Split(strings.TrimSuffix(strings.TrimPrefix(u.EscapedPath(), "/"), "/"), "/")
	for i, part := range parts {
		decoded, err := url.PathUnescape(part)
		if err != nil || part == "" && len(parts) > 1 {
			return nil, false
		}
		parts[i] = decoded
	}
	return parts, true
}

// refusal is an error with the answer that the dialect has for it.
type refusal struct{ reply }

func (e *refusal) Error() string { return http.StatusText(e.status) }

func refuse(status int, body any) error { return &refusal{reply{status, body}} }

type message struct {
	Message string `json:"message"`
}

var (
	errNotFound = refuse(http.StatusNotFound, message{"Not found"})
	errMethod   = refuse(http.StatusMethodNotAllowed, message{"Method not allowed"})
)

// err is a 400 that shows the faults, or nil if there are none.
func (f faults) err() error { return f.errWith(http.StatusBadRequest) }

func (f faults) errWith(status int) error {
	if len(f) == 0 {
		return nil
	}
	return refuse(status, f)
}

func (a *Administration) failure(r *http.Request, err error) reply {
	if known, ok := errors.AsType[*refusal](err); ok {
		return known.reply
	}
	switch freshet.KindOf(err) {
	case freshet.NotFound:
		return reply{http.StatusNotFound, message{"Not found"}}
	case freshet.Internal:
		httpkit.LogFailure(r, a.log, err)
		return reply{http.StatusInternalServerError, message{"An unexpected error occurred"}}
	}
	httpkit.LogFailure(r, a.log, err)
	return reply{httpkit.Status(err), message{httpkit.Body(err).Message}}
}

// register runs a change and waits until it is in effect here. act is given the revision that it makes.
func (a *Administration) register(ctx context.Context, act func(tx *store.Tx, revision int64) error) error {
	return a.change(ctx, (*store.Tx).Registering, act)
}

// unregister is register for a change that takes something away.
func (a *Administration) unregister(ctx context.Context, act func(tx *store.Tx) error) error {
	return a.change(ctx, (*store.Tx).Unregistering, func(tx *store.Tx, _ int64) error { return act(tx) })
}

func (a *Administration) change(ctx context.Context, begin func(*store.Tx) (int64, error), act func(*store.Tx, int64) error) error {
	var revision int64
	err := a.store.Update(ctx, func(tx *store.Tx) (err error) {
		if revision, err = begin(tx); err != nil {
			return err
		}
		return act(tx, revision)
	})
	if err == nil {
		a.registry.changed(ctx, revision)
	}
	return err
}
