package subscribe_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/router"
)

func TestDrainEndsEveryStreamAtItsOwnMoment(t *testing.T) {
	const n, within = 60, 9 * time.Second                                                        // so long that a busy machine does not stop for a good part of it
	forEachPath(t, options{heartbeat: time.Hour, drainRate: 5}, func(t *testing.T, h *harness) { // whose rhythm is not that of a drain
		topic := h.topic("snapshot")
		h.post(topic, `1`)
		var open []*stream
		for i := range n {
			headers := header{}
			if i%3 == 0 {
				headers = header{"X-Sd-Compress": "true", "Accept-Encoding": "gzip"}
			}
			s := h.get("/v1/topics/"+topic.ID, headers)
			s.expect("snapshot", "1")
			open = append(open, s)
		}
		waits := map[string]bool{}
		var mu sync.Mutex
		var ends []time.Duration
		var wg sync.WaitGroup
		start := time.Now()
		for _, s := range open {
			wg.Go(func() {
				e, err := s.next()
				if wait, bad := strconv.Atoi(e.retry); err != nil || bad != nil || wait < 1000 || wait > 5000 || e.name != "" {
					t.Errorf("last words: %+v, %v", e, err)
				}
				if _, err := s.next(); err != errEnd {
					t.Errorf("after the last words: %v", err)
				}
				mu.Lock()
				defer mu.Unlock()
				waits[e.retry] = true
				ends = append(ends, time.Since(start))
			})
		}
		ctx, cancel := h.within(within)
		defer cancel()
		if err := h.server.Drain(ctx); err != nil {
			t.Error(err)
		}
		wg.Wait()
		buckets := map[time.Duration]int{}
		for _, d := range ends {
			buckets[d/(within/5)]++
		}
		for b, count := range buckets {
			if count > n/2 {
				t.Errorf("%d of %d ended together, in fifth %d", count, n, b)
			}
		}
		if len(waits) < n/2 || ends[len(ends)-1] > within+h.slow {
			t.Errorf("%d different waits; the last ended after %v", len(waits), ends[len(ends)-1])
		}
		late := h.get("/v1/topics/"+topic.ID, nil)
		defer late.close()
		e := late.expect("error", "")
		if !strings.Contains(e.data, "50000") || e.retry == "" || e.retry == "30000" {
			t.Error(e)
		}
		if line := h.logged(e.data); !strings.Contains(line, "level=INFO") || !strings.Contains(line, "going away") {
			t.Error(line)
		}
		for _, s := range open {
			s.close()
		}
	})
}

// TestAFewSubscribersDoNotHoldUpADrain: an hour is left, and the drain is over before the patience of the test is.
func TestAFewSubscribersDoNotHoldUpADrain(t *testing.T) {
	forEachPath(t, options{heartbeat: time.Hour}, func(t *testing.T, h *harness) {
		topic := h.topic("snapshot")
		h.post(topic, `1`)
		_, events := h.longPoll(topic, "", nil)
		var wg sync.WaitGroup
		for range 4 {
			s := h.get("/v1/topics/"+topic.ID, nil)
			defer s.close()
			s.expect("snapshot", "1")
			wg.Go(func() {
				if e, err := s.next(); err != nil || e.retry == "" {
					t.Errorf("last words: %+v, %v", e, err)
				}
			})
			wg.Go(func() {
				if resp, _ := h.longPoll(topic, "?lastEventId="+events[0]["id"].(string), nil); resp.StatusCode != 204 {
					t.Errorf("a long poll was answered %d", resp.StatusCode)
				}
			})
		}
		waitFor(t, func() bool { return h.server.Stats().LongPoll == 4 })
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		began := time.Now()
		if err := h.server.Drain(late{ctx, time.Now().Add(time.Hour)}); err != nil {
			t.Error(err)
		}
		wg.Wait()
		if took := time.Since(began); h.slow == 0 && took > 100*time.Millisecond { // in a bubble time is exact
			t.Errorf("it took %v", took)
		}
	})
}

