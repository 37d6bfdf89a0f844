package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/freshet-io/freshet"
)

// adminHandler serves health, metrics and profiling, and leaves every other path to the gateway's administration.
// None of this is ever on a public listener.
func adminHandler(r *readiness, metrics *metrics, administration http.Handler, log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", administration)
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]bool{"alive": true})
	})
	mux.Handle("GET /readyz", r)
	mux.Handle("GET /healthz", r)
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics.registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug), // mostly clients going away, as many as like to
	}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", notFound) // flags may hold secrets
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}

// guardAdmin keeps everybody away who has no business here. With a token, only who has it gets past the probes.
//
// Without one, web pages are kept away: a browser on this machine can reach a loopback address, so a page somewhere could
// post to it (refused as cross-origin) or have its own host name resolve to it (DNS rebinding: refused because the name
// is not ours).
func guardAdmin(address net.Addr, token freshet.Secret, next http.Handler) http.Handler {
	if token != "" {
		return requireToken(token, next)
	}
	guarded := http.NewCrossOriginProtection().Handler(next)
	tcp, isTCP := address.(*net.TCPAddr)
	if !isTCP || !tcp.IP.IsLoopback() {
		return guarded
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !isLocalName(req.Host) {
			writeJSON(w, http.StatusForbidden, map[string]string{"message": "This listener answers to localhost and IP addresses only"})
			return
		}
		guarded.ServeHTTP(w, req)
	})
}

// probes tell nothing that needs protection, and those who send them have no token.
var probes = []string{"/livez", "/readyz", "/healthz"}

// requireToken asks for the token as a bearer token or in a header of its own, for scripts that use Authorization
// otherwise.
func requireToken(token freshet.Secret, next http.Handler) http.Handler {
	want := sha256.Sum256([]byte(token.Reveal()))
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		given, bearer := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
		if !bearer {
			given = req.Header.Get("Freshet-Admin-Token")
		}
		got := sha256.Sum256([]byte(given)) // of equal length, whatever was given
		if subtle.ConstantTimeCompare(got[:], want[:]) == 1 || slices.Contains(probes, req.URL.Path) {
			next.ServeHTTP(w, req)
			return
		}
		w.Header().Set("WWW-Authenticate", `Bearer realm="freshet administration"`)
		writeJSON(w, http.StatusUnauthorized, map[string]string{"message": "Send the administration token (admin.token) as Authorization: Bearer …"})
	})
}

// later is a handler that is known only once the parts it stands on have started.
type later struct {
	expected bool // static: whether it will ever be known
	handler  atomic.Pointer[http.Handler]
}

func (l *later) set(h http.Handler) { l.handler.Store(&h) }

func (l *later) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h := l.handler.Load(); h != nil {
		(*h).ServeHTTP(w, r)
		return
	}
	if l.expected {
		w.Header().Set("Retry-After", "1")
		writeJSON(w, http.StatusServiceUnavailable, map[string]string{"message": "The server is starting"})
		return
	}
	notFound(w, r)
}

func isLocalName(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	return host == "localhost" || net.ParseIP(trimBrackets(host)) != nil
}

func trimBrackets(host string) string {
	if len(host) > 2 && host[0] == '[' && host[len(host)-1] == ']' {
		return host[1 : len(host)-1]
	}
	return host
}
