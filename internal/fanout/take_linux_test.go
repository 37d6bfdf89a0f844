package fanout

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestAnAdoptedConnectionIsBoundedAndCostsNoGoroutine also looks at the first bytes, which the loop writes itself.
func TestAnAdoptedConnectionIsBoundedAndCostsNoGoroutine(t *testing.T) {
	fan, err := New(Options{Loops: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer fan.Close()
	g := fan.NewGroup(silentFeed{}, false, func() {})
	defer g.Close()
	head := NewHeader(http.Header{"Content-Type": {"text/event-stream"}, "X-Test": {"a", "b"}})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fan.Serve(w, r, Stream{Group: g, Header: head, Prefix: []byte("prefix"), First: Batch{Bytes: []byte("first\n"), Events: 1, Next: 1}})
	}))
	defer srv.Close()
	before := runtime.NumGoroutine()
	const n = 20
	var clients []net.Conn
	for range n {
		c, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		clients = append(clients, c)
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		buf := make([]byte, 1024)
		got := ""
		for !strings.HasSuffix(got, "first\n") {
			k, err := c.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			got += string(buf[:k])
		}
		if !strings.HasPrefix(got, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX-Test: a\r\nX-Test: b\r\nConnection: close\r\nDate: ") ||
			!strings.HasSuffix(got, " GMT\r\n\r\nprefixfirst\n") {
			t.Fatalf("%q", got)
		}
	}
	l := fan.loops.all[0]
	for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > before+2; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines for %d connections, %d before", runtime.NumGoroutine(), n, before)
		}
	}
	fan.Close() // the loop has ended, so what it owned may be looked at; but it closed everything
	for range l.table.all() {
		t.Error("a connection outlived its loop")
	}
	if _, err := clients[0].Read(make([]byte, 1)); err == nil {
		t.Error("the socket is still open")
	}
}

func TestAcceptedConnectionsInheritTheBounds(t *testing.T) {
	ln, err := Listen(t.Context(), "127.0.0.1:0", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	client, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	socket, err := ln.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	_ = unix.SetNonblock(int(socket.Fd()), false)
	fd, _, err := unix.Accept(int(socket.Fd())) // as an Acceptor does; Go's own connections are tuned once more
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if on, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY); err != nil || on == 0 {
		t.Errorf("events wait for acknowledgements: %d, %v", on, err)
	}
	if n, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF); err != nil || n > 192<<10 {
		t.Errorf("send buffer %d, %v", n, err)
	}
	if ms, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT); err != nil || ms != 20_000 {
		t.Errorf("user timeout %d ms, %v", ms, err)
	}
	if size, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_MAXSEG); err != nil || size > segment {
		t.Errorf("segments of %d bytes, %v", size, err)
	}
}
