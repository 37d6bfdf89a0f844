package subscribe_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/subscribe"
)

// dialogue is a raw connection whose answer is collected.
type dialogue struct {
	t    *testing.T
	conn net.Conn

	mu    sync.Mutex
	got   bytes.Buffer
	ended bool
}

func (h *harness) converse(pieces ...string) *dialogue {
	h.t.Helper()
	conn, err := net.Dial("tcp", h.address)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { conn.Close() })
	d := &dialogue{t: h.t, conn: conn}
	passed := h.passed.Load()
	for i, piece := range pieces {
		if i > 0 {
			eventually(h.t, func() bool { return h.passed.Load() > passed }) // what came first was not enough
		}
		if _, err := io.WriteString(conn, piece); err != nil {
			h.t.Fatal(err)
		}
	}
	go d.read()
	return d
}

func (d *dialogue) read() {
	buf := make([]byte, 4<<10)
	for {
		n, err := d.conn.Read(buf)
		d.mu.Lock()
		d.got.Write(buf[:n])
		d.ended = d.ended || err != nil
		d.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// volatile is what differs from answer to answer.
var volatile = regexp.MustCompile(`(Date: |"datetime":"|"sessionId":"|"timestamp":)[^"\r}]*`)

// answer is what came so far, and whether the other side ended it.
func (d *dialogue) answer() (string, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return volatile.ReplaceAllString(d.got.String(), "$1"), d.ended
}

// await waits until the answer has a text, or has ended.
func (d *dialogue) await(text string) {
	d.t.Helper()
	eventually(d.t, func() bool {
		got, ended := d.answer()
		return ended || strings.Contains(got, text)
	})
}

func eventually(t *testing.T, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it did not come")
		}
	}
}

func (c *fakeCatalog) setAway(away bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away = away
}

// begunNow is how many streams were begun without waiting for anything, as long as nobody else asks. Others, whom something else
// kept from it, have waited after all.
func (c *fakeCatalog) begunNow() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.atHand - c.waited
}

