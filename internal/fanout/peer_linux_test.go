package fanout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// longFeed has one frame, much longer than what the kernel holds.
type longFeed struct{ frame []byte }

func (f longFeed) Since(c Cursor) Batch {
	if c >= 2 {
		return Batch{Next: c}
	}
	return Batch{Bytes: f.frame, Events: 1, Next: 2}
}

func (f longFeed) Watch(func()) (stop func()) { return func() {} }

// openLong returns a connection with a small window to a stream that is longer than both ends hold. The send buffer is so
// large that a slow reader does not free a third of it within the timeouts used here.
func openLong(t *testing.T, loops int, writeTimeout time.Duration, length int) (client net.Conn, fan *Fanout) {
	t.Helper()
	opts := Options{Loops: loops, WriteTimeout: writeTimeout, SendBuffer: 256 << 10, Socket: func(ctx context.Context) syscall.RawConn {
		raw, err := ctx.Value(acceptedKey{}).(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Error(err)
		}
		return raw
	}}
	fan, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fan.Close() })
	g := fan.NewGroup(longFeed{make([]byte, length)}, false, func() {})
	t.Cleanup(g.Close)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fan.Serve(w, r, Stream{Group: g, Header: NewHeader(http.Header{}), First: Batch{Next: 1}})
	}))
	srv.Listener.Close()
	if srv.Listener, err = Listen(t.Context(), "127.0.0.1:0", opts); err != nil {
		t.Fatal(err)
	}
	srv.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, acceptedKey{}, c) }
	srv.Start()
	t.Cleanup(srv.Close)
	dialer := net.Dialer{Control: smallWindow}
	client, err = dialer.DialContext(t.Context(), "tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	fmt.Fprint(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	return client, fan
}

// acceptedKey is where a request's context has the connection.
type acceptedKey struct{}

// servers are the ways to serve a stream, by the number of loops.
var servers = map[string]int{"loop": 1, "goroutine": -1}

// smallWindow gives a client a small receive buffer, before it connects.
func smallWindow(_, _ string, c syscall.RawConn) (err error) {
	ctrlErr := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 16<<10) })
	if err == nil {
		err = ctrlErr
	}
	return err
}

func TestASlowReaderIsNotCutWhileItTakesSomething(t *testing.T) {
	for name, loops := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, fan := openLong(t, loops, 4*time.Second, 4<<20)
			got := 0
			buf := make([]byte, 4<<10)
			for tick := time.NewTicker(200 * time.Millisecond); got < 200<<10; <-tick.C { // more than twice the timeout
				n, err := client.Read(buf)
				got += n
				if cut := fan.Stats().TimedOut; err != nil || cut > 0 {
					t.Fatalf("after %d bytes: %v; cut: %d", got, err, cut)
				}
			}
		})
	}
}

// TestTheKernelDoesNotCutSlowReadersOfGoroutines, as it would those who took long enough for what it holds for them.
func TestTheKernelDoesNotCutSlowReadersOfGoroutines(t *testing.T) {
	t.Parallel()
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
	conn, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	check := func(want int) {
		t.Helper()
		if err := raw.Control(func(fd uintptr) {
			if ms, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT); err != nil || ms != want {
				t.Errorf("user timeout %d ms, not %d: %v", ms, want, err)
			}
		}); err != nil {
			t.Error(err)
		}
	}
	p := newPeer(raw)
	if p == nil {
		t.Fatal("it cannot be asked")
	}
	check(0)
	if _, vanished := p.look(); vanished {
		t.Error("it vanished")
	}
	p.leave()
	check(int(vanishTimeout.Milliseconds()))
}

func TestAReaderThatTakesNothingIsCut(t *testing.T) {
	for name, loops := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, fan := openLong(t, loops, 500*time.Millisecond, 4<<20)
			for deadline := time.Now().Add(time.Minute); fan.Stats().TimedOut == 0; time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("it is still open")
				}
			}
			n, err := io.Copy(io.Discard, client)
			if n >= 4<<20 || errors.Is(err, net.ErrClosed) {
				t.Errorf("read %d bytes, %v", n, err)
			}
		})
	}
}

// TestAStreamThatEndedBeforeItCameDoesNotWaitForADeafReader: a group may end while the beginning of an answer is being written.
func TestAStreamThatEndedBeforeItCameDoesNotWaitForADeafReader(t *testing.T) {
	t.Parallel()
	fan, err := New(Options{Loops: 1, WriteTimeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fan.Close() })
	left := make(chan struct{})
	g := fan.NewGroup(silentFeed{}, false, func() { close(left) })
	t.Cleanup(g.Close)
	g.End([]byte("event: error\n\n"))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fan.Serve(w, r, Stream{Group: g, Header: NewHeader(http.Header{}), First: Batch{Bytes: make([]byte, 16<<20), Next: 1}})
	}))
	t.Cleanup(srv.Close)
	dialer := net.Dialer{Control: smallWindow}
	deaf, err := dialer.DialContext(t.Context(), "tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { deaf.Close() })
	fmt.Fprint(deaf, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	select {
	case <-left:
	case <-time.After(time.Minute):
		t.Error("it is still open")
	}
}
