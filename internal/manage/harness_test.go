package manage

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
	"github.com/freshet-io/freshet/internal/grid/memory"
	"github.com/freshet-io/freshet/internal/registry"
	"github.com/freshet-io/freshet/internal/router"
	"github.com/freshet-io/freshet/internal/store"
	"github.com/freshet-io/freshet/internal/usage"
)

// server is the API on the shipped embedded engines, mounted as the gateway mounts it.
type server struct {
	t       *testing.T
	dir     string
	now     *clock
	store   *store.Store
	grid    *memory.Grid
	catalog *catalog.Catalog
	meter   *usage.Meter
	topics  lately
	streams *streams
	handler http.Handler
	docs    documents
	log     *recorder
	options setting
}

// setting is what a test wants to be different.
type setting struct {
	catalog func(*catalog.Options)
	manage  func(*Options)
}

const password = "correct horse battery"

// cheap makes a password cost microseconds. That the real cost is what it should be is a test of the catalog's.
var cheap = catalog.Hashing{MemoryKiB: 8, Passes: 1}

func serve(t *testing.T, options ...setting) *server {
	t.Helper()
	s := &server{t: t, dir: t.TempDir(), now: newClock(), docs: documents{}, log: &recorder{}, topics: lately{}, streams: &streams{}}
	if len(options) > 0 {
		s.options = options[0]
	}
	s.start()
	t.Cleanup(s.stop)
	return s
}

func (s *server) start() {
	s.t.Helper()
	var err error
	if s.store, err = store.Open(s.t.Context(), store.Location{Dir: s.dir}); err != nil {
		s.t.Fatal(err)
	}
	s.grid = memory.New(memory.Options{})
	opts := catalog.Options{
		OpenSignUp: true, Counter: s.grid, TokenLifetime: 24 * time.Hour, Hashing: cheap, Now: s.now.now, Log: slog.New(slog.NewTextHandler(s.log, nil)),
		AdminEmail: freshet.FixedAdminEmail, AdminPassword: freshet.FixedAdminPassword,
		Quotas:    freshet.Quotas{RequestsPerMinute: 6000},
		AppQuotas: freshet.Quotas{Connections: 7, RequestsPerMinute: 600},
	}
	if s.options.catalog != nil {
		s.options.catalog(&opts)
	}
	if s.catalog, err = catalog.New(s.t.Context(), s.store, s.grid, opts); err != nil {
		s.t.Fatal(err)
	}
	s.meter = usage.New(s.store, usage.Options{Log: opts.Log})
	mopts := Options{Catalog: s.catalog, Documents: s.docs, Counter: s.grid, Usage: s.meter, Tester: &pretender{}, Health: well{},
		Registry: registry.New(s.store, s.grid, registry.Options{Log: opts.Log}),
		Topics:   s.topics, Sources: s.grid, Connections: s.streams, Now: s.now.now, Log: opts.Log}
	if s.options.manage != nil {
		s.options.manage(&mopts)
	}
	h, err := New(mopts)
	if err != nil {
		s.t.Fatal(err)
	}
	s.handler = mount(h)
}

// mount puts h behind both version prefixes, without looking at the rest of a path.
func mount(h http.Handler) http.Handler {
	v1, latest := http.StripPrefix(BasePath, h), http.StripPrefix(latestPath, h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, latestPath) {
			latest.ServeHTTP(w, r)
			return
		}
		v1.ServeHTTP(w, r)
	})
}

func (s *server) stop() {
	if err := s.meter.Close(context.Background()); err != nil {
		s.t.Error(err)
	}
	s.catalog.Close()
	_ = s.grid.Close()
	if err := s.store.Close(); err != nil {
		s.t.Error(err)
	}
}

// restart closes everything and opens it again on the same data.
func (s *server) restart() {
	s.stop()
	s.start()
}

// documents stands for the router: what was published to each topic, and where that stands.
type documents map[string]published

type published struct {
	body string
	at   freshet.Position
}

func (d documents) Document(_ context.Context, topic freshet.Topic) ([]byte, freshet.Position, error) {
	return []byte(d[topic.ID].body), d[topic.ID].at, nil
}

// clock stands still unless it is told to go on. It starts at the real time: the grid's counters live by that.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Now().Truncate(time.Minute)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// recorder keeps what was logged.
type recorder struct {
	mu   sync.Mutex
	text strings.Builder
}

func (r *recorder) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

func (r *recorder) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// client is one caller. Every answer it gets is checked against the description.
type client struct {
	s      *server
	token  string
	id     string // of its user
	header http.Header
	remote string
}