// TestTheEndOfLongPollsIsSpread: those who poll come back at once.
func TestTheEndOfLongPollsIsSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, options{heartbeat: time.Hour, drainRate: 1}, newPipeListener(), -1)
		defer h.close()
		topic := h.topic("snapshot")
		const n = 20
		var mu sync.Mutex
		seconds := map[int64]bool{}
		var wg sync.WaitGroup
		var began time.Time
		for range n {
			wg.Go(func() {
				resp, _ := h.longPoll(topic, "", nil)
				mu.Lock()
				defer mu.Unlock()
				if seconds[int64(time.Since(began)/time.Second)] = true; resp.StatusCode != 204 {
					t.Errorf("a long poll was answered %d", resp.StatusCode)
				}
			})
		}
		waitFor(t, func() bool { return h.server.Stats().LongPoll == n })
		began = time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := h.server.Drain(ctx); err != nil {
			t.Error(err)
		}
		wg.Wait()
		if took := time.Since(began); len(seconds) < 5 || took > n*time.Second {
			t.Errorf("%d long polls were answered in %d different seconds, the last after %v", n, len(seconds), took)
		}
	})
}

// rawGet subscribes over a bare connection, which the caller reads or not.
func (h *harness) rawGet(path string) net.Conn {
	h.t.Helper()
	nc, err := h.client.Transport.(*http.Transport).DialContext(h.t.Context(), "", "")
	if err != nil {
		h.t.Fatal(err)
	}
	if tc, ok := nc.(*net.TCPConn); ok {
		tc.SetReadBuffer(4 << 10)
	}
	fmt.Fprintf(nc, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path)
	return nc
}

func TestOneWhoTakesNothingIsCutAndDisturbsNobody(t *testing.T) {
	forEachPath(t, options{writeTimeout: 500 * time.Millisecond}, func(t *testing.T, h *harness) {
		topic := h.topic("snapshot")
		h.post(topic, `{"n":0}`)
		deaf := h.rawGet("/v1/topics/" + topic.ID)
		defer deaf.Close()
		s := h.get("/v1/topics/"+topic.ID, nil)
		defer s.close()
		s.expect("snapshot", "")
		waitFor(t, func() bool { return h.server.Connections() == 2 })
		filler := strings.Repeat("x", 60<<10)
		start := time.Now()
		n := 0
		for ; h.server.Connections() == 2; n++ {
			h.post(topic, fmt.Sprintf(`{"n":%d,"f":"%d%s"}`, n, n, filler))
			s.expect("snapshot", "")
			if time.Since(start) > 10*time.Second+h.slow {
				t.Fatal("still there")
			}
			if n > 50 {
				time.Sleep(10 * time.Millisecond)
			}
		}
		if cut := h.fanout.Stats().TimedOut; cut != 1 {
			t.Errorf("%d were cut", cut)
		}
	})
}

func TestASlowReaderSkipsAheadAndEndsRight(t *testing.T) {
	forEachPath(t, options{}, func(t *testing.T, h *harness) {
		topic := h.topic("snapshot")
		h.post(topic, `{"n":0}`)
		nc := h.rawGet("/v1/topics/" + topic.ID)
		defer nc.Close()
		waitFor(t, func() bool { return h.server.Connections() == 1 })
		const posts = 3000
		filler := strings.Repeat("x", 500)
		for n := range posts {
			h.post(topic, fmt.Sprintf(`{"n":%d,"f":"%d%s"}`, n+1, n, filler))
		}
		h.post(topic, `{"n":"last"}`)
		doc, events := []byte(nil), 0
		resp, err := http.ReadResponse(bufio.NewReader(nc), nil)
		if err != nil {
			t.Fatal(err)
		}
		r := &stream{t: t, r: bufio.NewReader(resp.Body)}
		for !bytes.Contains(doc, []byte(`"last"`)) {
			e, err := r.next()
			if err != nil {
				t.Fatal(err)
			}
			if e.name == "" {
				continue
			}
			events++
			doc = apply(t, doc, e)
		}
		if string(doc) != `{"n":"last"}` || events >= posts {
			t.Errorf("%d events led to %s", events, doc)
		}
		t.Logf("%d events for %d publications", events, posts+1)
	})
}

