// Package kong is the administration of the gateway in the dialect of Kong 0.5: its paths, forms and JSON bodies, pages, and the
// words of its errors. Whoever reaches it may do everything; the listener decides who does.
//
// It translates and nothing more: every rule is the registry's. The handler is safe for concurrent use.
package kong

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/freshet-io/freshet/internal/httpkit"
	"github.com/freshet-io/freshet/internal/registry"
)

// Options are what the administration needs from the rest of the program.
type Options struct {
	Registry *registry.Registry
	Node     Node
	Version  string
	Log      *slog.Logger
}

// Handler answers requests to the administration.
type Handler struct{ Options }

// New returns the administration of what is registered.
func New(o Options) *Handler { return &Handler{o} }

// call is one request to the administration.
type call struct {
	ctx    context.Context
	r      *http.Request
	vars   []string // the parts of the path that the route leaves open
	values registry.Values
}

// response is a status and what to show as JSON; nil for nothing.
type response struct {
	status int
	body   any
}

func shown(body any) (response, error)   { return response{http.StatusOK, body}, nil }
func created(body any) (response, error) { return response{http.StatusCreated, body}, nil }
func gone(err error) (response, error)   { return response{http.StatusNoContent, nil}, err }

// written is the response to a change of one thing.
func written[T, B any](act registry.Act, thing *T, body func(*T) B, err error) (response, error) {
	switch {
	case err != nil:
		return response{}, err
	case act == registry.Delete:
		return gone(nil)
	case act == registry.Create:
		return created(body(thing))
	}
	return shown(body(thing))
}

type action func(h *Handler, c *call) (response, error)

// route is a path, where * stands for one segment, and what can be done there.
type route struct {
	path    string
	methods map[string]action
}

// routes is searched from the top.
var routes = []route{
	{"", map[string]action{"GET": (*Handler).node}},
	{"status", map[string]action{"GET": (*Handler).status}},
	{"apis", map[string]action{"GET": (*Handler).listAPIs, "POST": (*Handler).createAPI, "PUT": (*Handler).putAPI}},
	{"apis/*", map[string]action{"GET": (*Handler).showAPI, "PUT": (*Handler).replaceAPI, "PATCH": (*Handler).updateAPI, "DELETE": (*Handler).deleteAPI}},
	{"apis/*/plugins", map[string]action{"GET": (*Handler).listPlugins, "POST": (*Handler).createPlugin, "PUT": (*Handler).putPlugin}},
	{"apis/*/plugins/*", map[string]action{"GET": (*Handler).showPlugin, "PUT": (*Handler).replacePlugin, "PATCH": (*Handler).updatePlugin, "DELETE": (*Handler).deletePlugin}},
	{"plugins", map[string]action{"GET": (*Handler).listPlugins, "POST": (*Handler).createPlugin, "PUT": (*Handler).putPlugin}},
	{"plugins/enabled", map[string]action{"GET": (*Handler).enabledPlugins}},
	{"plugins/schema/*", map[string]action{"GET": (*Handler).pluginSchema}},
	{"plugins/*", map[string]action{"GET": (*Handler).showPlugin, "PUT": (*Handler).replacePlugin, "PATCH": (*Handler).updatePlugin, "DELETE": (*Handler).deletePlugin}},
	{"consumers", map[string]action{"GET": (*Handler).listConsumers, "POST": (*Handler).createConsumer, "PUT": (*Handler).putConsumer}},
	{"consumers/*", map[string]action{"GET": (*Handler).showConsumer, "PUT": (*Handler).replaceConsumer, "PATCH": (*Handler).updateConsumer, "DELETE": (*Handler).deleteConsumer}},
	{"consumers/*/key-auth", map[string]action{"GET": (*Handler).listKeys, "POST": (*Handler).createKey, "PUT": (*Handler).putKey}},
	{"consumers/*/key-auth/*", map[string]action{"GET": (*Handler).showKey, "PUT": (*Handler).replaceKey, "PATCH": (*Handler).updateKey, "DELETE": (*Handler).deleteKey}},
	// The older spelling.
	{"consumers/*/keyauth", map[string]action{"GET": (*Handler).listKeys, "POST": (*Handler).createKey, "PUT": (*Handler).putKey}},
	{"consumers/*/keyauth/*", map[string]action{"GET": (*Handler).showKey, "PUT": (*Handler).replaceKey, "PATCH": (*Handler).updateKey, "DELETE": (*Handler).deleteKey}},
}

// match returns the open parts of the path if it is the route's.
func (to *route) match(segments []string) (vars []string, ok bool) {
	pattern := strings.Split(to.path, "/")
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

func (to *route) allow() string {
	var all []string
	for method := range to.methods {
		all = append(all, method)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	result, err := h.do(w, r)
	if err != nil {
		result = h.failure(r, err)
	}
	w.Header().Set("Server", "freshet/"+h.Version)
	w.Header().Set("Cache-Control", "no-store")
	if result.body == nil {
		w.WriteHeader(result.status)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	httpkit.WriteBody(w, result.status, result.body)
}

func (h *Handler) do(w http.ResponseWriter, r *http.Request) (response, error) {
	segments, ok := pathSegments(r.URL)
	if !ok {
		return response{}, errNotFound
	}
	for i := range routes {
		to := &routes[i]
		vars, ok := to.match(segments)
		if !ok {
			continue
		}
		method := r.Method
		if method == http.MethodHead {
			method = http.MethodGet
		}
		act := to.methods[method]
		if act == nil {
			w.Header().Set("Allow", to.allow())
			return response{}, errMethod
		}
		values, err := readValues(w, r)
		if err != nil {
			return response{}, err
		}
		return act(h, &call{ctx: r.Context(), r: r, vars: vars, values: values})
	}
	return response{}, errNotFound
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
