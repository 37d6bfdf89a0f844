package publish_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
	"github.com/freshet-io/freshet/internal/grid/memory"
	"github.com/freshet-io/freshet/internal/httpkit"
	"github.com/freshet-io/freshet/internal/publish"
	"github.com/freshet-io/freshet/internal/router"
	"github.com/freshet-io/freshet/internal/wire"
)

const (
	fastTopic  = "0f8fad5b-d9cb-469f-a165-70867728950e"
	fastPoller = "7c9e6679-7425-40de-944b-e07fc1f90ae7"
)

// testBypass lets everybody in, and counts them.
type testBypass struct {
	shut    atomic.Bool
	entered atomic.Int64
	left    atomic.Int64
}

func (b *testBypass) Enter(path string) (string, bool) {
	if b.shut.Load() {
		return "", false
	}
	b.entered.Add(1)
	return strings.TrimPrefix(path, "/publish/v1"), true
}

func (b *testBypass) Leave() { b.left.Add(1) }

// slowRouter makes publications wait until they are let through.
type slowRouter struct {
	*router.Router
	held atomic.Pointer[hold]
}

// hold is how publications wait.
type hold struct{ begun, through chan struct{} }

// hold makes publications wait from now on.
func (r *slowRouter) hold() *hold {
	h := &hold{make(chan struct{}), make(chan struct{})}
	r.held.Store(h)
	return h
}

func (r *slowRouter) Publish(ctx context.Context, topic *freshet.Topic, p router.Publication) (router.Outcome, error) {
	if h := r.held.Load(); h != nil {
		h.begun <- struct{}{}
		<-h.through
	}
	if strings.Contains(string(p.Body), "panic") {
		panic("as the test asked")
	}
	return r.Router.Publish(ctx, topic, p)
}

// fastServer is a publishing API on a real listener.
type fastServer struct {
	address string
	bypass  testBypass
	router  *slowRouter
	wire    *wire.Server
	http    *http.Server
	library atomic.Int64 // requests that left the fast path
}

func serve(t *testing.T, isFast bool, o publish.Options) *fastServer {
	t.Helper()
	if !isFast {
		return serveFor(t, o, 0)
	}
	return serveFor(t, o, time.Minute)
}

// serveFor serves with a fast path that waits so long for the next request, or without one.
func serveFor(t *testing.T, o publish.Options, idle time.Duration) *fastServer {
	t.Helper()
	g := memory.New(memory.Options{})
	t.Cleanup(func() { g.Close() })
	s := &fastServer{router: &slowRouter{Router: router.New(g, router.Options{})}}
	t.Cleanup(func() { s.router.Close() })
	known := fakeCatalog{
		fastTopic:  {ID: fastTopic, Publisher: freshet.Publisher{Type: freshet.HTTPPost, Payload: freshet.Payload{Type: freshet.PayloadSnapshot}}},
		fastPoller: {ID: fastPoller, Publisher: freshet.Publisher{Type: freshet.HTTPPoller}},
	}
	api, err := publish.New(slog.New(slog.DiscardHandler), known, s.router, o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = l.Addr().String()
	if idle > 0 {
		s.wire = &wire.Server{Handlers: []wire.Handler{api.FastPath(&s.bypass)}, HeadTimeout: time.Minute, IdleTimeout: idle,
			ConnContext: httpkit.ConnContext, Log: slog.New(slog.DiscardHandler)}
		t.Cleanup(s.wire.Close)
		l = s.wire.Listen(l)
	} else {
		l = wire.Guard(l)
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	handler := httpkit.Recover(slog.New(slog.DiscardHandler))(httpkit.DrainBodies(http.StripPrefix("/publish/v1", api)))
	s.http = &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.library.Add(1)
			handler.ServeHTTP(w, r)
		}),
		ConnContext:       httpkit.ConnContext,
		ReadHeaderTimeout: time.Minute,
		Protocols:         &protocols,
		ErrorLog:          slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
	}
	if s.wire != nil {
		s.http.ConnState = s.wire.ConnState
	}
	go s.http.Serve(l)
	t.Cleanup(func() { s.http.Close() })
	return s
}

func dial(t *testing.T, s *fastServer) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	return conn
}

// post is a plain publication; the fields are added to those that it must have.
func post(body string, fields ...string) string {
	head := "POST /publish/v1/topics/" + fastTopic + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nX-Sd-Publisher-Key: good\r\n"
	return fmt.Sprintf("%s%sContent-Length: %d\r\n\r\n%s", head, strings.Join(append(fields, ""), "\r\n"), len(body), body)
}