// TestAStreamThatBeginsAtOnceIsLikeOneThatWaits: the same requests have the same answers, byte for byte, wherever they are served; and those that
// come most begin at once.
func TestAStreamThatBeginsAtOnceIsLikeOneThatWaits(t *testing.T) {
	h := newSocketHarness(t, options{alone: true, longPoll: time.Millisecond, recheck: time.Hour})
	defer h.close()
	h.catalog.setRefusal("wrongwrongwrongwrong", freshet.UnknownCredential)
	topic, items := h.topic("snapshot"), h.topic("item")
	h.post(items, `[{"id":"a","n":0},{"id":"b","n":0}]`)
	h.post(topic, `{"n":0}`)
	round := 0
	const end = " HTTP/1.1\r\nHost: x\r\n\r\n"
	path := "/v1/topics/" + topic.ID
	for _, c := range []struct {
		name   string
		pieces []string
		atOnce bool
		last   string // what ends its first event; everything is compared unless it is set
	}{
		{name: "plain", pieces: []string{"GET " + path + end}, atOnce: true},
		{name: "latest", pieces: []string{"GET /latest/topics/" + topic.ID + end}, atOnce: true},
		{name: "a key in the query", pieces: []string{"GET " + path + "?X-Sd-Subscriber-Key=k" + end}, atOnce: true},
		{name: "a key encoded twice", pieces: []string{"GET " + path + "?X-Sd-Subscriber-Key=%2561" + end}, atOnce: true}, // the catalog's to judge
		{name: "a key in a header", pieces: []string{"GET " + path + " HTTP/1.1\r\nhOST: x\r\nx-sd-subscriber-key: k\r\n\r\n"}, atOnce: true},
		{name: "an app token", pieces: []string{"GET " + path + "?X-Sd-Token=k" + end}, atOnce: true},
		{name: "snapshots only", pieces: []string{"GET " + path + " HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nAccept: application/json\r\n\r\n"}, atOnce: true},
		{name: "snapshots only, for old clients", pieces: []string{"GET " + path + "?X-Sd-Header=Accept:%20application/json" + end}, atOnce: true},
		{name: "what browsers send", pieces: []string{"GET " + path + "?padding=true HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\nAccept: text/event-stream\r\n" +
			"Cache-Control: no-cache\r\nAccept-Encoding: gzip, deflate, br\r\nAccept-Language: en\r\nOrigin: https://a.example\r\nSec-Fetch-Mode: cors\r\n\r\n"}, atOnce: true},
		{name: "a preamble", pieces: []string{"GET " + path + "?evs_preamble=17" + end}, atOnce: true},
		{name: "a stream by name", pieces: []string{"GET " + path + "?X-Sd-Transport=sse" + end}, atOnce: true},
		{name: "a filter", pieces: []string{"GET /v1/topics/" + items.ID + "?X-Sd-Filter=b" + end}, atOnce: true},
		{name: "compressed", pieces: []string{"GET " + path + " HTTP/1.1\r\nHost: x\r\nX-Sd-Compress: true\r\nAccept-Encoding: gzip\r\n\r\n"}, last: "\x00\x00\xff\xff"},
		{name: "resumed by header", pieces: []string{"GET " + path + " HTTP/1.1\r\nHost: x\r\nLast-Event-ID: 1-1\r\n\r\n"}},
		{name: "resumed by query", pieces: []string{"GET " + path + "?lastEventId=1-1" + end}},
		{name: "signed", pieces: []string{"GET " + path + "?X-Auth-Sd-Ts=1&X-Auth-Sd-S=abc" + end}},
		{name: "behind Varnish", pieces: []string{"GET " + path + " HTTP/1.1\r\nHost: x\r\nX-Varnish: 1\r\n\r\n"}},
		{name: "a long poll", pieces: []string{"GET " + path + "?X-Sd-Transport=long-poll HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"}},
		{name: "a wrong key", pieces: []string{"GET " + path + "?X-Sd-Subscriber-Key=wrongwrongwrongwrong" + end}},
		{name: "an unknown topic", pieces: []string{"GET /v1/topics/" + freshet.NewID() + end}},
		{name: "an unknown path", pieces: []string{"GET /nothing/here" + end}},
		{name: "a broken parameter", pieces: []string{"GET " + path + "?X-Sd-Subscriber-Key=%zz" + end}},
		{name: "a filter where there are no items", pieces: []string{"GET " + path + "?X-Sd-Filter=b" + end}},
		{name: "a preamble too long", pieces: []string{"GET " + path + "?evs_preamble=99999999" + end}},
		{name: "escapes in the path", pieces: []string{"GET /v1/%74opics/" + topic.ID + end}},
		{name: "absolute form", pieces: []string{"GET http://x" + path + end}},
		{name: "HTTP/1.0", pieces: []string{"GET " + path + " HTTP/1.0\r\n\r\n"}},
		{name: "HEAD", pieces: []string{"HEAD " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"}},
		{name: "OPTIONS", pieces: []string{"OPTIONS " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nOrigin: a\r\n\r\n"}},
		{name: "POST", pieces: []string{"POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"}},
		{name: "a body", pieces: []string{"GET " + path + " HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"}},
		{name: "another request behind it", pieces: []string{"GET " + path + end + "GET " + path + end}},
		{name: "no host", pieces: []string{"GET " + path + " HTTP/1.1\r\n\r\n"}},
		{name: "a long header", pieces: []string{"GET " + path + " HTTP/1.1\r\nHost: x\r\nCookie: " + strings.Repeat("x", 9000) + "\r\n\r\n"}},
		{name: "garbage", pieces: []string{"\x00\x01\x02 / \r\n\r\n"}},
		{name: "TLS", pieces: []string{"\x16\x03\x01\x00\xc8\x01\x00\x00\xc4\x03\x03 and so on \r\n\r\n"}},
		{name: "split in the method", pieces: []string{"G", "ET " + path + end}},
		{name: "split in the path", pieces: []string{"GET " + path[:5], path[5:] + end}},
		{name: "split before the end", pieces: []string{"GET " + path + end[:len(end)-1], end[len(end)-1:]}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h.t = t
			post := func() {
				round++
				h.post(topic, fmt.Sprintf(`{"n":%d}`, round))
				h.post(items, fmt.Sprintf(`[{"id":"b","n":%d}]`, round))
			}
			post() // a document of its own, so that none is taken for another
			first := fmt.Sprintf(`"n":%d}`, round)
			if c.last != "" {
				first = c.last
			}
			h.catalog.setAway(true)
			ordinary := h.converse(c.pieces...)
			ordinary.await(first)
			h.catalog.setAway(false)
			before := h.catalog.begunNow()
			atOnce := h.converse(c.pieces...)
			atOnce.await(first)
			if got := h.catalog.begunNow() > before; got != c.atOnce {
				t.Errorf("begun at once: %v", got)
			}
			post()
			for _, d := range []*dialogue{ordinary, atOnce} {
				if c.last == "" {
					d.await(fmt.Sprintf(`:%d}`, round))
				}
			}
			want, wantEnd := ordinary.answer()
			got, gotEnd := atOnce.answer()
			if c.last != "" { // the first event only
				want, got = want[:strings.Index(want, c.last)], got[:strings.Index(got, c.last)]
			}
			if got != want || gotEnd != wantEnd || got == "" {
				t.Errorf("at once: %v %q\nelsewhere: %v %q", gotEnd, got, wantEnd, want)
			}
		})
	}
}

// TestARequestMayComeInTwoPieces: wherever it is cut.
func TestARequestMayComeInTwoPieces(t *testing.T) {
	h := newSocketHarness(t, options{alone: true})
	defer h.close()
	topic := h.topic("snapshot")
	h.post(topic, `{"n":0}`)
	request := "GET /v1/topics/" + topic.ID + "?X-Sd-Subscriber-Key=k HTTP/1.1\r\nHost: x\r\n\r\n"
	whole := h.converse(request)
	whole.await(`"n":0`)
	want, _ := whole.answer()
	for i := 1; i < len(request); i++ {
		d := h.converse(request[:i], request[i:])
		d.await(`"n":0`)
		if got, _ := d.answer(); got != want {
			t.Fatalf("cut after %q: %q", request[:i], got)
		}
		d.conn.Close()
	}
}

// TestThoseWhoBeginAtOnceAreSeenByEverybody: a stream that was begun where it was accepted is counted, listed, limited and ended like any
// other.
func TestThoseWhoBeginAtOnceAreSeenByEverybody(t *testing.T) {
	h := newSocketHarness(t, options{alone: true, messages: 1 << 40, recheck: time.Hour})
	defer h.close()
	h.catalog.mu.Lock()
	h.catalog.quotas = freshet.Quotas{}
	h.catalog.mu.Unlock()
	topic := h.topic("snapshot")
	h.post(topic, `{"n":0}`)
	request := "GET /v1/topics/" + topic.ID + "?X-Sd-Subscriber-Key=k HTTP/1.1\r\nHost: x\r\n\r\n"
	const n = 5
	var all []*dialogue
	for range n {
		d := h.converse(request)
		d.await(`"n":0`)
		all = append(all, d)
	}
	if now := h.catalog.begunNow(); now != n-1 {
		t.Fatalf("%d were begun at once", now)
	}
	if got := h.server.Connections(); got != n {
		t.Errorf("%d connections", got)
	}
	var open int64
	for _, o := range h.server.Stats().Open {
		open += o.Count
	}
	if st := h.fanout.Stats(); st.Open != n || st.Events != n || open != n {
		t.Errorf("%d streams and %d events are counted, and %d subscribers", st.Open, st.Events, open)
	}
	eventually(t, func() bool { // a loop has them
		list, total := h.server.Live(freshet.ConnectionFilter{TopicID: topic.ID}, 0, n)
		return total == n && list[n-1].Transport == "loop" && list[n-1].Remote != ""
	})
	list, _ := h.server.Live(freshet.ConnectionFilter{UserID: "user"}, 0, n)
	if !h.server.Cut(list[n-1].ID) {
		t.Error("the last one cannot be cut")
	}
	eventually(t, func() bool { return h.server.Connections() == n-1 })

	// A limit that comes later counts those who are here.
	h.catalog.mu.Lock()
	h.catalog.quotas.Connections = n - 1
	h.catalog.mu.Unlock()
	late := h.converse(request)
	late.await("error")
	if got, _ := late.answer(); !strings.Contains(got, "40121") {
		t.Errorf("one too many: %q", got)
	}

	// Nobody stays when the account is disabled, nor comes in.
	h.catalog.setRefusal("k", freshet.AccountDisabled)
	if err := h.grid.Notify(t.Context(), grid.Notice{Scope: grid.ScopeUser, ID: "user"}); err != nil {
		t.Fatal(err)
	}
	ended := 0
	for _, d := range all {
		eventually(t, func() bool { _, over := d.answer(); return over })
		if got, _ := d.answer(); strings.Contains(got, "40120") {
			ended++
		}
	}
	if ended != n-1 { // all but the one that was cut
		t.Errorf("%d streams ended because the account is disabled", ended)
	}
	refused := h.converse(request)
	refused.await("error")
	if got, _ := refused.answer(); !strings.Contains(got, "40120") {
		t.Errorf("%q", got)
	}
	eventually(t, func() bool { return h.server.Connections() == 0 && h.fanout.Stats().Open == 0 })
}

// TestALongPollIsWholeHoweverItIsSpelled: taken for a stream, it would be cut to what fits into the socket.
func TestALongPollIsWholeHoweverItIsSpelled(t *testing.T) {
	h := newSocketHarness(t, options{alone: true})
	defer h.close()
	topic := h.topic("snapshot")
	h.post(topic, `"`+strings.Repeat("x", 3<<20)+`"`)
	for _, query := range []string{"X-Sd-Transport=long-poll", "X%2DSd-Transport=long-poll", "a=b&x-sd-transport=long%2Dpoll", "%58-Sd-Transport=long-poll&b"} {
		s := h.get("/v1/topics/"+topic.ID+"?"+query, nil)
		body, err := io.ReadAll(s.resp.Body)
		if err != nil || !json.Valid(body) {
			t.Errorf("%s: %d of %d bytes, %v", query, len(body), s.resp.ContentLength, err)
		}
		s.close()
	}
}

// TestATargetThatIsNoURLIsAnsweredInOurWay: a browser can read an event, and not what the HTTP library says.
func TestATargetThatIsNoURLIsAnsweredInOurWay(t *testing.T) {
	h := newSocketHarness(t, options{})
	defer h.close()
	for path, code := range map[string]string{"/v1/topics/%zz": "40401", "/%": "40400"} {
		d := h.converse("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n")
		d.await(code)
		if got, _ := d.answer(); !strings.HasPrefix(got, "HTTP/1.1 200 OK\r\n") || !strings.Contains(got, code) {
			t.Errorf("%s: %s", path, got)
		}
	}
}

// TestWhoHasToWaitNeverReachesNetHTTP: its request is read once, whatever has to be asked for it, and whatever the outcome is.
func TestWhoHasToWaitNeverReachesNetHTTP(t *testing.T) {
	h := newSocketHarness(t, options{})
	defer h.close()
	h.catalog.setRefusal("wrongwrongwrongwrong", freshet.UnknownCredential)
	topic := h.topic("snapshot")
	h.post(topic, `{"n":0}`)
	path := "GET /v1/topics/" + topic.ID
	const end = " HTTP/1.1\r\nHost: x\r\n\r\n"
	for request, want := range map[string]string{
		path + end:                         `"n":0`,
		path + "?X-Sd-Transport=sse" + end: `"n":0`,
		path + "?lastEventId=1-1" + end:    `"n":0`,
		path + "?X-Sd-Subscriber-Key=wrongwrongwrongwrong" + end:     "40110",
		path + "?X-Sd-Subscriber-Key=%zz" + end:                      "40000",
		"GET /nothing/here" + end:                                    "40400",
		"GET /http://127.0.0.1:1/?X-Sd-Header=nothing" + end:         "40000",
		"GET /v1/topics/" + topic.ID + "?X-Sd-Compress=true" + end:   `"n":0`,
		"GET /latest/topics/" + topic.ID + "?padding=true" + end:     `"n":0`,
		"GET /latest/topics/" + freshet.NewID() + "?padding=1" + end: "40401",
	} {
		d := h.converse(request)
		d.await(want)
		if got, _ := d.answer(); !strings.Contains(got, want) {
			t.Errorf("%q: %q", request, got)
		}
	}
	if n := h.passed.Load(); n != 0 {
		t.Errorf("%d connections went to net/http", n)
	}
}

type panickyCatalog struct{ subscribe.Catalog }

func (c panickyCatalog) MaySubscribe(ctx context.Context, ask catalog.SubscribeAsk) (*catalog.Grant, error) {
	if ask.Key == "panic" {
		panic("a mistake")
	}
	return c.Catalog.MaySubscribe(ctx, ask)
}

func TestAPanicEndsOnlyItsConnection(t *testing.T) {
	h := newSocketHarness(t, options{change: func(p *subscribe.Parts) { p.Catalog = panickyCatalog{p.Catalog} }})
	defer h.close()
	topic := h.topic("snapshot")
	h.post(topic, `{"n":0}`)
	broken := h.converse("GET /v1/topics/" + topic.ID + "?X-Sd-Subscriber-Key=panic HTTP/1.1\r\nHost: x\r\n\r\n")
	eventually(t, func() bool { _, ended := broken.answer(); return ended })
	if got, _ := broken.answer(); got != "" {
		t.Errorf("%q", got)
	}
	h.converse("GET /v1/topics/" + topic.ID + " HTTP/1.1\r\nHost: x\r\n\r\n").await(`"n":0`)
	if !strings.Contains(h.logs.String(), "a mistake") {
		t.Errorf("the log does not tell: %s", h.logs)
	}
}
