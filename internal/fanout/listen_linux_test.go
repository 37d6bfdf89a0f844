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

	"github.com/freshet-io/freshet/internal/wire"
)

// listenTest is a server whose connections a handler may take.
type listenTest struct {
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
func (lt *listenTest) Write(p []byte) (int, error) {
	lt.mu.Lock()
	defer lt.mu.Unlock()
	return lt.logs.Write(p)
}

func (lt *listenTest) logged() string {
	lt.mu.Lock()
	defer lt.mu.Unlock()
	return lt.logs.String()
}

// ServeBare takes streams at once, has a goroutine answer most other requests, and leaves some to net/http.
func (lt *listenTest) ServeBare(c *wire.BareConn, r *wire.Request) {
	if r.Target == "/plain" {
		return
	}
	lt.mu.Lock()
	lt.own++
	lt.mu.Unlock()
	if r.Target == "/stream" {
		g := lt.fan.NewGroup(silentFeed{}, false, func() {})
		lt.fan.Take(c, Stream{Group: g, Header: NewHeader(http.Header{}), First: Batch{Bytes: []byte("first\n"), Events: 1, Next: 1}})
		return
	}
	conn, h := c.Move(), r.Clone().RawHTTP()
	h.RemoteAddr = conn.Peer.String()
	go func() {
		defer conn.Close()
		var w wire.ResponseWriter
		w.Reset(conn, h.Method, func() bool { return true })
		lt.ServeHTTP(&w, h)
		w.Finish()
	}()
}

func (lt *listenTest) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/stream" {
		g := lt.fan.NewGroup(silentFeed{}, false, func() {})
		lt.fan.Serve(w, r, Stream{Group: g, Header: NewHeader(http.Header{}), First: Batch{Bytes: []byte("first\n"), Events: 1, Next: 1}})
		return
	}
	w.Header().Set("X-From", r.RemoteAddr)
	w.WriteHeader(http.StatusTeapot)
	fmt.Fprintf(w, "%s %s", r.Method, r.RequestURI)
}

func (lt *listenTest) takenOver() int {
	lt.mu.Lock()
	defer lt.mu.Unlock()
	return lt.own
}

func startListen(t *testing.T) *listenTest { return startLimited(t, nil) }

func startLimited(t *testing.T, limit *wire.AddressLimit) *listenTest {
	return startWith(t, limit, func(lt *listenTest) wire.BareHandler { return lt })
}

func startWith(t *testing.T, limit *wire.AddressLimit, handler func(*listenTest) wire.BareHandler) *listenTest {
	lt := &listenTest{t: t}
	var err error
	if lt.fan, err = New(Options{Loops: 1, AddressLimit: limit, Log: slog.New(slog.NewTextHandler(lt, nil))}); err != nil {
		t.Fatal(err)
	}
	inner, err := Listen(t.Context(), "127.0.0.1:0", Options{})
	if err != nil {
		t.Fatal(err)
	}
	lt.ln = lt.fan.Listen(inner, handler(lt))
	lt.srv = &http.Server{Handler: lt, ConnState: func(conn net.Conn, state http.ConnState) {
		wire.GuardState(conn, state)
		if state == http.StateNew {
			lt.mu.Lock()
			lt.http++
			lt.mu.Unlock()
		}
	}}
	go lt.srv.Serve(lt.ln)
	t.Cleanup(func() {
		lt.srv.Close()
		lt.fan.Close()
	})
	return lt
}

func (lt *listenTest) passedOn() int {
	lt.mu.Lock()
	defer lt.mu.Unlock()
	return lt.http
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

// talk sends pieces and returns the connection. What follows the first piece is sent when the listener has passed that on.
func (lt *listenTest) talk(pieces ...string) net.Conn {
	lt.t.Helper()
	c, err := net.Dial("tcp", lt.ln.Addr().String())
	if err != nil {
		lt.t.Fatal(err)
	}
	lt.t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	before := lt.passedOn()
	for i, p := range pieces {
		if i > 0 {
			eventually(lt.t, func() bool { return lt.passedOn() > before })
		}
		if _, err := io.WriteString(c, p); err != nil {
			lt.t.Fatal(err)
		}
	}
	return c
}

func (lt *listenTest) answer(c net.Conn) (status int, header http.Header, body string) {
	lt.t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		lt.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		lt.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(b)
}

func TestAStreamNeverReachesNetHTTP(t *testing.T) {
	lt := startListen(t)
	c := lt.talk("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n")
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
	if lt.takenOver() != 1 || lt.fan.Stats().Open != 1 {
		t.Errorf("%d requests were taken, %d streams are open", lt.takenOver(), lt.fan.Stats().Open)
	}
}

func TestAShortAnswerEndsTheConnection(t *testing.T) {
	lt := startListen(t)
	c := lt.talk("GET /other?a=b HTTP/1.1\r\nHost: x\r\n\r\n")
	status, header, body := lt.answer(c)
	if status != http.StatusTeapot || body != "GET /other?a=b" || header.Get("X-From") != c.LocalAddr().String() || header.Get("Date") == "" {
		t.Errorf("%d %v %q", status, header, body)
	}
	if n, err := c.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the connection goes on: %d bytes, %v", n, err)
	}
	if lt.takenOver() != 1 {
		t.Error("it took the long way")
	}
}

func TestEverythingElseReachesNetHTTPWhole(t *testing.T) {
	lt := startListen(t)
	for name, pieces := range map[string][]string{
		"a request in pieces": {"GET /a HT", "TP/1.1\r\nHost: x\r\nConnection: close\r\n", "\r\n"},
		"a long head":         {"GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\nA: " + strings.Repeat("x", wire.MaxHead) + "\r\n\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			status, _, body := lt.answer(lt.talk(pieces...))
			if status != http.StatusTeapot || body != "GET /a" {
				t.Errorf("%d %q", status, body)
			}
		})
	}
	t.Run("two requests on one connection", func(t *testing.T) {
		r := bufio.NewReader(lt.talk("GET /plain HTTP/1.1\r\nHost: x\r\n\r\nGET /plain HTTP/1.1\r\nHost: x\r\n\r\n"))
		for range 2 {
			resp, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
		}
	})
	if n := lt.takenOver(); n != 0 {
		t.Errorf("%d requests were taken", n)
	}
}

func TestAClosedListenerAcceptsNobody(t *testing.T) {
	lt := startListen(t)
	address := lt.ln.Addr().String()
	lt.ln.Close()
	if c, err := net.Dial("tcp", address); err == nil {
		c.Close()
		t.Error("the port is still open")
	}
	if _, err := lt.ln.Accept(); err == nil {
		t.Error("Accept goes on")
	}
}
