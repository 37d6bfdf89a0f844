package fanout_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/freshet-io/freshet/internal/fanout"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// counterFeed is a feed of numbers: cursor n has seen all up to n.
type counterFeed struct {
	mu      sync.Mutex
	head    fanout.Cursor
	watches map[*func()]struct{}
}

func (f *counterFeed) Since(c fanout.Cursor) fanout.Batch {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := fanout.Batch{Next: f.head}
	for n := c + 1; n <= f.head; n++ {
		b.Bytes = fmt.Appendf(b.Bytes, "data: %d\n\n", n)
		b.Events++
	}
	return b
}

func (f *counterFeed) Watch(changed func()) func() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.watches == nil {
		f.watches = map[*func()]struct{}{}
	}
	f.watches[&changed] = struct{}{}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.watches, &changed)
	}
}

func (f *counterFeed) advance() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.head++
	for w := range f.watches {
		(*w)()
	}
}

// TestChurnLosesNobody: subscribers come and go while frames flow, groups end and the node drains. Nobody misses a frame, and
// every stream is accounted for exactly once.
func TestChurnLosesNobody(t *testing.T) {
	for name, loops := range map[string]int{"goroutines": -1, "loops": 2} {
		t.Run(name, func(t *testing.T) {
			fan, err := fanout.New(fanout.Options{Loops: loops, Heartbeat: 50 * time.Millisecond, Pace: 200 * time.Microsecond})
			if err != nil {
				t.Fatal(err)
			}
			defer fan.Close()
			feed := new(counterFeed)
			var served, left atomic.Int64
			var groups [4]*fanout.Group
			for i := range groups {
				groups[i] = fan.NewGroup(feed, false, func() { left.Add(1) })
				defer groups[i].Close()
			}
			head := fanout.NewHeader(http.Header{"Content-Type": {"text/event-stream"}})
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				served.Add(1)
				feed.mu.Lock()
				at := feed.head
				feed.mu.Unlock()
				fan.Serve(w, r, fanout.Stream{Group: groups[rand.IntN(4)], Header: head, First: fanout.Batch{Bytes: fmt.Appendf(nil, "data: %d\n\n", at), Events: 1, Next: at}})
			}))
			defer srv.Close()
			stop := make(chan struct{})
			var writers, readers sync.WaitGroup
			writers.Go(func() {
				for {
					select {
					case <-stop:
						return
					case <-time.After(time.Duration(rand.IntN(500)) * time.Microsecond):
						feed.advance()
					}
				}
			})
			for range 40 {
				readers.Go(func() {
					for range 5 {
						follow(t, srv.URL, 1+rand.IntN(60))
					}
					follow(t, srv.URL, 1<<30) // to the end
				})
			}
			eventually(t, func() bool { return served.Load() == 40*6 && left.Load() == 40*5 && fan.Stats().Open == 40 })
			groups[0].End([]byte("data: end\n\n"))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := fan.Drain(soon{ctx, time.Now().Add(3 * time.Second)}); err != nil {
				t.Errorf("drain: %v", err)
			}
			readers.Wait()
			close(stop)
			writers.Wait()
			eventually(t, func() bool { return left.Load() == served.Load() })
			if s := fan.Stats(); s.Open != 0 || served.Load() != left.Load() {
				t.Errorf("%d open; %d served, %d left", s.Open, served.Load(), left.Load())
			}
		})
	}
}

// soon is a context that promises to end soon. A busy machine may need longer than that.
type soon struct {
	context.Context
	deadline time.Time
}

func (s soon) Deadline() (time.Time, bool) { return s.deadline, true }

// eventually waits for something that has no event of its own.
func eventually(t *testing.T, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it did not come")
		}
	}
}

// follow reads so many frames and checks that none is missing.
func follow(t *testing.T, url string, frames int) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, "GET", url, nil)
	transport := &http.Transport{DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		t.Error(err)
		return
	}
	defer resp.Body.Close()
	r := bufio.NewReader(resp.Body)
	last := -1
	for frames > 0 {
		line, err := r.ReadString('\n')
		if err == io.EOF && line == "" {
			return
		}
		if err != nil {
			t.Errorf("%q, %v", line, err)
			return
		}
		if !strings.HasPrefix(line, "data: ") || strings.HasPrefix(line, "data: end") {
			continue
		}
		n := 0
		fmt.Sscanf(line, "data: %d", &n)
		if last >= 0 && n != last+1 {
			t.Errorf("%d after %d", n, last)
			return
		}
		last = n
		frames--
	}
}
