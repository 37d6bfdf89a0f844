package kong

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/freshet-io/freshet/internal/gateway"
	"github.com/freshet-io/freshet/internal/grid/memory"
	"github.com/freshet-io/freshet/internal/registry"
	"github.com/freshet-io/freshet/internal/store"
)

// world is the administration of a gateway, on the real engines.
type world struct {
	t       testing.TB
	handler *Handler
	admin   *httptest.Server
	logs    *safeBuffer
}

// safeBuffer is a buffer that the server may write to while a test reads.
type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// idleNode is a gateway that nobody calls.
type idleNode struct{ *gateway.Follower }

func (idleNode) Traffic() Traffic { return Traffic{} }

func newWorld(t testing.TB) *world {
	t.Helper()
	s, err := store.Open(t.Context(), store.Location{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	notices := memory.New(memory.Options{})
	t.Cleanup(func() { notices.Close() })
	w := &world{t: t, logs: &safeBuffer{}}
	log := slog.New(slog.NewTextHandler(w.logs, nil))
	g, err := gateway.New(gateway.Options{Log: log, Counter: notices})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	registrations := registry.New(s, notices, registry.Options{Log: log})
	follower, err := gateway.Follow(t.Context(), g, registrations, notices, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(follower.Close)
	registrations.Follow(follower)
	w.handler = New(Options{Registry: registrations, Node: idleNode{follower}, Version: "test", Log: log})
	w.admin = httptest.NewServer(w.handler)
	t.Cleanup(w.admin.Close)
	return w
}

// got is an answer with its body.
type got struct {
	status int
	header http.Header
	body   string
}

// administer sends a form; fields is name, value, name, value, …
func (w *world) administer(method, path string, fields ...string) got {
	w.t.Helper()
	form := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	return w.administerBody(method, path, "application/x-www-form-urlencoded", form.Encode())
}

func (w *world) administerBody(method, path, contentType, body string) got {
	w.t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, w.admin.URL+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return got{resp.StatusCode, resp.Header, string(text)}
}

// must is administer for what has to succeed; it returns the id.
func (w *world) must(method, path string, fields ...string) string {
	w.t.Helper()
	a := w.administer(method, path, fields...)
	if a.status >= 300 {
		w.t.Fatalf("%s %s %v answers %d %s", method, path, fields, a.status, a.body)
	}
	var made struct{ ID string }
	if a.body != "" {
		if err := json.Unmarshal([]byte(a.body), &made); err != nil {
			w.t.Fatal(err)
		}
	}
	return made.ID
}

// register adds an API at a path.
func (w *world) register(path, upstream string, more ...string) {
	w.t.Helper()
	w.must("POST", "/apis/", append([]string{"request_path", path, "upstream_url", upstream}, more...)...)
}
