package fanout

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// silentFeed is a topic on which nothing happens.
type silentFeed struct{}

func (silentFeed) Since(c Cursor) Batch       { return Batch{Next: c} }
func (silentFeed) Watch(func()) (stop func()) { return func() {} }

// tideFeed is a topic that changes 20 times a second by half a megabyte; one event leads to the newest version.
type tideFeed struct {
	mu      sync.Mutex
	head    Cursor
	changed func()
	stop    chan struct{}
}

func startTide() *tideFeed {
	f := &tideFeed{head: 1, changed: func() {}, stop: make(chan struct{})}
	go func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-f.stop:
				return
			case <-tick.C:
			}
			f.mu.Lock()
			f.head++
			changed := f.changed
			f.mu.Unlock()
			changed()
		}
	}()
	return f
}

func (f *tideFeed) Since(c Cursor) Batch {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c >= f.head {
		return Batch{Next: c}
	}
	return Batch{Bytes: make([]byte, 512<<10), Events: 1, Next: f.head}
}

func (f *tideFeed) Watch(changed func()) (stop func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changed = changed
	return func() { close(f.stop) }
}

// slowWriter is a client that needs its time for every write, on a connection that keeps deadlines.
type slowWriter struct {
	http.ResponseWriter
	takes time.Duration

	mu       sync.Mutex
	deadline time.Time
	moved    chan struct{} // closed when the deadline changes
}

func newSlowWriter(takes time.Duration) *slowWriter {
	return &slowWriter{ResponseWriter: httptest.NewRecorder(), takes: takes, deadline: time.Now().Add(time.Hour), moved: make(chan struct{})}
}

func (w *slowWriter) SetWriteDeadline(t time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.moved)
	w.deadline, w.moved = t, make(chan struct{})
	return nil
}

func (w *slowWriter) FlushError() error { return nil }

func (w *slowWriter) Write(b []byte) (int, error) {
	done := time.After(w.takes)
	for {
		w.mu.Lock()
		late, moved := time.After(time.Until(w.deadline)), w.moved
		w.mu.Unlock()
		select {
		case <-done:
			return len(b), nil
		case <-late:
			return 0, os.ErrDeadlineExceeded
		case <-moved:
		}
	}
}

// serveSlowly serves a stream to a client that takes 4 KiB in so much time. It returns when the client has begun to read.
func serveSlowly(f *Fanout, s Stream, takes time.Duration) (ended <-chan struct{}) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		f.Serve(newSlowWriter(takes), httptest.NewRequest(http.MethodGet, "/", nil), s)
	}()
	synctest.Wait()
	return over
}

// TestAStreamOfAGoroutineEndsThoughItsReaderIsSlow: also one that is never up to date hears that it must end, and has but a moment for
// what it is being sent.
func TestAStreamOfAGoroutineEndsThoughItsReaderIsSlow(t *testing.T) {
	const drainFor = time.Second
	ends := map[string]func(*Fanout, *Group){
		"group ended": func(_ *Fanout, g *Group) { g.End([]byte("event: error\n\n")) },
		"cut": func(f *Fanout, _ *Group) {
			all := f.Conns(func(*Group) bool { return true })
			if len(all) != 1 || !f.Cut(all[0].ID, []byte("retry: 1\n\n")) {
				t.Error("it cannot be cut")
			}
		},
		"drained": func(f *Fanout, _ *Group) {
			ctx, cancel := context.WithTimeout(context.Background(), drainFor)
			defer cancel()
			_ = f.Drain(ctx) // it may take longer than there is
		},
		"closed": func(f *Fanout, _ *Group) { f.Close() },
	}
	for how, end := range ends {
		for what, first := range map[string]int{"many events": 512 << 10, "a long one": 16 << 20} {
			t.Run(how+", "+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f, err := New(Options{Loops: -1, WriteTimeout: time.Minute})
					if err != nil {
						t.Fatal(err)
					}
					g := f.NewGroup(startTide(), false, func() {})
					defer g.Close()
					ended := serveSlowly(f, Stream{Group: g, Header: NewHeader(http.Header{}), First: Batch{Bytes: make([]byte, first), Next: 1}}, 3*time.Millisecond)
					time.Sleep(2 * time.Second)
					began := time.Now()
					said := make(chan struct{})
					go func() {
						defer close(said)
						end(f, g)
					}()
					<-ended
					if took := time.Since(began); took > drainFor+2*endTimeout {
						t.Errorf("it took %v", took)
					}
					<-said // a drain looks whether all are gone only now and then
					f.Close()
				})
			})
		}
	}
}