func (s *server) stranger() *client { return &client{s: s, remote: "192.0.2.1:40000"} }

// response is what came back, with its body decompressed.
type response struct {
	t      *testing.T
	name   string // of the request, for messages
	status int
	header http.Header
	body   []byte
}

// call sends a request. body is JSON text as it is, nil for none, or a value to encode.
func (c *client) call(method, path string, body any) *response {
	c.s.t.Helper()
	var reader io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(b)
	default:
		text, err := json.Marshal(b)
		if err != nil {
			c.s.t.Fatal(err)
		}
		reader = strings.NewReader(string(text))
	}
	r := httptest.NewRequestWithContext(c.s.t.Context(), method, "/api/v1"+path, reader)
	if reader != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return c.send(r)
}

func (c *client) send(r *http.Request) *response {
	c.s.t.Helper()
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	r.Header.Set("Accept-Encoding", "gzip")
	for name, values := range c.header {
		r.Header[name] = values
	}
	r.RemoteAddr = c.remote
	w := httptest.NewRecorder()
	c.s.handler.ServeHTTP(w, r)
	a := &response{t: c.s.t, name: fmt.Sprintf("%s %s", r.Method, r.URL), status: w.Code, header: w.Result().Header}
	a.body = decompress(c.s.t, r, w)
	checkDescribed(c.s.t, r, a)
	return a
}

func (a *response) want(status int) *response {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("%s: status %d, want %d: %s", a.name, a.status, status, a.body)
	}
	return a
}

func (a *response) json() map[string]any {
	a.t.Helper()
	var v map[string]any
	if err := json.Unmarshal(a.body, &v); err != nil {
		a.t.Fatalf("%s: %v in %s", a.name, err, a.body)
	}
	return v
}

// at follows a dotted path into the body.
func (a *response) at(path string) any {
	a.t.Helper()
	var v any = a.json()
	for name := range strings.SplitSeq(path, ".") {
		object, ok := v.(map[string]any)
		if !ok {
			a.t.Fatalf("%s: no %s in %s", a.name, path, a.body)
		}
		v = object[name]
	}
	return v
}

func (a *response) text(path string) string {
	a.t.Helper()
	s, ok := a.at(path).(string)
	if !ok {
		a.t.Fatalf("%s: no text %s in %s", a.name, path, a.body)
	}
	return s
}

// link returns the href of a rel, or "".
func (a *response) link(rel string) string {
	a.t.Helper()
	links, _ := a.at("links").([]any)
	for _, l := range links {
		if l := l.(map[string]any); l["rel"] == rel {
			return l["href"].(string)
		}
	}
	return ""
}

// faults are the fields that an error names, with what it says about them.
func (a *response) faults() map[string]string {
	a.t.Helper()
	var b struct {
		Message string               `json:"message"`
		Errors  []freshet.FieldError `json:"errors"`
	}
	if err := json.Unmarshal(a.body, &b); err != nil || b.Message == "" {
		a.t.Fatalf("%s: not an error: %s", a.name, a.body)
	}
	all := map[string]string{}
	for _, f := range b.Errors {
		all[f.Field] = f.Message
	}
	return all
}

// lately stands for the router: what became of publications.
type lately map[string]router.Lately

func (l lately) Lately(topicID string) router.Lately { return l[topicID] }

// streams stands for the subscriber interface.
type streams struct {
	mu      sync.Mutex
	open    []freshet.Connection
	refused []freshet.Refusal
}

func (s *streams) Live(f freshet.ConnectionFilter, offset, limit int64) (list []freshet.Connection, total int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.open {
		if (f.UserID == "" || f.UserID == c.UserID) && (f.AppID == "" || f.AppID == c.AppID) && (f.TopicID == "" || f.TopicID == c.TopicID) {
			list = append(list, c)
		}
	}
	total = int64(len(list))
	offset = min(offset, total)
	return list[offset:min(offset+limit, total)], total
}

func (s *streams) Connection(id string) (freshet.Connection, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.open {
		if c.ID == id {
			return c, true
		}
	}
	return freshet.Connection{}, false
}

func (s *streams) Cut(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.open)
	s.open = slices.DeleteFunc(s.open, func(c freshet.Connection) bool { return c.ID == id })
	return len(s.open) < before
}

func (s *streams) Refusals(string) []freshet.Refusal { return s.refused }
func (s *streams) Subscribers(string) int64          { return 8 }