// answers sends a text and returns all that comes back: status, headers in order, whether that was the last word, and body. What
// differs every time is left out. It hangs up when it has as many answers as it asked for: who hangs up earlier has given up.
func answers(t *testing.T, s *fastServer, sent string, asked int) string {
	t.Helper()
	conn := dial(t, s)
	_, _ = io.WriteString(conn, sent) // it may be refused before all was sent
	var all strings.Builder
	for r := bufio.NewReader(conn); ; {
		if asked == 0 {
			_ = conn.(*net.TCPConn).CloseWrite()
		}
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			fmt.Fprintln(&all, "then", errors.Is(err, io.ErrUnexpectedEOF))
			return all.String()
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Errorf("the body: %v", err)
		}
		for _, name := range []string{"Date", "Etag"} {
			if resp.Header.Get(name) != "" {
				resp.Header.Set(name, "some")
			}
		}
		if resp.StatusCode >= http.StatusOK { // what comes before is no answer
			asked--
		}
		fmt.Fprintln(&all, resp.Proto, resp.Status, resp.Header, resp.Close, string(body))
	}
}

// fastCases are requests as they come over the wire, and whether the fast path is expected to take them.
var fastCases = []struct {
	name  string
	sent  string
	taken bool
}{
	{"a publication", post(`{"a":1}`), true},
	{"a publication in small letters", strings.ReplaceAll(post(`{"a":1}`), "X-Sd-Publisher-Key", "x-sd-publisher-key"), true},
	{"with what clients like to send", post(`{"a":1}`, "User-Agent: Go-http-client/1.1", "Accept-Encoding: gzip", "Accept: */*", "Connection: keep-alive"), true},
	{"with a charset", strings.Replace(post(`1`), "json\r", "json; charset=utf-8\r", 1), true},
	{"not JSON", post(`{"a":`), true},
	{"a long one", post(`"` + strings.Repeat("x", 60_000) + `"`), true},
	{"too long for the fast path", post(`"` + strings.Repeat("x", 80_000) + `"`), false},
	{"too long", post(`"` + strings.Repeat("x", 300_000) + `"`), false},
	{"one that makes us panic", post(`"panic"`), true},
	{"half a body", post(`{"a":1}`)[:len(post(`{"a":1}`))-2], true},
	{"half a head", post(`{"a":1}`)[:90], false},
	{"no body", post(``), false},
	{"a wrong key", strings.Replace(post(`1`), "good", "bad", 1), false},
	{"no key", strings.Replace(post(`1`), "X-Sd-Publisher-Key", "X-Sd-Other", 1), false},
	{"two keys", post(`1`, "X-Sd-Publisher-Key: good"), false},
	{"another topic", strings.Replace(post(`1`), fastTopic, "11111111-d9cb-469f-a165-70867728950e", 1), false},
	{"a poller's topic", strings.Replace(post(`1`), fastTopic, fastPoller, 1), false},
	{"no topic", strings.Replace(post(`1`), fastTopic, "", 1), false},
	{"a longer path", strings.Replace(post(`1`), fastTopic, fastTopic+"/x", 1), false},
	{"a query", strings.Replace(post(`1`), fastTopic, fastTopic+"?x=1", 1), false},
	{"an encoded path", strings.Replace(post(`1`), "topics", "%74opics", 1), false},
	{"a whole URL", strings.Replace(post(`1`), "/publish", "http://localhost/publish", 1), false},
	{"another media type", strings.Replace(post(`1`), "application/json", "text/plain", 1), false},
	{"a condition that holds", post(`{"a":1}`, `If-Match: "1"`), false},
	{"an idempotency key", post(`{"a":1}`, "Idempotency-Key: x"), false},
	{"from a page", post(`{"a":1}`, "Origin: http://localhost"), false},
	{"who asks first", post(`{"a":1}`, "Expect: 100-continue"), false},
	{"for the last time", post(`{"a":1}`, "Connection: close"), false},
	{"a strange encoding", post(`{"a":1}`, "Content-Encoding: br"), false},
	{"two lengths", post(`{"a":1}`, "Content-Length: 7"), false},
	{"a length and chunks", post("1\r\n1\r\n0\r\n\r\n", "Transfer-Encoding: chunked"), false},
	{"a folded line", post(`{"a":1}`, "X-Request-Id: a\r\n b"), false},
	{"a space before the colon", post(`{"a":1}`, "X-Request-Id : a"), false},
	{"a bare line feed", strings.Replace(post(`{"a":1}`), "localhost\r\n", "localhost\n", 1), false},
	{"a bare carriage return", post(`{"a":1}`, "X-Request-Id: a\rb"), false},
	{"no host", strings.Replace(post(`{"a":1}`), "Host: localhost\r\n", "", 1), false},
	{"two hosts", post(`{"a":1}`, "Host: other"), false},
	{"a strange host", strings.Replace(post(`{"a":1}`), "localhost", "local host", 1), false},
	{"an old version", strings.Replace(post(`{"a":1}`), "HTTP/1.1", "HTTP/1.0", 1), false},
	{"a newer one", strings.Replace(post(`{"a":1}`), "HTTP/1.1", "HTTP/1.2", 1), false},
	{"a patch", strings.Replace(post(`[]`), "POST", "PATCH", 1), false},
	{"a question", "GET /publish/v1/openapi.json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", false},
	{"two at once", post(`{"a":1}`) + post(`{"a":2}`), false},
	{"garbage", "\x00\x01\x02\r\n\r\n", false},
	{"nothing", "", false},
}

