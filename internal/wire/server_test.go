package wire

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// handlerFunc is a function that is a Handler.
type handlerFunc func(x *Exchange) Outcome

func (f handlerFunc) ServeWire(x *Exchange) Outcome { return f(x) }

// server is a Server in front of net/http, on a real listener.
type server struct {
	*Server
	t        *testing.T
	fallback *http.Server
	address  string
	logs     safeBuffer
	open     atomic.Int64
	accepted atomic.Int64
}

type safeBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// start serves with a handler and with one for net/http behind it, which says its name unless it is given.
func start(t *testing.T, h handlerFunc, behind http.Handler, change ...func(*server)) *server {
	t.Helper()
	if behind == nil {
		behind = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			_, _ = io.WriteString(w, "net/http "+string(body))
		})
	}
	s := &server{t: t, Server: &Server{Handlers: []Handler{h}, HeadTimeout: time.Minute, IdleTimeout: time.Minute}}
	s.Log = slog.New(slog.NewTextHandler(&s.logs, nil))
	s.Opened = func(delta int) {
		s.open.Add(int64(delta))
		s.accepted.Add(int64(max(delta, 0)))
	}
	s.fallback = &http.Server{Handler: behind, ConnState: s.ConnState, ReadHeaderTimeout: time.Minute, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	s.fallback.Protocols = new(http.Protocols)
	s.fallback.Protocols.SetHTTP1(true)
	s.fallback.Protocols.SetUnencryptedHTTP2(true)
	for _, c := range change {
		c(s)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = l.Addr().String()
	front := s.Listen(l)
	served := make(chan struct{})
	go func() { defer close(served); _ = s.fallback.Serve(front) }()
	t.Cleanup(func() {
		s.Server.Close()
		s.fallback.Close()
		<-served
		eventually(t, "all connections end", func() bool { return s.open.Load() == 0 })
	})
	return s
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// caller is a client's end of a connection.
type caller struct {
	net.Conn
	t  *testing.T
	in *bufio.Reader
}

func (s *server) dial() *caller {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	return &caller{conn, s.t, bufio.NewReader(conn)}
}

func get(path string, fields ...string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: x\r\n" + strings.Join(append(fields, ""), "\r\n") + "\r\n"
}

func (c *caller) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatal(err)
	}
}

// next reads a response, and returns its body.
func (c *caller) next() (*http.Response, string) {
	c.t.Helper()
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp, string(body)
}

// call returns the body of the response to a text.
func (c *caller) call(text string) string {
	c.t.Helper()
	c.send(text)
	_, body := c.next()
	return body
}

// isClosed waits for the end of the connection.
func (c *caller) isClosed() {
	c.t.Helper()
	if b, err := c.in.ReadByte(); err == nil || IsTimeout(err) {
		c.t.Errorf("then comes %q, %v", b, err)
	}
}

