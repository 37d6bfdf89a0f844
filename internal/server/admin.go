package server

import (
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// adminHandler serves health, metrics and profiling, and leaves every other path to the gateway's administration.
// None of this is ever on a public listener.
func adminHandler(r *readiness, metrics *prometheus.Registry, administration http.Handler, log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", administration)
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]bool{"alive": true})
	})
	mux.Handle("GET /readyz", r)
	mux.Handle("GET /healthz", r)
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", notFound) // flags may hold secrets
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}

// guardAdmin keeps web pages away from a listener that asks for no password. A browser on this machine can reach
// a loopback address, so a page somewhere could post to it (refused as cross-origin) or have its own host name
// resolve to it (DNS rebinding: refused because the name is not ours).
func guardAdmin(address net.Addr, next http.Handler) http.Handler {
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

// newMetrics makes a registry of our own, so that several servers can live in one process.
func newMetrics(version string) *prometheus.Registry {
	reg := prometheus.NewRegistry()
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "freshet_build_info",
		Help:        "Always 1; its labels name what is running.",
		ConstLabels: prometheus.Labels{"version": version, "go": runtime.Version()},
	})
	build.Set(1)
	reg.MustRegister(build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return reg
}