// apply does what a client does with an event, with an applier that is not ours.
func apply(t *testing.T, doc []byte, e event) []byte {
	t.Helper()
	switch e.name {
	case "snapshot", "data":
		return []byte(e.data)
	case "patch":
		patch, err := jsonpatch.DecodePatch([]byte(e.data))
		if err != nil {
			t.Fatalf("patch %s: %v", e.data, err)
		}
		next, err := patch.Apply(doc)
		if err != nil {
			t.Fatalf("patch %s on %s: %v", e.data, doc, err)
		}
		return next
	}
	t.Fatalf("unexpected event %v", e)
	return nil
}

func TestAHugeSnapshotArrivesWholeBesideSmallFrames(t *testing.T) {
	forEachPath(t, options{}, func(t *testing.T, h *harness) {
		huge, small := h.topic("snapshot"), h.topic("snapshot")
		body := `"` + strings.Repeat("0123456789abcdef", 3<<16) + `"`
		h.post(huge, body)
		h.post(small, `0`)
		slow := h.get("/v1/topics/"+huge.ID, nil)
		defer slow.close()
		s := h.get("/v1/topics/"+small.ID, header{"Accept": "application/json"})
		defer s.close()
		s.expect("snapshot", "0")
		for n := range 50 {
			h.post(small, fmt.Sprint(n+1))
			s.expect("snapshot", fmt.Sprint(n+1))
		}
		if e := slow.expect("snapshot", ""); e.data != body {
			t.Errorf("%d bytes of %d", len(e.data), len(body))
		}
	})
}

func TestAStreamThatMustEndDoesNotWaitForADeafReader(t *testing.T) {
	forEachPath(t, options{recheck: 100 * time.Millisecond}, func(t *testing.T, h *harness) {
		topic := h.topic("snapshot")
		h.post(topic, `"`+strings.Repeat("x", 3<<20)+`"`)
		deaf := h.rawGet("/v1/topics/" + topic.ID + "?X-Sd-Subscriber-Key=k")
		defer deaf.Close()
		waitFor(t, func() bool { return h.server.Connections() == 1 })
		h.catalog.setRefusal("k", freshet.RevokedCredential)
		waitFor(t, func() bool { return h.server.Connections() == 0 })
	})
}

// TestRandomStreamsConverge: whatever is published, whoever comes, goes, returns or dawdles, everybody ends with the last
// document, and every patch fits.
func TestRandomStreamsConverge(t *testing.T) {
	forEachPath(t, options{}, func(t *testing.T, h *harness) {
		for _, payload := range []string{"snapshot", "item"} {
			topic := h.topic(payload)
			rnd := rand.New(rand.NewPCG(1, 2))
			var wg sync.WaitGroup
			clients := []*client{}
			for i := range 8 {
				c := &client{t: t, h: h, path: "/v1/topics/" + topic.ID, headers: header{}, rnd: rand.New(rand.NewPCG(uint64(i), 3))}
				if i%2 == 1 {
					c.headers["X-Sd-Compress"], c.headers["Accept-Encoding"] = "true", "gzip"
				}
				if i%4 == 2 {
					c.headers["Accept"] = "application/json"
				}
				if payload == "item" && i >= 4 {
					c.filter = []string{"1", "3", "nobody"}
					c.path += "?X-Sd-Filter=nobody,3,1"
				}
				clients = append(clients, c)
				wg.Go(c.run)
			}
			last := ""
			for n := range 300 {
				if payload == "snapshot" {
					last = randomDocument(rnd, n)
				} else {
					last = randomItems(rnd, n)
				}
				h.post(topic, last)
				if rnd.IntN(10) == 0 {
					time.Sleep(time.Millisecond)
				}
			}
			final := `{"end":true}`
			if payload == "item" {
				final = `[{"id":3,"end":true}]`
			}
			h.post(topic, final)
			wg.Wait()
			want, _, err := h.router.Document(t.Context(), topic)
			if err != nil {
				t.Fatal(err)
			}
			for i, c := range clients {
				if !jsonpatch.Equal(c.doc, filtered(want, c.filter)) {
					t.Errorf("%s client %d ended with %s, want %s", payload, i, c.doc, filtered(want, c.filter))
				}
			}
		}
	})
}

