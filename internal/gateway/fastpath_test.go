package gateway

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/freshet-io/freshet/internal/wire"
)

// pair is one gateway behind two listeners, with a fast path and without.
type pair struct {
	*world
	fast, library *httptest.Server
	passed        atomic.Int64 // requests that left the fast path
}

func newPair(t *testing.T, change ...func(*Options)) *pair {
	p := &pair{world: newWorld(t, change...)}
	p.fast = p.listen(true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.passed.Add(1)
		p.gateway.ServeHTTP(w, r)
	}))
	p.library = p.listen(false, p.gateway)
	return p
}

func get(path string, fields ...string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + strings.Join(append(fields, ""), "\r\n") + "\r\n"
}

// exchangeRaw sends pieces and returns all answers: status, headers, whether that was the last word, and body. Each piece is sent
// when the one before is answered, or nothing comes for a while; those that are early, when its answer has only begun.
func exchangeRaw(t *testing.T, front *httptest.Server, isEarly bool, sent ...string) string {
	t.Helper()
	conn, err := net.Dial("tcp", front.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var all strings.Builder
	r := bufio.NewReader(conn)
	for _, piece := range sent {
		_, _ = io.WriteString(conn, piece) // it may be refused before all was sent
		patience := time.Minute
		if !isAnswered(piece) {
			patience = 500 * time.Millisecond
		}
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		_, err := r.Peek(1)
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		if err == nil && !isEarly && !readAnswer(t, r, &all) {
			return all.String()
		}
	}
	if isEarly { // who hangs up before the answer counts as gone, and then it is chance what is still answered
		for range strings.Count(strings.Join(sent, ""), "\r\n\r\n") {
			if !readAnswer(t, r, &all) {
				return all.String()
			}
		}
	}
	_ = conn.(*net.TCPConn).CloseWrite()
	for readAnswer(t, r, &all) {
	}
	return all.String()
}

// isAnswered reports whether a piece ends a request, as far as that can be seen from it.
func isAnswered(piece string) bool {
	hasBody := strings.Contains(piece, "Content-Length: ") && !strings.Contains(piece, "Content-Length: 0\r\n")
	return strings.HasSuffix(piece, "\r\n\r\n") && !hasBody
}

// readAnswer returns false behind the last one.
func readAnswer(t *testing.T, r *bufio.Reader, all *strings.Builder) bool {
	t.Helper()
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		fmt.Fprintln(all, "then", errors.Is(err, io.ErrUnexpectedEOF))
		return false
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if date, err := http.ParseTime(resp.Header.Get("Date")); err != nil || time.Since(date).Abs() < time.Hour {
		resp.Header.Del("Date") // ours
	}
	fmt.Fprintln(all, resp.Proto, resp.Status, resp.Header, resp.TransferEncoding, resp.ContentLength, resp.Close, string(body), err, resp.Trailer)
	return true
}

// fastCases are requests as they come over the wire, piece by piece, and how many of them the library has to answer.
var fastCases = []struct {
	name   string
	sent   []string
	passed int64 // -1: one or another, as it happens
}{
	{"a plain request", []string{get("/echo/a")}, 0},
	{"with what clients like to send", []string{get("/echo/a?b=c&d=%20", "User-Agent: x/1", "accept: */*", "Accept-Encoding: gzip", "Cookie: a=1", "cookie: b=2", "Connection: keep-alive")}, 0},
	{"several", []string{get("/echo/a"), get("/echo/b"), get("/echo/c")}, 0},
	{"spoofed", []string{get("/echo/a", "X-Consumer-ID: evil", "X_Consumer_ID: evil", "X-Forwarded-For: 1.2.3.4", "X-Real-IP: 1.2.3.4", "Forwarded: for=1.2.3.4", "X-Freshet-Hops: 2")}, 0},
	{"an odd path", []string{get("/echo/%41%2f//ö?%zz")}, 1},
	{"an encoded path", []string{get("/echo/%41%2f//x?%zz&#a")}, 0},
	{"upwards", []string{get("/echo/../../x")}, 0},
	{"in circles", []string{get("/echo", "X-Freshet-Hops: 8")}, 0},
	{"nowhere", []string{get("/nowhere"), get("/echo/a")}, 2},
	{"our own API", []string{get("/api/v1/x"), get("/echo/a"), get("/publish/v1/y"), get("/echo/a")}, 4},
	{"no answer", []string{get("/refused"), get("/echo/a")}, 0},
	{"a broken answer", []string{get("/broken"), get("/echo/a")}, 0},
	{"chunks", []string{get("/chunks"), get("/echo/a"), get("/chunks")}, 0},
	{"an early hint", []string{get("/hint"), get("/echo/a")}, 0},
	{"no content", []string{get("/none"), get("/echo/a")}, 0},
	{"a long answer", []string{get("/long"), get("/echo/a"), get("/long")}, 0},
	{"an answer that breaks off", []string{get("/cut")}, 0},
	{"an answer until the end", []string{get("/open"), get("/echo/a")}, 0},
	{"a strange status", []string{get("/strange"), get("/echo/a")}, 0},
	{"a late answer", []string{get("/late"), get("/echo/a"), get("/late"), get("/echo/a")}, 0},
	{"a late long one", []string{get("/late/long"), get("/echo/a")}, 0},
	{"an old date", []string{get("/dated")}, 0},
	{"plugins", []string{get("/guarded", "apikey: good"), get("/guarded?apikey=good&x=1"), get("/guarded", "apikey: good", "Origin: http://a.example")}, 0},
	{"refused by a plugin", []string{get("/guarded"), get("/guarded", "apikey: bad"), get("/guarded", "apikey: good")}, 0},
	{"a plugin over an upstream", []string{get("/overruled", "Origin: http://a.example")}, 0},
	{"by host", []string{strings.Replace(get("/x"), "localhost", "echo.example", 1), strings.Replace(get("/x"), "localhost", "ECHO.example:8000", 1)}, 0},
	{"a strange host", []string{strings.Replace(get("/echo/a"), "localhost", "local host", 1)}, 0},
	{"another strange host", []string{strings.Replace(get("/echo/a"), "localhost", "a/b", 1)}, 0},
	{"a host that the library takes", []string{strings.Replace(get("/echo/a"), "localhost", "a'b", 1), get("/echo/a")}, 2},
	{"an empty host", []string{strings.Replace(get("/echo/a"), "localhost", "", 1), get("/echo/a")}, 2},
	{"no host", []string{strings.Replace(get("/echo/a"), "Host: localhost\r\n", "", 1)}, 0},
	{"two hosts", []string{get("/echo/a", "Host: other")}, 0},
	{"an old version", []string{strings.Replace(get("/echo/a"), "HTTP/1.1", "HTTP/1.0", 1)}, 1},
	{"for the last time", []string{get("/echo/a"), get("/echo/b", "Connection: close"), get("/echo/c")}, 0},
	{"in two minds about the last time", []string{get("/echo/a", "Connection: keep-alive", "Connection: close"), get("/echo/b")}, 0},
	{"naming a header", []string{get("/echo/a", "Connection: X-A", "X-A: 1"), get("/echo/b")}, 2},
	{"an empty pragma", []string{get("/echo/a", "Pragma:"), get("/echo/b")}, 0},
	{"no cache", []string{get("/echo/a", "Pragma: no-cache"), get("/echo/b")}, 0},
	{"trailers wanted", []string{get("/echo/a", "TE: trailers"), get("/echo/b")}, 2},
	{"an upgrade", []string{get("/echo/a", "Connection: Upgrade", "Upgrade: x")}, 1},
	{"who asks first", []string{get("/echo/a", "Expect: 100-continue"), get("/echo/b")}, 2},
	{"an empty body", []string{get("/echo/a", "Content-Length: 0"), get("/echo/b")}, 2},
	{"a body", []string{get("/echo/a", "Content-Length: 2") + "ok", get("/echo/b")}, 2},
	{"a body that comes later", []string{get("/echo/a", fmt.Sprint("Content-Length: ", len(get("/echo/evil")))), get("/echo/evil"), get("/echo/b")}, 2},
	{"chunks to us", []string{get("/echo/a", "Transfer-Encoding: chunked") + "2\r\nok\r\n0\r\n\r\n", get("/echo/b")}, 2},
	{"a length and chunks", []string{get("/echo/a", "Content-Length: 2", "Transfer-Encoding: chunked") + "0\r\n\r\n"}, 0},
	{"framing in other words", []string{get("/echo/a", "Content_Length: 2", "Transfer_Encoding: chunked")}, 0},
	{"another method", []string{strings.Replace(get("/echo/a"), "GET", "OPTIONS", 1), get("/echo/a")}, 0},
	{"a made-up method", []string{"X" + get("/echo/a"), get("/echo/a")}, 2},
	{"two at once", []string{get("/echo/a") + get("/echo/b"), get("/echo/c")}, 0},
	{"one and a half at once", []string{get("/echo/a") + "GET /echo/b HTTP/1.1\r\nX: ", get("/echo/evil")}, 0},
	{"half a head", []string{"GET /echo/a HTTP/1.1\r\nX: ", get("/echo/evil")}, 0},
	{"half a word", []string{"GE", "T /echo/a HTTP/1.1\r\nHost: x\r\n\r\n", get("/echo/b")}, 0},
	{"one behind a long answer", []string{get("/slow"), "X", get("/echo/evil")}, 1},
	{"a part behind a long answer", []string{get("/slow"), "GET /echo/b HTTP/1.1\r\nX: ", get("/echo/evil")}, -1},
	{"a letter while our own API answers", []string{get("/slow/v1/x"), "X", get("/echo/evil")}, 2},
	{"a request while our own API answers", []string{get("/slow/v1/x"), get("/echo/a"), get("/echo/b")}, 3},
	{"a line too early", []string{"\r\n" + get("/echo/a"), get("/echo/b")}, 0},
	{"a line before the next one", []string{get("/echo/a"), "\r\n" + get("/echo/b"), get("/echo/c")}, 0},
	{"a folded line", []string{get("/echo/a", "X: a\r\n b")}, 1},
	{"a space before the colon", []string{get("/echo/a", "X : b")}, 0},
	{"a bare line feed", []string{strings.Replace(get("/echo/a"), "localhost\r\n", "localhost\n", 1)}, 0},
	{"a bare carriage return", []string{get("/echo/a", "X: a\rb")}, 0},
	{"a control character", []string{get("/echo/a", "X: a\x00b")}, 0},
	{"letters beyond ASCII", []string{get("/echo/a", "X: ä")}, 0},
	{"many fields", []string{get("/echo/a", strings.Split(strings.TrimSuffix(strings.Repeat("X: 1\r\n", 101), "\r\n"), "\r\n")...)}, 1},
	{"a long field", []string{get("/echo/a", "X: "+strings.Repeat("x", 9000)), get("/echo/b")}, 2},
	{"a whole URL", []string{strings.Replace(get("/echo/a"), "/echo", "http://localhost/echo", 1), get("/echo/b")}, 2},
	{"garbage", []string{"\x00\x01\r\n\r\n"}, 0},
	{"TLS", []string{"\x16\x03\x01\x02\x00\x01\x00\x01\xfc"}, 0},
}

func TestAClientCannotTellTheFastPathFromTheLibrary(t *testing.T) {
	p := newPair(t, func(o *Options) { o.APIs = append(o.APIs, API{"slow", "v1", http.HandlerFunc(answerSlowly)}) })
	registerKinds(t, p.world)
	eventually(t, "the table is up to date", func() bool { return p.gateway.outdated.waiting() == nil })
	for _, c := range fastCases {
		t.Run(c.name, func(t *testing.T) {
			before := p.passed.Load()
			isEarly := strings.HasPrefix(c.sent[0], "GET /slow")
			fast, library := exchangeRaw(t, p.fast, isEarly, c.sent...), exchangeRaw(t, p.library, isEarly, c.sent...)
			fast = strings.ReplaceAll(fast, p.fast.Listener.Addr().String(), "here")
			library = strings.ReplaceAll(library, p.library.Listener.Addr().String(), "here")
			if fast = withoutPort(fast, p.fast); fast != withoutPort(library, p.library) {
				t.Errorf("the fast path answers\n%s\nand the library\n%s", fast, library)
			}
			if strings.Contains(fast, `"Method":"GET","Target":"/echo/evil"`) {
				t.Errorf("what was no request is answered:\n%s", fast)
			}
			if n := p.passed.Load() - before; c.passed >= 0 && n != c.passed {
				t.Errorf("the library had %d, want %d:\n%s", n, c.passed, fast)
			}
		})
	}
}

type panickingCounter struct{}

func (panickingCounter) Add(context.Context, string, int64, time.Duration) (int64, error) {
	panic("as the test asked")
}

// One bad request cannot end a process, nor a connection.
func TestAPanicOnTheFastPathIsAnswered(t *testing.T) {
	p := newPair(t, func(o *Options) { o.Counter = panickingCounter{} })
	up := newUpstreamServer(t)
	p.register("/echo", up.URL)
	p.must("POST", "/apis/", "name", "limited", "request_path", "/limited", "upstream_url", up.URL)
	p.must("POST", "/apis/limited/plugins", "name", "rate-limiting", "config.minute", "5")
	sent := []string{get("/limited"), get("/echo/a")}
	fast, library := exchangeRaw(t, p.fast, false, sent...), exchangeRaw(t, p.library, false, sent...)
	if fast = withoutPort(fast, p.fast); fast != withoutPort(library, p.library) || !strings.Contains(fast, "500 Internal Server Error") {
		t.Errorf("the fast path answers\n%s\nand the library\n%s", fast, library)
	}
	if !strings.Contains(p.logs.String(), "as the test asked") {
		t.Error("nobody says so")
	}
}

// What was begun on the fast path when the service ends is answered to its end, by whomever.
func TestAnswersUnderWayAreFinished(t *testing.T) {
	for name, c := range map[string]struct{ answer, want string }{
		"short":      {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-A: 1\r\n\r\nok", "200 ok <nil>"},
		"long":       {"HTTP/1.1 404 Gone\r\nContent-Length: 9000\r\nX-A: 1\r\n\r\n" + strings.Repeat("x", 9000), "404 " + strings.Repeat("x", 9000) + " <nil>"},
		"in chunks":  {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\nX-A: 1\r\n\r\n2\r\nok\r\n0\r\nX-T: 1\r\n\r\n", "200 ok <nil>"},
		"hinted":     {"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nX-A: 1\r\nContent-Length: 2\r\n\r\nok", "200 ok <nil>"},
		"none":       {"nonsense\r\n\r\n", `502 {"message":"An invalid response was received from the upstream server"}` + "\n <nil>"},
		"broken off": {"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\nX-A: 1\r\n\r\nxx", "200 xx unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t)
			asked, release := make(chan struct{}), make(chan struct{})
			p.register("/held", holdingServer(t, c.answer, asked, release))
			p.register("/echo", newUpstreamServer(t).URL)
			eventually(t, "the table is up to date", func() bool { return p.gateway.outdated.waiting() == nil })
			conn, err := net.Dial("tcp", p.fast.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(time.Minute))
			r := bufio.NewReader(conn)
			for _, path := range []string{"/echo", "/held"} { // a connection that has been idle
				if _, err := io.WriteString(conn, get(path)); err != nil {
					t.Fatal(err)
				}
				if path == "/echo" {
					readAnswer(t, r, new(strings.Builder))
				}
			}
			<-asked
			ended := make(chan error, 1)
			go func() {
				ended <- p.wire.Shutdown(context.Background(), p.fast.Config)
			}()
			eventually(t, "it does not accept any more", func() bool { return !canDial(p.fast) })
			close(release)
			resp, err := http.ReadResponse(r, nil)
			if err == nil && resp.StatusCode == http.StatusEarlyHints {
				resp, err = http.ReadResponse(r, nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			if got := fmt.Sprint(resp.StatusCode, " ", string(body), " ", err); got != c.want || !resp.Close {
				t.Errorf("%.200s, last %v; want %.200s", got, resp.Close, c.want)
			}
			if want := resp.StatusCode != http.StatusBadGateway; want != (resp.Header.Get("X-A") == "1") {
				t.Error(resp.Header)
			}
			if _, err := r.ReadByte(); err == nil {
				t.Error("more follows")
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if n := p.passed.Load(); n > 0 {
				t.Errorf("%d requests left the fast path", n)
			}
			if n := p.gateway.traffic.begun.Load() - p.gateway.traffic.answered.Load(); n != 0 {
				t.Errorf("%d requests seem to be under way", n)
			}
		})
	}
}

// holdingServer is an upstream that says when it was asked, and waits before it answers.
func holdingServer(t *testing.T, text string, asked chan<- struct{}, release <-chan struct{}) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
			return
		}
		asked <- struct{}{}
		<-release
		_, _ = io.WriteString(conn, text)
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return "http://" + l.Addr().String()
}

// withoutPort hides the port that upstreams are told.
func withoutPort(text string, front *httptest.Server) string {
	_, port, _ := net.SplitHostPort(front.Listener.Addr().String())
	return strings.ReplaceAll(text, port, "PORT")
}

// registerKinds registers upstreams that answer in every way there is.
func registerKinds(t *testing.T, w *world) {
	t.Helper()
	up := newUpstreamServer(t)
	w.register("/echo", up.URL)
	w.must("POST", "/apis/", "name", "hosted", "request_host", "echo.example", "upstream_url", up.URL)
	w.register("/refused", "http://127.0.0.1:1")
	for path, answer := range map[string]string{
		"/broken":    "nonsense\r\n\r\n",
		"/chunks":    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n2\r\nok\r\n0\r\nX-T: 1\r\n\r\n",
		"/hint":      "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"/none":      "HTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n",
		"/long":      "HTTP/1.1 200 OK\r\nContent-Length: 70000\r\n\r\n" + strings.Repeat("x", 70000),
		"/cut":       "HTTP/1.1 200 OK\r\nContent-Length: 70000\r\n\r\nxx",
		"/open":      "HTTP/1.1 200 OK\r\n\r\nuntil the end",
		"/strange":   "HTTP/1.1 299 Strange\r\nContent-Length: 0\r\nx-Odd_name: 1\r\nX-Odd_name: 2\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\n\r\n",
		"/dated":     "HTTP/1.1 404 Away\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 4\r\nServer: x\r\n\r\ngone",
		"/overruled": "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nAccess-Control-Allow-Origin: theirs\r\nVary: Accept\r\n\r\n",
	} {
		w.must("POST", "/apis/", "name", path[1:], "request_path", path, "upstream_url", rawServer(t, answer))
	}
	slow := httptest.NewServer(http.HandlerFunc(answerSlowly))
	t.Cleanup(slow.Close)
	w.register("/slow", slow.URL)
	late := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(120 * time.Millisecond) // longer than a glance
		_, _ = io.WriteString(w, "late")
		if strings.HasSuffix(r.URL.Path, "long") {
			_, _ = io.WriteString(w, strings.Repeat("x", 10_000))
		}
	}))
	t.Cleanup(late.Close)
	w.register("/late", late.URL)
	w.must("POST", "/apis/overruled/plugins", "name", "cors", "config.origin", "http://a.example")
	w.must("POST", "/apis/", "name", "guarded", "request_path", "/guarded", "upstream_url", up.URL)
	w.must("POST", "/apis/guarded/plugins", "name", "key-auth", "config.hide_credentials", "true")
	w.must("POST", "/apis/guarded/plugins", "name", "cors")
	w.must("POST", "/consumers/", "username", "bob")
	w.must("POST", "/consumers/bob/key-auth", "key", "good")
}