// Whatever comes, with the fast path and without it the answers are the same to the byte.
func TestTheFastPathAnswersAsTheLibraryDoes(t *testing.T) {
	for _, c := range fastCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := publish.Options{MaxBody: 200_000, Counter: &minuteCounter{}}
			fast := serve(t, true, o)
			o.Counter = &minuteCounter{}
			library := serve(t, false, o)
			asked := strings.Count(c.sent, " HTTP/1.")
			if strings.HasPrefix(c.name, "half") {
				asked = 0
			}
			got, want := answers(t, fast, c.sent, asked), answers(t, library, c.sent, asked)
			if got != want {
				t.Errorf("the fast path answers\n%s\nthe library\n%s", got, want)
			}
			if c.taken && fast.library.Load() > 0 {
				t.Error("the fast path has not taken it")
			}
			if entered, left := fast.bypass.entered.Load(), fast.bypass.left.Load(); entered != left {
				t.Errorf("%d entered and %d left", entered, left)
			}
		})
	}
}

// tight is a quota of so many bytes for a document.
type tight int

func (q tight) Reserve(_ context.Context, before, after int) (func(error), error) {
	if after > int(q) && after >= before {
		return nil, freshet.Errorf(freshet.DocumentLimit, "The documents of the app would be %d bytes together, and its quota document_bytes is %d", after, int(q))
	}
	return func(error) {}, nil
}

func TestTheFastPathRefusesWhatIsOverTheQuotaAsTheLibraryDoes(t *testing.T) {
	o := publish.Options{Quota: func(*catalog.Grant) router.Quota { return tight(7) }}
	fast, library := serve(t, true, o), serve(t, false, o)
	for sent, status := range map[string]string{post(`{"a":1}`): "HTTP/1.1 204", post(`{"a":10}`): "HTTP/1.1 507"} {
		got, want := answers(t, fast, sent, 1), answers(t, library, sent, 1)
		if got != want || !strings.HasPrefix(got, status) || status == "HTTP/1.1 507" && !strings.Contains(got, "quota document_bytes is 7") {
			t.Errorf("the fast path answers\n%s\nthe library\n%s", got, want)
		}
	}
	if fast.library.Load() > 0 {
		t.Error("the fast path has not taken it")
	}
}

// A publication is the same however it is cut.
func TestTheFastPathTakesWhatComesInPieces(t *testing.T) {
	sent := post(`{"a":1}`)
	s := serve(t, true, publish.Options{})
	for i := 1; i < len(sent); i++ {
		conn := dial(t, s)
		for _, part := range []string{sent[:i], sent[i:]} {
			if _, err := io.WriteString(conn, part); err != nil {
				t.Fatal(err)
			}
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || resp.StatusCode != http.StatusNoContent {
			t.Fatalf("cut at %d: %v %v", i, resp, err)
		}
		conn.Close()
	}
}

// One connection may bring publications, then something else, then publications again.
func TestAConnectionLeavesTheFastPathWithWhatItBrings(t *testing.T) {
	s := serve(t, true, publish.Options{})
	conn := dial(t, s)
	r := bufio.NewReader(conn)
	for i, c := range []struct {
		sent    string
		status  int
		library int64 // requests so far that were the library's
	}{
		{post(`{"a":1}`), 204, 0},
		{post(`{"a":`), 400, 0},
		{post(`{"a":2}`), 204, 0},
		{post(`{"a":3}`, `If-Match: "2"`), 204, 1},
		{post(`{"a":4}`), 204, 2},
		{strings.Replace(post(`{"a":5}`), "good", "bad", 1), 401, 3},
	} {
		if _, err := io.WriteString(conn, c.sent); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Fatal(err)
		}
		if n := s.library.Load(); resp.StatusCode != c.status || n != c.library {
			t.Errorf("request %d: %d, and %d were the library's", i, resp.StatusCode, n)
		}
	}
}