// byPath does what the path of a request says.
func byPath(x *Exchange) Outcome {
	switch x.Target {
	case "/reply":
		body := "wire"
		x.Reply([]byte("HTTP/1.1 200 OK\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body))
	case "/long":
		x.Reply(append([]byte("HTTP/1.1 200 OK\r\nContent-Length: "+strconv.Itoa(len(longBody))+"\r\n\r\n"), longBody...))
	case "/body":
		body, err := io.ReadAll(body{x})
		fmt.Fprint(x.Response(), "wire ", string(body), err)
	case "/written":
		fmt.Fprint(x.Response(), "wire")
	case "/unread":
		fmt.Fprint(x.Response(), "not now")
	default:
		return Pass
	}
	return Done
}

// longBody does not fit into a socket at once.
var longBody = strings.Repeat("wire ", 8<<20/5)

func TestWhatIsPassedIsNetHTTPsForGood(t *testing.T) {
	s := start(t, byPath, nil)
	c := s.dial()
	for _, step := range [][2]string{
		{"/reply", "wire"}, {"/written", "wire"}, {"/reply", "wire"}, {"/other", "net/http "}, {"/reply", "net/http "}, {"/other", "net/http "},
	} {
		if body := c.call(get(step[0])); body != step[1] {
			t.Fatalf("%s is answered with %q, want %q", step[0], body, step[1])
		}
	}
	if n := s.accepted.Load(); n != 1 {
		t.Errorf("%d connections were counted", n)
	}
}

// A request is the same however it is cut, also where another one follows at once.
func TestRequestsComeInPieces(t *testing.T) {
	s := start(t, byPath, nil)
	post := "POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
	for _, c := range []struct{ sent, want string }{
		{get("/reply") + post + get("/written"), "[wire wire hello<nil> wire]"},
		{"\r\n" + get("/reply") + "\r\n\r\n" + post, "[wire wire hello<nil>]"},
		{"POST /other HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello" + get("/reply"), "[net/http hello net/http ]"},
	} {
		for cut := 1; cut < len(c.sent); cut++ {
			conn := s.dial()
			conn.send(c.sent[:cut])
			if cut%3 == 0 {
				time.Sleep(time.Millisecond) // so that it is read by itself, mostly
			}
			conn.send(c.sent[cut:])
			var got []string
			for range strings.Count(c.sent, "HTTP/1.1") {
				_, body := conn.next()
				got = append(got, body)
			}
			if fmt.Sprint(got) != c.want {
				t.Fatalf("cut at %d: %q", cut, got)
			}
			conn.Close()
		}
	}
}

func TestALongResponseArrivesWhole(t *testing.T) {
	c := start(t, byPath, nil).dial()
	for range 2 {
		if body := c.call(get("/long")); body != longBody {
			t.Fatalf("%d bytes arrived", len(body))
		}
		if body := c.call(get("/reply")); body != "wire" {
			t.Fatalf("answered with %q", body)
		}
	}
}

func TestWhatIsNotUnderstoodIsNetHTTPsToJudge(t *testing.T) {
	s := start(t, byPath, nil)
	for sent, want := range map[string]int{
		"GET /reply HTTP/1.1\r\nHost: x\r\nA : b\r\n\r\n": 400,
		"GET /reply HTTP/1.1\r\n\r\n":                     400,
		"GET /reply HTTP/1.1\nHost: x\n\n":                400,
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n": 400,
		"\x16\x03\x01":                     400,
		"GARBAGE\r\n\r\n":                  400,
		"GET /reply HTTP/1.0\r\n\r\n":      200,
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n": 0,
	} {
		c := s.dial()
		c.send(sent)
		_ = c.Conn.(*net.TCPConn).CloseWrite()
		resp, err := http.ReadResponse(c.in, nil)
		if want == 0 {
			if err == nil {
				t.Errorf("%q is answered with %s", sent, resp.Status)
			}
			continue
		}
		if err != nil || resp.StatusCode != want {
			t.Errorf("%q: %v, %v", sent, resp, err)
		}
	}
}

func TestHTTP2IsNetHTTPs(t *testing.T) {
	s := start(t, byPath, nil)
	var only http.Protocols
	only.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: &http.Transport{Protocols: &only}}
	defer client.CloseIdleConnections()
	resp, err := client.Get("http://" + s.address + "/reply")
	if err != nil || resp.ProtoMajor != 2 {
		t.Fatal(resp, err)
	}
	resp.Body.Close()
	// But not behind another request.
	c := s.dial()
	c.call(get("/reply"))
	c.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	if resp, _ := c.next(); resp.StatusCode != http.StatusBadRequest {
		t.Error(resp.Status)
	}
	c.isClosed()
}

func TestTheLastResponseSaysSo(t *testing.T) {
	s := start(t, byPath, nil)
	for sent, want := range map[string]bool{
		get("/written", "Connection: close"):                                                true,
		"POST /unread HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello":                true,
		"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello":                  false,
		"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n":                       false,
		"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx": true,
	} {
		c := s.dial()
		c.send(sent)
		resp, body := c.next()
		if resp.Close != want || resp.StatusCode != http.StatusOK {
			t.Errorf("%q: %s %q, last: %t", sent, resp.Status, body, resp.Close)
		}
		if want {
			c.isClosed()
		} else if body := c.call(get("/reply")); body != "wire" {
			t.Errorf("behind %q: %q", sent, body)
		}
	}
}

func TestHalfABodyIsAnError(t *testing.T) {
	c := start(t, byPath, nil).dial()
	c.send("POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhel")
	_ = c.Conn.(*net.TCPConn).CloseWrite()
	if resp, body := c.next(); body != "wire hel"+io.ErrUnexpectedEOF.Error() || !resp.Close {
		t.Errorf("%q, last: %t", body, resp.Close)
	}
	c.isClosed()
}

func TestABodyThatTakesTooLongIsAnError(t *testing.T) {
	c := start(t, func(x *Exchange) Outcome {
		err := x.ReadFull(make([]byte, 5), time.Millisecond)
		fmt.Fprint(x.Response(), errors.Is(err, os.ErrDeadlineExceeded))
		return Done
	}, nil).dial()
	c.send("POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhel")
	if resp, body := c.next(); body != "true" || !resp.Close {
		t.Errorf("%q, last: %t", body, resp.Close)
	}
	c.isClosed()
}

func TestWhoIsSilentIsLetGo(t *testing.T) {
	s := start(t, byPath, nil, func(s *server) { s.IdleTimeout = time.Millisecond })
	c := s.dial()
	c.call(get("/reply"))
	c.isClosed()
	s = start(t, byPath, nil, func(s *server) { s.HeadTimeout = time.Millisecond })
	s.dial().isClosed()
	c = s.dial()
	_, _ = io.WriteString(c, "GET /reply")
	c.isClosed()
}

func TestAPanicEndsItsConnectionOnly(t *testing.T) {
	s := start(t, func(x *Exchange) Outcome {
		switch x.Target {
		case "/panic":
			panic("as the test asked")
		case "/abort":
			x.Response().Header().Set("Content-Length", "10")
			fmt.Fprint(x.Response(), "part")
			_ = x.Response().FlushError()
			panic(http.ErrAbortHandler)
		}
		return byPath(x)
	}, nil)
	other, c := s.dial(), s.dial()
	other.call(get("/reply"))
	c.send(get("/panic"))
	c.isClosed()
	if !strings.Contains(s.logs.String(), "as the test asked") {
		t.Error("nobody says so")
	}
	logged := len(s.logs.String())
	c = s.dial()
	c.send(get("/abort"))
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(resp.Body); string(body) != "part" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%q, %v", body, err)
	}
	if len(s.logs.String()) > logged {
		t.Error(s.logs.String()[logged:])
	}
	if body := other.call(get("/reply")); body != "wire" {
		t.Error(body)
	}
}

