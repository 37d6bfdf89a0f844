package gateway

import (
	"crypto/sha256"
	"maps"
	"net/http"
	"strings"

	"github.com/freshet-io/freshet"
)

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