// While the bypass is shut, and from the first request that finds it so, everything is the library's.
func TestTheFastPathHeedsTheBypass(t *testing.T) {
	s := serve(t, true, publish.Options{})
	conn := dial(t, s)
	r := bufio.NewReader(conn)
	publishOn := func() {
		t.Helper()
		if _, err := io.WriteString(conn, post(`1`)); err != nil {
			t.Fatal(err)
		}
		if resp, err := http.ReadResponse(r, nil); err != nil || resp.StatusCode != http.StatusNoContent {
			t.Fatal(resp, err)
		}
	}
	publishOn()
	s.bypass.shut.Store(true)
	publishOn()
	if n := s.library.Load(); n != 1 {
		t.Errorf("the library had %d", n)
	}
}

// What was begun when the service ends is answered; who waits with nothing under way is let go; who comes later is served by the library.
func TestTheFastPathClosesBehindWhatIsUnderWay(t *testing.T) {
	s := serve(t, true, publish.Options{})
	idle, busy := dial(t, s), dial(t, s)
	if _, err := io.WriteString(idle, post(`1`)); err != nil {
		t.Fatal(err)
	}
	idleAnswers := bufio.NewReader(idle)
	if _, err := http.ReadResponse(idleAnswers, nil); err != nil {
		t.Fatal(err)
	}
	held := s.router.hold()
	if _, err := io.WriteString(busy, post(`2`)); err != nil {
		t.Fatal(err)
	}
	<-held.begun
	ended := make(chan error, 1)
	go func() { ended <- s.wire.Shutdown(t.Context(), s.http) }()
	if b, err := idleAnswers.ReadByte(); err != io.EOF {
		t.Errorf("who waits gets %v, %v", b, err)
	}
	held.through <- struct{}{}
	resp, err := http.ReadResponse(bufio.NewReader(busy), nil)
	if err != nil || resp.StatusCode != http.StatusNoContent || !resp.Close {
		t.Errorf("what was under way: %v %v", resp, err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A server does not wait longer than it may.
func TestTheFastPathGivesUpOnWhatTakesTooLong(t *testing.T) {
	s := serve(t, true, publish.Options{})
	held := s.router.hold()
	if _, err := io.WriteString(dial(t, s), post(`1`)); err != nil {
		t.Fatal(err)
	}
	<-held.begun
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.wire.Shutdown(over, s.http); err == nil {
		t.Error("it says that all was answered")
	}
	close(held.through)
	if err := s.wire.Shutdown(t.Context(), s.http); err != nil {
		t.Error(err)
	}
}

// A client that sends a part of its body and no more is answered, and let go.
func TestTheFastPathDoesNotWaitForABodyWithoutEnd(t *testing.T) {
	s := serve(t, true, publish.Options{BodyTimeout: time.Millisecond})
	conn := dial(t, s)
	sent := post(`{"a":1}`)
	if _, err := io.WriteString(conn, sent[:len(sent)-3]); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, nil)
	if err != nil || resp.StatusCode != http.StatusBadRequest || !resp.Close {
		t.Fatal(resp, err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	if _, err := r.ReadByte(); err != io.EOF {
		t.Errorf("then %v", err)
	}
}

func TestHTTP2PassesTheFastPath(t *testing.T) {
	s := serve(t, true, publish.Options{})
	var only http.Protocols
	only.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: &only}
	defer transport.CloseIdleConnections()
	for range 2 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.address+"/publish/v1/topics/"+fastTopic, strings.NewReader(`{"a":1}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Content-Type": {"application/json"}, "X-Sd-Publisher-Key": {"good"}}
		resp, err := transport.RoundTrip(r)
		if err != nil || resp.StatusCode != http.StatusNoContent || resp.ProtoMajor != 2 {
			t.Fatal(resp, err)
		}
		resp.Body.Close()
	}
}

// A publisher that says nothing more is let go.
func TestTheFastPathLetsGoOfWhoIsSilent(t *testing.T) {
	s := serveFor(t, publish.Options{}, time.Millisecond)
	conn := dial(t, s)
	if _, err := io.WriteString(conn, post(`1`)); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	if resp, err := http.ReadResponse(r, nil); err != nil || resp.StatusCode != http.StatusNoContent {
		t.Fatal(resp, err)
	}
	if _, err := r.ReadByte(); err != io.EOF {
		t.Errorf("then %v", err)
	}
}
