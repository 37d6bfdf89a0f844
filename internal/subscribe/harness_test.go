package subscribe_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
	"github.com/freshet-io/freshet/internal/fanout"
	"github.com/freshet-io/freshet/internal/grid/memory"
	"github.com/freshet-io/freshet/internal/httpkit"
	"github.com/freshet-io/freshet/internal/router"
	"github.com/freshet-io/freshet/internal/store"
	"github.com/freshet-io/freshet/internal/subscribe"
	"github.com/freshet-io/freshet/internal/usage"
	"github.com/freshet-io/freshet/internal/wire"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// forEachPath runs a test on every way in which bytes reach a subscriber. Goroutines run in a bubble over pipes, where time
// costs nothing; event loops need real sockets and real time.
func forEachPath(t *testing.T, opts options, test func(t *testing.T, h *harness)) {
	t.Run("goroutines", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := newHarness(t, opts, newPipeListener(), -1)
			defer h.close()
			h.slow = 0
			test(t, h)
		})
	})
	if runtime.GOOS != "linux" {
		return
	}
	for name, alone := range map[string]bool{"loops": false, "at once": true} {
		t.Run(name, func(t *testing.T) {
			opts := opts
			opts.alone = alone
			h := newSocketHarness(t, opts)
			defer h.close()
			test(t, h)
		})
	}
}

