//go:build unix

package gateway

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Servers say 408 on idle connections before they close them; worse ones say anything.
func TestWhatAnUpstreamSaysUnaskedIsNobodysAnswer(t *testing.T) {
	up := newScripted(t, fine, fine)
	w := newWorld(t)
	w.register("/x", up.url)
	w.call("GET", "/x")
	up.mu.Lock()
	conn := up.accepted[0]
	up.mu.Unlock()
	if _, err := io.WriteString(conn, "HTTP/1.1 408 Request Timeout\r\nContent-Length: 4\r\n\r\nlate"); err != nil {
		t.Fatal(err)
	}
	idle := w.gateway.straight.take(strings.TrimPrefix(up.url, "http://"))
	var arrived error
	if err := idle.raw.Read(func(fd uintptr) bool {
		_, _, arrived = syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK)
		return arrived != syscall.EAGAIN //nolint:errorlint // it is never wrapped
	}); err != nil || arrived != nil {
		t.Fatal(err, arrived)
	}
	w.gateway.straight.put(idle)
	if a := w.call("GET", "/x"); a.status != http.StatusOK || a.body != "fine" {
		t.Errorf("the next request gets %d %q", a.status, a.body)
	}
	if got := up.connections(); got != "[1 2]" {
		t.Errorf("the requests came on %s", got)
	}
}

// No request of ours is that large. If one is, or the system has little room, it still arrives whole.
func TestARequestThatDoesNotFitInIsSentInPieces(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	request := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		got := make([]byte, len(request))
		if _, err := io.ReadFull(conn, got); err == nil && bytes.Equal(got, request) {
			_, _ = io.WriteString(conn, fine)
		}
	}()
	raw, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c := newStraightConn(&straight{timeout: time.Minute}, "", raw)
	defer c.Close()
	c.request = request
	answer := make([]byte, len(fine))
	if n, err := c.exchange(answer); err != nil || string(answer[:n]) != fine {
		t.Errorf("the answer is %q, %v", answer[:n], err)
	}
	if c.failed != nil || len(c.request) > 0 {
		t.Errorf("%d bytes were not sent, %v", len(c.request), c.failed)
	}
}