// over has ended.
var over = func() context.Context { ctx, end := context.WithCancel(context.Background()); end(); return ctx }()

func TestShutdown(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	slow := func(w io.Writer) {
		entered <- struct{}{}
		<-leave
		fmt.Fprint(w, "late")
	}
	s := start(t, func(x *Exchange) Outcome {
		if x.Target == "/slow" {
			slow(x.Response())
			return Done
		}
		return byPath(x)
	}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow/behind" {
			slow(w)
		}
	}))
	idle, busy, behind, fresh, freshBehind := s.dial(), s.dial(), s.dial(), s.dial(), s.dial()
	idle.call(get("/reply"))
	busy.send(get("/slow"))
	behind.send(get("/slow/behind"))
	<-entered
	<-entered
	eventually(t, "all are accepted", func() bool { return s.open.Load() == 5 })
	if err := s.Shutdown(over, s.fallback); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	ended := make(chan error)
	go func() { ended <- s.Shutdown(context.Background(), s.fallback) }()
	idle.isClosed()
	if _, err := net.Dial("tcp", s.address); err == nil {
		t.Error("it still accepts")
	}
	close(leave)
	for _, c := range []*caller{busy, behind} {
		if resp, body := c.next(); body != "late" || !resp.Close {
			t.Errorf("what was under way gets %q, last: %t", body, resp.Close)
		}
		c.isClosed()
	}
	fresh.send(get("/written"))
	if resp, body := fresh.next(); body != "wire" || !resp.Close {
		t.Errorf("who came before gets %q, last: %t", body, resp.Close)
	}
	fresh.isClosed()
	_ = freshBehind.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// What is passed while the server shuts down is answered too.
func TestWhatIsPassedAtTheEndIsAnswered(t *testing.T) {
	s := start(t, byPath, nil)
	c := s.dial()
	eventually(t, "it is accepted", func() bool { return s.open.Load() == 1 })
	ended := make(chan error)
	go func() { ended <- s.Shutdown(context.Background(), s.fallback) }()
	eventually(t, "it shuts down", s.isClosing.Load)
	c.send(get("/other"))
	if resp, body := c.next(); body != "net/http " || !resp.Close {
		t.Errorf("%q, last: %t", body, resp.Close)
	}
	c.isClosed()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestAWatchedClientThatGoesIsNoticed(t *testing.T) {
	watching, noticed := make(chan struct{}), make(chan error)
	c := start(t, func(x *Exchange) Outcome {
		ctx, stop := x.Watch(x.Context())
		defer stop()
		close(watching)
		<-ctx.Done()
		noticed <- ctx.Err()
		return Done
	}, nil).dial()
	c.send(get("/"))
	<-watching
	c.Close()
	if err := <-noticed; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Also one that sends its next request meanwhile.
func TestAWatchedClientThatStaysIsServed(t *testing.T) {
	const requests = 30
	next := make(chan struct{}, 1)
	c := start(t, func(x *Exchange) Outcome {
		n := len(x.Target)
		if n%3 > 0 {
			ctx, stop := x.Watch(x.Context())
			if n%3 == 1 {
				next <- struct{}{}
				time.Sleep(time.Millisecond)
			}
			if ctx.Err() != nil {
				t.Errorf("request %d: the client seems to have gone", n)
			}
			stop()
		}
		fmt.Fprint(x.Response(), n)
		return Done
	}, nil).dial()
	path := "/"
	send := func() {
		c.send(get(path))
		path += "x"
	}
	send()
	for i := range requests {
		n := i + 1
		isEarly := n%3 == 1
		if isEarly {
			<-next
			send()
		}
		if _, body := c.next(); body != fmt.Sprint(n) {
			t.Fatalf("request %d: %q", n, body)
		}
		if !isEarly && n < requests {
			send()
		}
	}
}

func TestDeadlinesAreThoseLastWanted(t *testing.T) {
	soon := func() time.Time { return time.Now().Add(20 * time.Millisecond) }
	longAgo := time.Unix(1, 0)
	for name, deadlines := range map[string][]time.Time{
		"moved on":       {soon(), time.Now().Add(time.Hour)},
		"taken back":     {soon(), {}},
		"long past":      {longAgo, {}},
		"past and moved": {longAgo, time.Now().Add(time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := net.Pipe()
			defer ours.Close()
			defer theirs.Close()
			c := &conn{Conn: ours}
			buf := make([]byte, 8)
			_ = c.SetReadDeadline(deadlines[0])
			if _, err := c.Read(buf); !errors.Is(err, os.ErrDeadlineExceeded) { // which tells the socket
				t.Fatalf("with a deadline: %v", err)
			}
			_ = c.SetReadDeadline(deadlines[1])
			written := make(chan struct{})
			go func() {
				defer close(written)
				time.Sleep(50 * time.Millisecond) // so that the read has begun, mostly
				fmt.Fprint(theirs, "hello")
			}()
			if n, err := c.Read(buf); err != nil || string(buf[:n]) != "hello" {
				t.Errorf("with another one: %q, %v", buf[:n], err)
			}
			<-written
		})
	}
	t.Run("sooner", func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer ours.Close()
		defer theirs.Close()
		c := &conn{Conn: ours}
		buf := make([]byte, 8)
		_ = c.SetReadDeadline(time.Now().Add(time.Hour))
		go fmt.Fprint(theirs, "hello")
		if _, err := c.Read(buf); err != nil {
			t.Fatal(err)
		}
		_ = c.SetReadDeadline(soon())
		if _, err := c.Read(buf); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
	t.Run("while reading", func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer ours.Close()
		defer theirs.Close()
		c := &conn{Conn: ours}
		ended := make(chan error)
		go func() {
			_, err := c.Read(make([]byte, 8))
			ended <- err
		}()
		time.Sleep(10 * time.Millisecond) // either order must do
		_ = c.SetReadDeadline(longAgo)
		if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
}

// A client that takes nothing is given up; one that takes a little from time to time is not.
func TestWhoTakesNothingIsGivenUp(t *testing.T) {
	failed := make(chan error, 1)
	s := start(t, func(x *Exchange) Outcome {
		x.Reply([]byte(strings.Repeat(longBody, 4)))
		failed <- x.failed
		return Done
	}, nil, func(s *server) { s.IdleTimeout = 100 * time.Millisecond })
	s.dial().send(get("/"))
	if err := <-failed; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
}
