package server

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// upstream is what the gateway of one side forwards to.
type upstream struct {
	server    *httptest.Server
	recorders []*recorder // by lane
}

func newUpstream(t testing.TB, lanes int, secure bool) *upstream {
	t.Helper()
	u := &upstream{}
	for range lanes {
		r := &recorder{}
		r.idle = sync.NewCond(&r.mu)
		u.recorders = append(u.recorders, r)
	}
	u.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		var i int
		if _, err := fmt.Sscanf(name, "lane%d", &i); err != nil || i < 0 || i >= lanes {
			http.NotFound(w, r)
			return
		}
		u.recorders[i].ServeHTTP(w, r)
	}))
	if secure {
		u.server.StartTLS()
	} else {
		u.server.Start()
	}
	t.Cleanup(u.server.Close)
	return u
}

// recorder answers requests and remembers them.
type recorder struct {
	mu       sync.Mutex
	idle     *sync.Cond
	busy     int      // Guarded by mu.
	requests []string // Guarded by mu.
}

// take returns what came since the last time, when nothing is under way.
func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.busy > 0 {
		r.idle.Wait()
	}
	taken := r.requests
	r.requests = nil
	return taken
}

// ServeHTTP implements http.Handler.
func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	r.busy++
	r.mu.Unlock()
	body, err := io.ReadAll(req.Body)
	r.mu.Lock()
	if err == nil { // whether and when anything is seen of a request that breaks off is chance
		r.requests = append(r.requests, describeRequest(req, body))
	}
	r.busy--
	r.idle.Broadcast()
	r.mu.Unlock()
	if err == nil {
		answerByPath(w, req, body)
	}
}

func describeRequest(r *http.Request, body []byte) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s host %s, length %d, coding %q\n", r.Method, r.RequestURI, r.Proto, r.Host, r.ContentLength, r.TransferEncoding)
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		fmt.Fprintf(&b, "    %s: %q\n", name, r.Header[name])
	}
	fmt.Fprintf(&b, "    %d bytes: %.200q, trailers %q", len(body), body, r.Trailer)
	return b.String()
}

var longAnswer = strings.Repeat("0123456789abcdef", 1500)

// answerByPath gives each kind of answer that an upstream may give.
func answerByPath(w http.ResponseWriter, r *http.Request, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "text/plain")
	switch {
	case strings.Contains(r.URL.Path, "/chunks"):
		for range 3 {
			_, _ = io.WriteString(w, "some ")
			_ = http.NewResponseController(w).Flush()
		}
	case strings.Contains(r.URL.Path, "/none"):
		h.Del("Content-Type")
		w.WriteHeader(http.StatusNoContent)
	case strings.Contains(r.URL.Path, "/long"):
		h.Set("Content-Length", fmt.Sprint(len(longAnswer)))
		_, _ = io.WriteString(w, longAnswer)
	case strings.Contains(r.URL.Path, "/last"):
		h.Set("Connection", "close")
		_, _ = io.WriteString(w, "bye")
	case strings.Contains(r.URL.Path, "/hint"):
		h.Set("Link", "</style.css>")
		w.WriteHeader(http.StatusEarlyHints)
		_, _ = io.WriteString(w, "hinted")
	case strings.Contains(r.URL.Path, "/cookies"):
		h.Add("Set-Cookie", "a=1")
		h.Add("Set-Cookie", "b=2")
		h.Set("Etag", `"x"`)
		h.Set("Date", "Mon, 02 Jan 2006 15:04:05 GMT")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "no such page")
	case strings.Contains(r.URL.Path, "/same"):
		h.Del("Content-Type")
		w.WriteHeader(http.StatusNotModified)
	default:
		_, _ = fmt.Fprintf(w, "%s %s %.100q", r.Method, r.RequestURI, body)
	}
}
