package gateway

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// forgetful answers one request on each connection, and closes it without a word: when it pleases, or when it is asked again.
func forgetful(t *testing.T, closes time.Duration) (url string, lost *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	lost = &atomic.Int64{}
	serve := func(conn net.Conn) {
		defer conn.Close()
		in := bufio.NewReader(conn)
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		_ = conn.SetReadDeadline(time.Now().Add(closes))
		if _, err := in.Peek(1); err == nil {
			lost.Add(1)
		}
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return "http://" + l.Addr().String(), lost
}

func TestAnUpstreamThatClosesWithoutAWordLosesNothing(t *testing.T) {
	w := newWorld(t)
	w.gateway.standard.grace = time.Hour // as if all of this took no time
	up, lost := forgetful(t, time.Minute)
	w.register("/quote", up)
	for range 3 {
		for _, method := range []string{"POST", "PATCH"} {
			if a := w.call(method, "/quote"); a.status != http.StatusOK {
				t.Errorf("%s answers %d %s", method, a.status, a.body)
			}
		}
	}
	if n := lost.Load(); n != 0 {
		t.Errorf("%d requests were sent on connections that had served", n)
	}
	for _, method := range []string{"PUT", "DELETE"} { // these may be made again
		for range 3 {
			if a := w.call(method, "/quote"); a.status != http.StatusOK {
				t.Errorf("%s answers %d %s", method, a.status, a.body)
			}
		}
	}
}

func TestAnUpstreamThatWasSeenClosingIsNotTrustedForAWhile(t *testing.T) {
	w := newWorld(t)
	w.gateway.standard.grace = time.Hour
	up, _ := forgetful(t, 0)
	w.register("/quote", up)
	if a := w.call("POST", "/quote"); a.status != http.StatusOK {
		t.Fatalf("answers %d %s", a.status, a.body)
	}
	eventually(t, "it was not noticed", func() bool {
		until, met := w.gateway.standard.hasty.Load(strings.TrimPrefix(up, "http://"))
		return met && time.Until(until.(time.Time)) <= hastyFor
	})
}

func TestConnectionsOfOtherUpstreamsAreKept(t *testing.T) {
	w := newWorld(t)
	w.gateway.standard.grace = 0
	clients := map[string]bool{}
	up := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { clients[r.RemoteAddr] = true }))
	t.Cleanup(up.Close)
	w.register("/quote", up.URL)
	for range 5 {
		w.call("POST", "/quote")
	}
	up.Close()
	if len(clients) != 1 {
		t.Errorf("5 requests took %d connections", len(clients))
	}
}
