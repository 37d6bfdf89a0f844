// Package gateway is the front door on one address: it sends each request to the API it names.
//
// It routes the platform's own APIs, in process. It changes no body and knows no API's routes. A Gateway is fixed
// after New and safe for concurrent use.
package gateway

import (
	"log/slog"
	"net/http"
	"net/netip"
	"strings"

	"github.com/freshet-io/freshet/internal/httpkit"
)

// API is one of the platform's own APIs in one major version.
type API struct {
	Name    string // the first segment of its paths: api, publish
	Version string // the second: v1
	Handler http.Handler
}

// latest is the word that may stand in place of the newest version's number.
const latest = "latest"

// Gateway routes requests.
type Gateway struct {
	routes map[string]http.Handler // by the first two segments, "api/v1"
}

// New makes a gateway for the APIs. Of several versions of one API, the last one given is also the latest. Client
// addresses that trusted proxies forward are believed.
func New(log *slog.Logger, trusted []netip.Prefix, apis ...API) http.Handler {
	g := &Gateway{routes: map[string]http.Handler{}}
	for _, a := range apis {
		for _, version := range []string{a.Version, latest} {
			prefix := a.Name + "/" + version
			g.routes[prefix] = http.StripPrefix("/"+prefix, a.Handler)
		}
	}
	return httpkit.Chain(g, httpkit.BelieveProxies(trusted), httpkit.AccessLog(log), httpkit.Recover(log), httpkit.LimitHeaders, httpkit.DrainBodies)
}

// ServeHTTP finds the API by whole segments of the path as it was sent, in one step.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h := g.routes[firstSegments(r.URL.EscapedPath())]; h != nil {
		h.ServeHTTP(w, r)
		return
	}
	httpkit.WriteJSON(w, http.StatusNotFound, unmatched{
		Message:     "API not found with these values",
		RequestPath: r.URL.Path,
	})
}

// unmatched is the answer for paths that lead nowhere.
type unmatched struct {
	Message     string `json:"message"`
	RequestPath string `json:"request_path"`
}

// firstSegments returns "a/b" for "/a/b/c". It does not clean the path: what would need cleaning matches nothing.
func firstSegments(path string) string {
	path, ok := strings.CutPrefix(path, "/")
	if !ok {
		return ""
	}
	first, rest, ok := strings.Cut(path, "/")
	if !ok {
		return ""
	}
	second, _, _ := strings.Cut(rest, "/")
	return first + "/" + second
}