func TestAStreamThatHearsLateOfADrainEndsWithTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, err := New(Options{Loops: -1})
		if err != nil {
			t.Fatal(err)
		}
		g := f.NewGroup(silentFeed{}, false, func() {})
		defer g.Close()
		s := Stream{Group: g, Header: NewHeader(http.Header{}), First: Batch{Bytes: []byte(":\n\n"), Next: 1}}
		serveSlowly(f, s, 0)
		began := time.Now()
		drained := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			drained <- f.Drain(ctx)
		}()
		for range 20 {
			serveSlowly(f, s, 8*time.Second) // it was begun before, and its beginning is still being written
		}
		if err := <-drained; err != nil {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		f.Close()
	})
}

func TestAFewStreamsEndAtOnceWhenTheServerDrains(t *testing.T) {
	for _, c := range []struct {
		streams        int
		left, from, to time.Duration
	}{
		{4, 30 * time.Second, 0, 100 * time.Millisecond},
		{100, 30 * time.Second, 1500 * time.Millisecond, 3 * time.Second},
		{400, 5 * time.Second, 4 * time.Second, 5 * time.Second}, // faster than the rate, because there is no more time
	} {
		t.Run(fmt.Sprint(c.streams), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				// Few streams a second, and so few in all: the race detector breaks down over thousands of timers in a bubble.
				f, err := New(Options{Loops: -1, DrainRate: 50})
				if err != nil {
					t.Fatal(err)
				}
				g := f.NewGroup(silentFeed{}, false, func() {})
				defer g.Close()
				s := Stream{Group: g, Header: NewHeader(http.Header{}), First: Batch{Bytes: []byte(":\n\n"), Next: 1}}
				for range c.streams {
					go f.Serve(newSlowWriter(0), httptest.NewRequest(http.MethodGet, "/", nil), s)
				}
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), c.left)
				defer cancel()
				began := time.Now()
				if err := f.Drain(ctx); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took < c.from || took > c.to { // in fake time
					t.Errorf("%d streams took %v", c.streams, took)
				}
				f.Close()
			})
		})
	}
}

func TestTheEndOfStreamsIsSpreadByARate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &Fanout{drainRate: 500}
		for _, c := range []struct {
			streams    int64
			left, want time.Duration
		}{
			{0, 30 * time.Second, 0},
			{4, 30 * time.Second, 0},
			{49, 30 * time.Second, 0},
			{50, 30 * time.Second, 100 * time.Millisecond},
			{1_000, 30 * time.Second, 2 * time.Second},
			{100_000, 30 * time.Second, 27 * time.Second},
			{100_000, 0, 0},
			{1_000_000, time.Hour, 2000 * time.Second},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), c.left)
			if got := f.DrainTime(ctx, c.streams); got != c.want {
				t.Errorf("%d streams, %v left: %v, want %v", c.streams, c.left, got, c.want)
			}
			cancel()
		}
		if got := f.DrainTime(t.Context(), 100_000); got != 0 {
			t.Errorf("without a deadline: %v", got)
		}
	})
}

// serveHTTP2 serves a group to whoever asks.
func serveHTTP2(t *testing.T, opts Options) (f *Fanout, srv *httptest.Server, left chan struct{}) {
	f, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	left = make(chan struct{}, 1)
	g := f.NewGroup(silentFeed{}, false, func() { left <- struct{}{} })
	t.Cleanup(g.Close)
	srv = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.Serve(w, r, Stream{Group: g, Header: NewHeader(http.Header{}), First: Batch{Bytes: []byte(":\n\n"), Next: 1}})
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return f, srv, left
}

func openHTTP2(t *testing.T, srv *httptest.Server) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if resp.ProtoMajor != 2 {
		t.Fatal(resp.Proto)
	}
	return resp
}

// TestWhoeverIsCutIsNotTouchedAfterwards: the stream may end while it is being cut, and what net/http gave it is then gone.
func TestWhoeverIsCutIsNotTouchedAfterwards(t *testing.T) {
	f, srv, left := serveHTTP2(t, Options{Loops: -1})
	for range 300 {
		resp := openHTTP2(t, srv)
		for _, c := range f.Conns(func(*Group) bool { return true }) {
			f.Cut(c.ID, []byte("retry: 1\n\n"))
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		<-left
	}
}

// TestAQuietStreamMayLastLongerThanAWrite: in HTTP/2 a deadline for writing ends a stream to which nothing is written.
func TestAQuietStreamMayLastLongerThanAWrite(t *testing.T) {
	_, srv, left := serveHTTP2(t, Options{Loops: -1, Heartbeat: time.Hour, WriteTimeout: 100 * time.Millisecond})
	resp := openHTTP2(t, srv)
	go func() { _, _ = io.Copy(io.Discard, resp.Body) }()
	select {
	case <-left:
		t.Error("a reader that takes everything was cut")
	case <-time.After(time.Second):
	}
	resp.Body.Close()
	<-left
}