func answerSlowly(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, "first")
	_ = http.NewResponseController(w).Flush()
	time.Sleep(150 * time.Millisecond)
	_, _ = io.WriteString(w, "second")
}

// What the fast path makes of a request is what the library's server would have given to its handler.
func FuzzTheFastPathReadsWhatTheLibraryReads(f *testing.F) {
	for _, c := range fastCases {
		for _, s := range c.sent {
			f.Add([]byte(s))
		}
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		var head wire.Request
		if !head.Parse(string(sent)) || head.Length > 0 {
			return
		}
		got := head.HTTP()
		if got == nil || !canSend(got) {
			return
		}
		want := served(sent)
		if want == nil {
			t.Fatalf("%q is taken, and refused by the library", sent)
		}
		if got.Method != want.Method || !reflect.DeepEqual(got.URL, want.URL) || got.RequestURI != want.RequestURI || got.Host != want.Host ||
			got.Proto != want.Proto || got.ContentLength != want.ContentLength || got.Close != want.Close || len(want.TransferEncoding) > 0 ||
			!reflect.DeepEqual(got.Header, want.Header) {
			t.Errorf("%q is\n%+v\nand\n%+v by the library", sent, got, want)
		}
	})
}

// canDial reports whether a server accepts connections.
func canDial(s *httptest.Server) bool {
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err == nil {
		conn.Close()
	}
	return err == nil
}

// served is the request that the library's server makes of a text, or nil.
func served(sent []byte) (r *http.Request) {
	ours, theirs := net.Pipe()
	l := &oneConn{conn: theirs, done: make(chan struct{})}
	s := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, got *http.Request) { r = got })}
	s.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			close(l.done)
		}
	}
	go func() { _ = s.Serve(l) }()
	go func() { _, _ = ours.Write(sent) }()
	answered := bufio.NewReader(ours)
	_, _ = http.ReadResponse(answered, nil)
	ours.Close()
	<-l.done
	return r
}

// oneConn is a listener for one connection.
type oneConn struct {
	conn net.Conn
	done chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	if c := l.conn; c != nil {
		l.conn = nil
		return c, nil
	}
	<-l.done
	return nil, net.ErrClosed
}
func (l *oneConn) Close() error   { return nil }
func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }
