package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/freshet-io/freshet/internal/grid/memory"
	"github.com/freshet-io/freshet/internal/httpkit"
	"github.com/freshet-io/freshet/internal/kong"
	"github.com/freshet-io/freshet/internal/registry"
	"github.com/freshet-io/freshet/internal/store"
	"github.com/freshet-io/freshet/internal/wire"
)

func TestMain(m *testing.M) { os.Exit(verify(m)) }

func verify(m *testing.M) int {
	code := m.Run()
	http.DefaultClient.CloseIdleConnections()
	client.CloseIdleConnections()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// noFastPath names the variable that makes all tests run without a fast path before the gateway.
const noFastPath = "FRESHET_TEST_NO_FAST_PATH"

// For HTTP/2, and for whatever is uncommon, there is no fast path. All that holds with one holds there too.
func TestEverythingHoldsWithoutAFastPath(t *testing.T) {
	if os.Getenv(noFastPath) != "" {
		return // we are there
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.timeout=5m")
	cmd.Env = append(os.Environ(), noFastPath+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// world is a gateway with its administration, on the real engines.
type world struct {
	t        testing.TB
	store    *store.Store
	grid     *memory.Grid
	gateway  *Gateway
	follower *Follower
	front    *httptest.Server // the gateway listener
	wire     *wire.Server     // of the last listener that has a fast path
	admin    *httptest.Server
	logs     *safeBuffer
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

// clock is a time that tests choose.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
}

func newWorld(t testing.TB, change ...func(*Options)) *world {
	t.Helper()
	s, err := store.Open(t.Context(), store.Location{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	g := memory.New(memory.Options{})
	t.Cleanup(func() { g.Close() })
	return newNode(t, s, g, change...)
}

// newNode is another process on the same store and grid.
func newNode(t testing.TB, s *store.Store, counters *memory.Grid, change ...func(*Options)) *world {
	t.Helper()
	w := &world{t: t, store: s, grid: counters, logs: &safeBuffer{}}
	log := slog.New(slog.NewTextHandler(w.logs, &slog.HandlerOptions{Level: slog.LevelInfo}))
	o := Options{Log: log, Counter: counters, APIs: []API{
		{Name: "api", Version: "v1", Handler: echoHandler("manage")},
		{Name: "publish", Version: "v1", Handler: echoHandler("publish")},
	}}
	for _, c := range change {
		c(&o)
	}
	var err error
	if w.gateway, err = New(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.gateway.Close)
	registrations := registry.New(s, counters, registry.Options{Log: log})
	if w.follower, err = Follow(t.Context(), w.gateway, registrations, counters, log); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.follower.Close)
	registrations.Follow(w.follower)
	w.front = w.listen(os.Getenv(noFastPath) == "", w.gateway)
	w.admin = httptest.NewServer(kong.New(kong.Options{Registry: registrations, Version: "test", Log: log}))
	t.Cleanup(w.admin.Close)
	return w
}

// listen starts a listener like the gateway's own.
func (w *world) listen(isFast bool, h http.Handler) *httptest.Server {
	front := httptest.NewUnstartedServer(h)
	front.Config.ConnState, front.Config.ConnContext = wire.GuardState, httpkit.ConnContext
	if isFast {
		w.wire = &wire.Server{Handlers: []wire.Handler{w.gateway.FastPath()}, HeadTimeout: time.Minute, IdleTimeout: time.Minute,
			ConnContext: httpkit.ConnContext, Opened: w.gateway.Opened, Log: slog.New(slog.NewTextHandler(w.logs, nil))}
		w.t.Cleanup(w.wire.Close)
		front.Listener, front.Config.ConnState = w.wire.Listen(front.Listener), w.wire.ConnState
	} else {
		front.Listener = wire.Guard(front.Listener)
	}
	front.Start()
	w.t.Cleanup(front.Close)
	return front
}

func echoHandler(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Answered-By", name)
		_, _ = io.WriteString(w, name+" "+r.URL.EscapedPath())
	})
}

// seen is a request as an upstream sees it.
type seen struct {
	Method, Target, Host, Body string
	Header                     http.Header
}

// newUpstreamServer answers what it saw, as JSON.
func newUpstreamServer(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(seen{r.Method, r.RequestURI, r.Host, string(body), r.Header})
	}))
	t.Cleanup(s.Close)
	return s
}

// got is an answer with its body.
type got struct {
	status int
	header http.Header
	body   string
}

// client follows no redirects.
var client = &http.Client{
	Transport:     &http.Transport{DisableCompression: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Timeout:       2 * time.Minute,
}

func send(t testing.TB, r *http.Request) got {
	t.Helper()
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return got{resp.StatusCode, resp.Header, string(body)}
}

// call sends a request through the gateway; header is name, value, name, value, …
func (w *world) call(method, target string, header ...string) got {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.front.URL+target, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
			continue
		}
		r.Header.Add(header[i], header[i+1])
	}
	return send(w.t, r)
}

// upstreamSaw is call for a request that must arrive at an echoing upstream.
func (w *world) upstreamSaw(method, target string, header ...string) (s seen) {
	w.t.Helper()
	a := w.call(method, target, header...)
	if err := json.Unmarshal([]byte(a.body), &s); a.status != http.StatusOK || err != nil {
		w.t.Fatalf("%s %s answers %d %s", method, target, a.status, a.body)
	}
	return s
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
	return send(w.t, r)
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

func trust(networks ...string) func(*Options) {
	return func(o *Options) {
		for _, n := range networks {
			o.Proxies = append(o.Proxies, netip.MustParsePrefix(n))
		}
	}
}