// newSocketHarness is a server with event loops on a real port.
func newSocketHarness(t *testing.T, opts options) *harness {
	ln, err := fanout.Listen(t.Context(), "127.0.0.1:0", fanout.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return newHarness(t, opts, tcpListener{ln}, 2)
}

// options of a harness. The defaults are so long that no limit is met by accident, since event loops run in real time and the
// machine may be busy; a test that wants to meet one makes it short.
type options struct {
	heartbeat    time.Duration
	writeTimeout time.Duration
	recheck      time.Duration
	longPoll     time.Duration
	snapshot     time.Duration
	seatWait     time.Duration
	drainRate    int
	proxies      httpkit.Proxies
	max          int64
	perAccount   int64
	perApp       int64
	alone        bool  // there are no other nodes, so streams may be begun where they are accepted
	messages     int64 // per month; counted only if set
	appMessages  int64 // per month

	change func(*subscribe.Parts) // puts something in front of real parts
}

type harness struct {
	t       *testing.T
	grid    *memory.Grid
	store   *store.Store
	meter   *usage.Meter
	router  *router.Router
	fanout  *fanout.Fanout
	server  *subscribe.Server
	catalog *fakeCatalog
	http    *http.Server
	passed  atomic.Int64 // connections that net/http got
	address string
	client  *http.Client
	base    string
	logs    *lockedBuffer
	slow    time.Duration // how long after its time something may be seen: nothing in a bubble, a lot on a busy machine
}

// patience is how long anything may take before it is taken for a failure.
const patience = time.Minute

type dialer interface {
	net.Listener
	dial(ctx context.Context) (net.Conn, error)
}

func newHarness(t *testing.T, opts options, ln dialer, loops int) *harness {
	h := &harness{t: t, catalog: newFakeCatalog(), logs: new(lockedBuffer), slow: patience}
	h.catalog.quotas.Connections, h.catalog.appQuotas.Connections = opts.perAccount, opts.perApp
	log := slog.New(slog.NewTextHandler(h.logs, nil))
	h.grid = memory.New(memory.Options{MessageTTL: time.Hour})
	h.router = router.New(h.grid, router.Options{Log: log, MessageTTL: time.Hour})
	var err error
	h.fanout, err = fanout.New(fanout.Options{Log: log, Heartbeat: opts.heartbeat, WriteTimeout: orHour(opts.writeTimeout), DrainRate: opts.drainRate, Loops: loops})
	if err != nil {
		t.Fatal(err)
	}
	if opts.messages > 0 {
		if h.store, err = store.Open(context.Background(), store.Location{Dir: t.TempDir()}); err != nil {
			t.Fatal(err)
		}
		h.meter = usage.New(h.store, usage.Options{Log: log})
	}
	parts := subscribe.Parts{Log: log, Catalog: h.catalog, Router: h.router, Fanout: h.fanout, Notices: h.grid, Sources: h.grid, Counters: h.grid, Meter: h.meter, Alone: opts.alone}
	if opts.change != nil {
		opts.change(&parts)
	}
	h.server = subscribe.New(parts,
		subscribe.Options{Proxies: opts.proxies, MaxConnections: opts.max, SeatWait: opts.seatWait, Recheck: opts.recheck, LongPoll: orHour(opts.longPoll), SnapshotTimeout: orHour(opts.snapshot)})
	h.catalog.quotas.MessagesPerMonth, h.catalog.appQuotas.MessagesPerMonth = opts.messages, opts.appMessages
	h.http = &http.Server{Handler: h.server, ConnState: func(conn net.Conn, state http.ConnState) {
		wire.GuardState(conn, state)
		if state == http.StateNew {
			h.passed.Add(1)
		}
	}}
	h.address = ln.Addr().String()
	var served net.Listener = ln
	if tcp, ok := ln.(tcpListener); ok {
		served = h.fanout.Listen(tcp.Listener, h.server) // as in the real program
	}
	go h.http.Serve(served)
	h.client = &http.Client{Transport: &http.Transport{
		DialContext:        func(ctx context.Context, _, _ string) (net.Conn, error) { return ln.dial(ctx) },
		DisableCompression: true,
		DisableKeepAlives:  true,
	}}
	h.base = "http://subscriber.test"
	return h
}

func orHour(d time.Duration) time.Duration {
	if d == 0 {
		return time.Hour
	}
	return d
}

// late is a context that promises to end in a while and, on a busy machine, may end later than that.
type late struct {
	context.Context
	deadline time.Time
}

func (l late) Deadline() (time.Time, bool) { return l.deadline, true }

// within returns a context for what shall be done in d.
func (h *harness) within(d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(h.t.Context(), d+h.slow)
	return late{ctx, time.Now().Add(d)}, cancel
}

func (h *harness) close() {
	h.http.Close()
	h.fanout.Close()
	h.server.Close()
	h.router.Close()
	h.grid.Close()
	h.client.CloseIdleConnections()
	if h.meter != nil {
		if err := errors.Join(h.meter.Close(context.Background()), h.store.Close()); err != nil {
			h.t.Error(err)
		}
	}
}

// topic makes a topic that the catalog knows.
func (h *harness) topic(payload string) freshet.Topic {
	topic := freshet.Topic{ID: freshet.NewID(), Publisher: freshet.Publisher{Type: freshet.HTTPPost, Payload: freshet.Payload{Type: freshet.PayloadSnapshot}}}
	if payload == "item" {
		p, _ := freshet.ParseItemPath(".id")
		topic.Publisher.Payload = freshet.Payload{Type: freshet.PayloadItem, ItemIDPath: p}
	}
	h.catalog.mu.Lock()
	defer h.catalog.mu.Unlock()
	h.catalog.topics[topic.ID] = topic
	return topic
}

func (h *harness) post(topic freshet.Topic, body string) {
	h.t.Helper()
	if _, err := h.router.Publish(context.Background(), &topic, router.Publication{Body: []byte(body)}); err != nil {
		h.t.Fatalf("post %s: %v", body, err)
	}
}

// stream is one open subscription, read by a parser of its own.
type stream struct {
	t    *testing.T
	resp *http.Response
	r    *bufio.Reader
	stop context.CancelFunc
	raw  bytes.Buffer
}

type event struct{ id, name, data, retry, comment string }

func (e event) String() string { return fmt.Sprintf("%s %s", e.name, e.data) }

type header map[string]string

func (h *harness) get(path string, headers header) *stream {
	h.t.Helper()
	return h.request(http.MethodGet, path, headers)
}

func (h *harness) request(method, path string, headers header) *stream {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	req, err := http.NewRequestWithContext(ctx, method, h.base, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	req.URL.Opaque = path // as it is: the raw target decides
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	return h.do(req, cancel)
}

func (h *harness) do(req *http.Request, cancel context.CancelFunc) *stream {
	h.t.Helper()
	resp, err := h.client.Do(req)
	if err != nil {
		cancel()
		h.t.Fatalf("%s: %v", req.Method, err)
	}
	s := &stream{t: h.t, resp: resp, stop: cancel}
	body := io.TeeReader(resp.Body, &s.raw)
	switch resp.Header.Get("Content-Encoding") {
	case "gzip":
		zr, err := gzip.NewReader(body)
		if err != nil {
			h.t.Fatal(err)
		}
		s.r = bufio.NewReader(zr)
	case "deflate":
		zr, err := zlib.NewReader(body)
		if err != nil {
			h.t.Fatal(err)
		}
		s.r = bufio.NewReader(zr)
	default:
		s.r = bufio.NewReader(body)
	}
	return s
}

func (s *stream) close() {
	s.stop()
	s.resp.Body.Close()
}

var errEnd = errors.New("stream ended")

// next returns the next event or comment.
func (s *stream) next() (event, error) {
	var e event
	seen := false
	for {
		line, err := s.r.ReadString('\n')
		if err != nil {
			return e, errEnd
		}
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			if !seen {
				return e, errors.New("an empty line without an event")
			}
			return e, nil
		}
		seen = true
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "":
			e.comment = line[1:]
		case "id":
			e.id = value
		case "event":
			e.name = value
		case "data":
			if e.data != "" {
				return e, errors.New("two data lines")
			}
			e.data = value
		case "retry":
			e.retry = value
		default:
			return e, fmt.Errorf("line %q", line)
		}
	}
}

