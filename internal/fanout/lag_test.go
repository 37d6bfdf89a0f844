package fanout_test

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/freshet-io/freshet/internal/fanout"
)

// TestLagIsMeasuredHoweverStreamsAreServed: every event that a change brings to somebody who keeps up is measured once, and what
// the group is told is what the statistics say.
func TestLagIsMeasuredHoweverStreamsAreServed(t *testing.T) {
	for name, loops := range map[string]int{"goroutines": -1, "loops": 1} {
		t.Run(name, func(t *testing.T) {
			fan, err := fanout.New(fanout.Options{Loops: loops})
			if err != nil {
				t.Fatal(err)
			}
			defer fan.Close()
			feed := new(counterFeed)
			var mu sync.Mutex
			var prompt, events int64
			group := fan.NewGroup(feed, false, func() {})
			defer group.Close()
			group.Sent = func(s fanout.Sent) {
				mu.Lock()
				defer mu.Unlock()
				prompt += s.Prompt
				events += s.Events
				if s.Prompt > 0 && s.Lag <= 0 {
					t.Errorf("%d events took %v", s.Prompt, s.Lag)
				}
			}
			head := fanout.NewHeader(http.Header{"Content-Type": {"text/event-stream"}})
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				fan.Serve(w, r, fanout.Stream{Group: group, Header: head, First: fanout.Batch{Bytes: []byte("data: 0\n\n"), Events: 1}})
			}))
			defer srv.Close()
			defer srv.CloseClientConnections()
			resp, err := http.Get(srv.URL)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			lines := bufio.NewScanner(resp.Body)
			// An event that comes before the loop knows the reader is sent to it alone and not measured, so it may take a few.
			for round := 0; ; round++ {
				for lines.Scan() && !strings.HasPrefix(lines.Text(), "data") {
				}
				if round > 0 {
					time.Sleep(time.Millisecond) // counted after it was sent
				}
				mu.Lock()
				done := prompt >= 3
				ok := prompt <= events
				mu.Unlock()
				if !ok {
					t.Fatalf("%d measured of %d", prompt, events)
				}
				if done {
					break
				}
				feed.advance()
			}
			mu.Lock()
			defer mu.Unlock()
			if got := fan.Stats().Lag.Count; int64(got) < prompt {
				t.Errorf("the statistics have %d, the group %d", got, prompt)
			}
		})
	}
}
