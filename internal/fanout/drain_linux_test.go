package fanout

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// serveLoop serves one group by one loop, on a real port. Clients have small windows.
func serveLoop(t *testing.T, feed Feed, first Batch) (f *Fanout, left chan struct{}, dial func() net.Conn) {
	t.Helper()
	opts := Options{Loops: 1, WriteTimeout: time.Hour}
	f, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	left = make(chan struct{}, 1)
	g := f.NewGroup(feed, false, func() { left <- struct{}{} })
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.Serve(w, r, Stream{Group: g, Header: NewHeader(http.Header{}), First: first})
	}))
	srv.Listener.Close()
	if srv.Listener, err = Listen(t.Context(), "127.0.0.1:0", opts); err != nil {
		t.Fatal(err)
	}
	srv.Start()
	t.Cleanup(func() { srv.Close(); f.Close(); g.Close() })
	return f, left, func() net.Conn {
		dialer := net.Dialer{Control: smallWindow}
		c, err := dialer.DialContext(t.Context(), "tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		return c
	}
}

// drainIn drains in so much time, but waits as long as it takes.
func drainIn(t *testing.T, f *Fanout, d time.Duration) error {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return f.Drain(deadlineOf{ctx, time.Now().Add(d)})
}

type deadlineOf struct {
	context.Context
	deadline time.Time
}

func (d deadlineOf) Deadline() (time.Time, bool) { return d.deadline, true }

// TestASlowReaderDrains: one that was told to hurry, and then took what it was sent, must not become a subscriber like any other again.
func TestASlowReaderDrains(t *testing.T) {
	t.Parallel()
	f, _, dial := serveLoop(t, startTide(), Batch{Next: 1})
	client := dial()
	go func() { // 1.6 MB/s, and the topic has 10
		buf := make([]byte, 16<<10)
		for err := error(nil); err == nil; time.Sleep(10 * time.Millisecond) {
			_, err = io.ReadFull(client, buf)
		}
	}()
	eventually(t, func() bool { return f.Stats().Behind == 1 })
	if err := drainIn(t, f, time.Second); err != nil {
		t.Errorf("%v, %d are open", err, f.Stats().Open)
	}
}

// TestOneThatComesWithAFullSocketDrains: it is on no list of those who leave, and cannot be told anything.
func TestOneThatComesWithAFullSocketDrains(t *testing.T) {
	t.Parallel()
	f, left, dial := serveLoop(t, silentFeed{}, Batch{Bytes: make([]byte, 16<<20), Next: 1})
	if err := drainIn(t, f, 500*time.Millisecond); err != nil { // nobody is there yet
		t.Fatal(err)
	}
	dial()
	select {
	case <-left:
	case <-time.After(time.Minute):
		t.Error("it is still open")
	}
}

// TestAFewStreamsOfALoopEndAtOnce: were they spread over the time there is, the hour would not be over before the test is.
func TestAFewStreamsOfALoopEndAtOnce(t *testing.T) {
	t.Parallel()
	f, left, dial := serveLoop(t, silentFeed{}, Batch{Bytes: []byte(":\n\n"), Next: 1})
	for range 4 {
		dial()
	}
	eventually(t, func() bool { return f.Stats().Open == 4 && f.Stats().Goroutines == 0 })
	go func() {
		for range 4 {
			<-left
		}
	}()
	if err := drainIn(t, f, time.Hour); err != nil {
		t.Errorf("%v, %d are open", err, f.Stats().Open)
	}
}