// expect reads the next event, passing over heartbeats.
func (s *stream) expect(name, data string) event {
	s.t.Helper()
	for {
		e, err := s.next()
		if err != nil {
			s.t.Fatalf("waiting for %s %s: %v", name, data, err)
		}
		if e.comment != "" {
			continue
		}
		if e.name != name || data != "" && e.data != data {
			s.t.Fatalf("got %v, want %s %s", e, name, data)
		}
		return e
	}
}

func (s *stream) expectEnd() {
	s.t.Helper()
	if e, err := s.next(); err != errEnd {
		s.t.Fatalf("the stream goes on with %v (%v)", e, err)
	}
}

// fakeCatalog knows topics and keys. Without keys, everybody may.
type fakeCatalog struct {
	mu     sync.Mutex
	topics map[string]freshet.Topic
	refuse map[string]*freshet.Error // by key
	asks   []catalog.SubscribeAsk
	quotas freshet.Quotas
	away   bool // what it knows is not at hand
	atHand int  // how often it was
	waited int  // how often somebody waited for an answer

	appQuotas freshet.Quotas
}

func newFakeCatalog() *fakeCatalog {
	return &fakeCatalog{topics: map[string]freshet.Topic{}, refuse: map[string]*freshet.Error{}}
}

func (c *fakeCatalog) MaySubscribe(_ context.Context, ask catalog.SubscribeAsk) (*catalog.Grant, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asks = append(c.asks, ask)
	c.waited++
	if err := c.refuse[ask.Key]; err != nil {
		return nil, err
	}
	topic, ok := c.topics[ask.TopicID]
	if !ok {
		return nil, freshet.Errorf(freshet.TopicNotFound, "There is no such topic")
	}
	return &catalog.Grant{Topic: topic, AppID: "app", UserID: "user", Quotas: c.quotas, AppQuotas: c.appQuotas}, nil
}

// MaySubscribeNow says yes to everybody whom MaySubscribe lets in without a limit.
func (c *fakeCatalog) MaySubscribeNow(ask *catalog.SubscribeAsk) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, known := c.topics[ask.TopicID]
	if c.away || !known || c.refuse[ask.Key] != nil || c.quotas != (freshet.Quotas{}) || c.appQuotas != (freshet.Quotas{}) {
		return false
	}
	c.asks = append(c.asks, *ask)
	c.atHand++
	return true
}

// Provision gives every source the topic whose name is its URL.
func (c *fakeCatalog) Provision(_ context.Context, ask catalog.SubscribeAsk) (*catalog.Grant, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asks = append(c.asks, ask)
	if err := c.refuse[ask.Key]; err != nil {
		return nil, err
	}
	for _, topic := range c.topics {
		if topic.Name == ask.Source.URL {
			return &catalog.Grant{Topic: topic, AppID: "app", UserID: "user", Quotas: c.quotas, AppQuotas: c.appQuotas}, nil
		}
	}
	return nil, freshet.Errorf(freshet.Unauthenticated, "not allowed")
}

func (c *fakeCatalog) lastAsk() catalog.SubscribeAsk {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asks[len(c.asks)-1]
}

// asked is how often anybody asked.
func (c *fakeCatalog) asked() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.asks)
}

func (c *fakeCatalog) setRefusal(key string, kind freshet.Kind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refuse[key] = freshet.Errorf(kind, "refused")
}

// lockedBuffer takes log lines while others read them.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

type tcpListener struct{ net.Listener }

func (l tcpListener) dial(ctx context.Context) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
}

// pipeListener connects within the process, so that a bubble can hold both ends.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
}

func (l *pipeListener) dial(context.Context) (net.Conn, error) {
	server, client := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }
