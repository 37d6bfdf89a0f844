package fanout

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// frontTest is a server behind a front.
type frontTest struct {
	t   *testing.T
	fan *Fanout
	ln  net.Listener
	srv *http.Server

	mu   sync.Mutex
	logs bytes.Buffer
	own  int // requests that net/http did not see
	http int // connections that net/http got
}

// Write takes log lines.
func (ft *frontTest) Write(p []byte) (int, error) {
	ft.mu.Lock()
	defer ft.mu.Unlock()
	return ft.logs.Write(p)
}

func (ft *frontTest) logged() string {
	ft.mu.Lock()
	defer ft.mu.Unlock()
	return ft.logs.String()
}

func (ft *frontTest) Streams(r *http.Request) bool { return r.URL.Path != "/plain" }

func (ft *frontTest) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, ours := w.(*answer); ours {
		ft.mu.Lock()
		ft.own++
		ft.mu.Unlock()
	}
	switch r.URL.Path {
	case "/stream":
		g := ft.fan.NewGroup(silentFeed{}, false, func() {})
		ft.fan.Serve(w, r, Stream{Group: g, Header: NewHeader(http.Header{}), First: Batch{Bytes: []byte("first\n"), Events: 1, Next: 1}})
	case "/panic":
		panic("a mistake")
	default:
		w.Header().Set("X-From", r.RemoteAddr)
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(w, "%s %s", r.Method, r.RequestURI)
	}
}

func (ft *frontTest) fronted() int {
	ft.mu.Lock()
	defer ft.mu.Unlock()
	return ft.own
}

func startFront(t *testing.T) *frontTest { return startLimited(t, nil) }

func startLimited(t *testing.T, limit *AddressLimit) *frontTest {
	return startWith(t, limit, func(ft *frontTest) FrontHandler { return ft })
}

func startWith(t *testing.T, limit *AddressLimit, handler func(*frontTest) FrontHandler) *frontTest {
	ft := &frontTest{t: t}
	var err error
	if ft.fan, err = New(Options{Loops: 1, AddressLimit: limit, Log: slog.New(slog.NewTextHandler(ft, nil))}); err != nil {
		t.Fatal(err)
	}
	inner, err := Listen(t.Context(), "127.0.0.1:0", Options{})
	if err != nil {
		t.Fatal(err)
	}
	ft.ln = ft.fan.Front(inner, handler(ft))
	ft.srv = &http.Server{Handler: ft, ConnState: func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			ft.mu.Lock()
			ft.http++
			ft.mu.Unlock()
		}
	}}
	go ft.srv.Serve(ft.ln)
	t.Cleanup(func() {
		ft.srv.Close()
		ft.fan.Close()
	})
	return ft
}

func (ft *frontTest) passedOn() int {
	ft.mu.Lock()
	defer ft.mu.Unlock()
	return ft.http
}

// eventually waits for something that has no event of its own.
func eventually(t *testing.T, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it did not come")
		}
	}
}

// talk sends pieces and returns the connection. What follows the first piece is sent when the front has passed that on.
func (ft *frontTest) talk(pieces ...string) net.Conn {
	ft.t.Helper()
	c, err := net.Dial("tcp", ft.ln.Addr().String())
	if err != nil {
		ft.t.Fatal(err)
	}
	ft.t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	before := ft.passedOn()
	for i, p := range pieces {
		if i > 0 {
			eventually(ft.t, func() bool { return ft.passedOn() > before })
		}
		if _, err := io.WriteString(c, p); err != nil {
			ft.t.Fatal(err)
		}
	}
	return c
}

func (ft *frontTest) answer(c net.Conn) (status int, header http.Header, body string) {
	ft.t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		ft.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		ft.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(b)
}

func TestAStreamNeverReachesNetHTTP(t *testing.T) {
	ft := startFront(t)
	c := ft.talk("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n")
	r := bufio.NewReader(c)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if line == "first\n" {
			break
		}
	}
	if ft.fronted() != 1 || ft.fan.Stats().Open != 1 {
		t.Errorf("%d requests were taken by the front, %d streams are open", ft.fronted(), ft.fan.Stats().Open)
	}
}

func TestAShortAnswerEndsTheConnection(t *testing.T) {
	ft := startFront(t)
	c := ft.talk("GET /other?a=b HTTP/1.1\r\nHost: x\r\n\r\n")
	status, header, body := ft.answer(c)
	if status != http.StatusTeapot || body != "GET /other?a=b" || header.Get("X-From") != c.LocalAddr().String() || header.Get("Date") == "" {
		t.Errorf("%d %v %q", status, header, body)
	}
	if n, err := c.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the connection goes on: %d bytes, %v", n, err)
	}
	if ft.fronted() != 1 {
		t.Error("it took the long way")
	}
}

func TestEverythingElseReachesNetHTTPWhole(t *testing.T) {
	ft := startFront(t)
	for name, pieces := range map[string][]string{
		"a request in pieces": {"GET /a HT", "TP/1.1\r\nHost: x\r\nConnection: close\r\n", "\r\n"},
		"a long head":         {"GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\nA: " + strings.Repeat("x", 5000) + "\r\n\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			status, _, body := ft.answer(ft.talk(pieces...))
			if status != http.StatusTeapot || body != "GET /a" {
				t.Errorf("%d %q", status, body)
			}
		})
	}
	t.Run("two requests on one connection", func(t *testing.T) {
		r := bufio.NewReader(ft.talk("GET /plain HTTP/1.1\r\nHost: x\r\n\r\nGET /plain HTTP/1.1\r\nHost: x\r\n\r\n"))
		for range 2 {
			resp, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
		}
	})
	if n := ft.fronted(); n != 0 {
		t.Errorf("the front took %d requests", n)
	}
}

func TestAPanicEndsOnlyItsConnection(t *testing.T) {
	ft := startFront(t)
	if n, err := ft.talk("GET /panic HTTP/1.1\r\nHost: x\r\n\r\n").Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("%d bytes, %v", n, err)
	}
	if status, _, _ := ft.answer(ft.talk("GET /other HTTP/1.1\r\nHost: x\r\n\r\n")); status != http.StatusTeapot {
		t.Errorf("the next request is answered %d", status)
	}
	if !strings.Contains(ft.logged(), "a mistake") {
		t.Errorf("the log does not tell: %s", ft.logged())
	}
}

func TestAClosedFrontAcceptsNobody(t *testing.T) {
	ft := startFront(t)
	address := ft.ln.Addr().String()
	ft.ln.Close()
	if c, err := net.Dial("tcp", address); err == nil {
		c.Close()
		t.Error("the port is still open")
	}
	if _, err := ft.ln.Accept(); err == nil {
		t.Error("Accept goes on")
	}
}