// client follows a topic through reconnects until it sees the end.
type client struct {
	t       *testing.T
	h       *harness
	path    string
	headers header
	filter  []string
	rnd     *rand.Rand
	doc     []byte
	lastID  string
}

func (c *client) run() {
	for !bytes.Contains(c.doc, []byte(`"end"`)) {
		headers := header{}
		for name, value := range c.headers {
			headers[name] = value
		}
		if c.lastID != "" {
			headers["Last-Event-ID"] = c.lastID
		}
		s := c.h.get(c.path, headers)
		for n := c.rnd.IntN(40); n >= 0 && !bytes.Contains(c.doc, []byte(`"end"`)); n-- {
			e, err := s.next()
			if err != nil {
				c.t.Errorf("stream: %v", err)
				s.close()
				return
			}
			if e.name == "" {
				continue
			}
			if c.lastID != "" {
				before, _ := freshet.ParsePosition(c.lastID)
				now, ok := freshet.ParsePosition(e.id)
				if !ok || now.Epoch == before.Epoch && now.Version <= before.Version {
					c.t.Errorf("id %s after %s", e.id, c.lastID)
				}
			}
			c.lastID = e.id
			c.doc = apply(c.t, c.doc, e)
			if c.rnd.IntN(20) == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		s.close()
	}
}

func filtered(doc []byte, ids []string) []byte {
	if ids == nil {
		return doc
	}
	var items []map[string]any
	if err := json.Unmarshal(doc, &items); err != nil {
		return doc
	}
	kept := []map[string]any{}
	for _, item := range items {
		for _, id := range ids {
			if fmt.Sprint(item["id"]) == id {
				kept = append(kept, item)
			}
		}
	}
	out, _ := json.Marshal(kept)
	return out
}

func randomDocument(rnd *rand.Rand, n int) string {
	doc := map[string]any{"n": n}
	for range rnd.IntN(6) {
		key := string(rune('a' + rnd.IntN(6)))
		switch rnd.IntN(4) {
		case 0:
			doc[key] = rnd.IntN(3)
		case 1:
			doc[key] = []any{rnd.IntN(3), rnd.IntN(3), map[string]any{"x/~": rnd.IntN(2)}}
		case 2:
			doc[key] = map[string]any{"k": rnd.IntN(3), "l": strings.Repeat("y", rnd.IntN(300))}
		case 3:
			doc[key] = nil
		}
	}
	if rnd.IntN(20) == 0 {
		return fmt.Sprintf("[%d]", n)
	}
	out, _ := json.Marshal(doc)
	return string(out)
}

func randomItems(rnd *rand.Rand, n int) string {
	var items []any
	for range rnd.IntN(4) {
		items = append(items, map[string]any{"id": rnd.IntN(6), "n": n, "v": rnd.IntN(3)})
	}
	if items == nil {
		items = []any{}
	}
	out, _ := json.Marshal(items)
	return string(out)
}

func TestForcePublishingSeesSubscribersComeAndGo(t *testing.T) {
	forEachPath(t, options{}, func(t *testing.T, h *harness) {
		topic := h.topic("snapshot")
		no := false
		topic.Publisher.ForcePublishing = &no
		out, err := h.router.Publish(t.Context(), &topic, router.Publication{Body: []byte(`1`)})
		if err != nil || !out.Dropped {
			t.Errorf("%+v, %v", out, err)
		}
		s := h.get("/v1/topics/"+topic.ID, nil)
		h.post(topic, `2`)
		s.expect("snapshot", "2")
		s.close()
		waitFor(t, func() bool { is, _ := h.grid.Present(t.Context(), topic.ID); return !is })
	})
}
