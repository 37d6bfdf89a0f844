package gateway

import (
	"crypto/sha256"
	"net"
	"net/http"
	"strings"

	"github.com/freshet-io/freshet"
)

// route is where requests of one API go.
type route struct {
	api       *freshet.API
	plugins   []slot // in the order in which they run
	next      http.Handler
	isProxied bool
}

// slot is one kind of plugin on one API.
type slot struct {
	general    plugin            // nil if there is none for everybody
	byConsumer map[string]plugin // in place of the general one
}

// table is all that a request needs to know, as it was at one moment. It never changes.
type table struct {
	platform map[string]*route // by path prefix; never shadowed by anything registered

	paths map[string]*route // by request_path; "" for the API at the root
	depth int               // segments in the deepest of them

	hosts    map[string]*route
	suffixes map[string]*route // ".example.com" for *.example.com
	prefixes map[string]*route // "example." for example.*

	keys      map[digest]string // who a key belongs to
	consumers map[string]*freshet.Consumer
}

// digest stands for a key, so that looking one up takes as long for a near miss as for any other.
type digest [sha256.Size]byte

func emptyTable(platform map[string]http.Handler) *table {
	t := &table{platform: map[string]*route{}}
	for prefix, next := range platform {
		t.platform[prefix] = &route{next: next}
	}
	return t
}

// find returns the route of a request: the platform's first, then by host, then the longest registered path that
// matches whole segments. It takes as many steps as paths are deep, however many there are.
func (t *table) find(r *http.Request, path string) *route {
	if to := t.ours(path); to != nil {
		return to
	}
	if len(t.hosts)+len(t.suffixes)+len(t.prefixes) > 0 {
		if to := t.byHost(r.Host); to != nil {
			return to
		}
		for _, host := range r.Header["X-Host-Override"] {
			if to := t.byHost(host); to != nil {
				return to
			}
		}
	}
	return t.byPath(path)
}

// ours is the platform's route for the path.
func (t *table) ours(path string) *route {
	two := twoSegments(path)
	if to := t.platform[two]; to != nil {
		return to
	}
	if end := strings.LastIndexByte(two, '/'); end > 0 {
		return t.platform[two[:end]]
	}
	return nil
}

func (t *table) byPath(path string) *route {
	if len(t.paths) == 0 || path == "" || path[0] != '/' {
		return nil
	}
	for prefix := firstSegments(path, t.depth); ; {
		if to := t.paths[prefix]; to != nil {
			return to
		}
		end := strings.LastIndexByte(prefix, '/')
		if end < 0 {
			return nil
		}
		prefix = prefix[:end]
	}
}

// firstSegments returns "/a/b" for "/a/b/c" and 2.
func firstSegments(path string, n int) string {
	end := 0
	for ; n > 0 && end < len(path); n-- {
		next := strings.IndexByte(path[end+1:], '/')
		if next < 0 {
			return path
		}
		end += 1 + next
	}
	return path[:end]
}

// byHost tries the name itself, then *.name from the longest on, then name.* from the longest on.
func (t *table) byHost(host string) *route {
	host = hostName(host)
	if host == "" {
		return nil
	}
	if to := t.hosts[host]; to != nil {
		return to
	}
	if len(t.suffixes) > 0 {
		for i := 1; i < len(host); i++ {
			if to := t.suffixes[host[i:]]; host[i] == '.' && to != nil {
				return to
			}
		}
	}
	if len(t.prefixes) > 0 {
		for i := len(host) - 2; i > 0; i-- {
			if to := t.prefixes[host[:i+1]]; host[i] == '.' && to != nil {
				return to
			}
		}
	}
	return nil
}

// hostName takes off the port and the dot of the root, and folds case.
func hostName(host string) string {
	if strings.IndexByte(host, ':') >= 0 {
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
	}
	return strings.ToLower(strings.TrimSuffix(strings.TrimSpace(host), "."))
}

// consumer returns whose key it is, or nil.
func (t *table) consumer(key string) *freshet.Consumer {
	return t.consumers[t.keys[sha256.Sum256([]byte(key))]]
}
