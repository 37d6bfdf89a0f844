package publish_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
	"github.com/freshet-io/freshet/internal/grid/memory"
	"github.com/freshet-io/freshet/internal/publish"
	"github.com/freshet-io/freshet/internal/router"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeCatalog lets the key "good" publish to the topics it knows.
type fakeCatalog map[string]freshet.Topic

func (c fakeCatalog) MayPublish(_ context.Context, topicID, key string) (*catalog.Grant, error) {
	switch key {
	case "good":
	case "":
		return nil, freshet.Errorf(freshet.Unauthenticated, "The key is missing")
	default:
		return nil, freshet.Errorf(freshet.UnknownCredential, "There is no such key")
	}
	topic, ok := c[topicID]
	if !ok {
		return nil, freshet.Errorf(freshet.TopicNotFound, "There is no such topic")
	}
	return &catalog.Grant{Topic: topic, AppID: "app", UserID: "user", AppQuotas: freshet.Quotas{RequestsPerMinute: 2}}, nil
}

type minuteCounter struct {
	mu sync.Mutex
	n  int64
}

func (c *minuteCounter) Add(_ context.Context, _ string, n int64, _ time.Duration) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n += n
	return c.n, nil
}

type harness struct {
	t       *testing.T
	grid    *memory.Grid
	router  *router.Router
	handler http.Handler
	topic   freshet.Topic
	items   freshet.Topic
	quiet   freshet.Topic // publishes only for subscribers
	poller  freshet.Topic
}

// run gives the test a publishing API in a bubble.
func run(t *testing.T, opts publish.Options, test func(h *harness)) {
	synctest.Test(t, func(t *testing.T) {
		h := &harness{t: t, grid: memory.New(memory.Options{})}
		defer h.grid.Close()
		h.router = router.New(h.grid, router.Options{})
		defer h.router.Close()
		path, _ := freshet.ParseItemPath(".id")
		no := false
		h.topic = freshet.Topic{ID: "topic", Publisher: freshet.Publisher{Type: freshet.HTTPPost, Payload: freshet.Payload{Type: freshet.PayloadSnapshot}}}
		h.items = freshet.Topic{ID: "items", Publisher: freshet.Publisher{Type: freshet.HTTPPost, Payload: freshet.Payload{Type: freshet.PayloadItem, ItemIDPath: path}}}
		h.quiet = freshet.Topic{ID: "quiet", Publisher: freshet.Publisher{Type: freshet.HTTPPost, ForcePublishing: &no, Payload: freshet.Payload{Type: freshet.PayloadSnapshot}}}
		h.poller = freshet.Topic{ID: "poller", Publisher: freshet.Publisher{Type: freshet.HTTPPoller}}
		known := fakeCatalog{}
		for _, topic := range []freshet.Topic{h.topic, h.items, h.quiet, h.poller} {
			known[topic.ID] = topic
		}
		var err error
		if h.handler, err = publish.New(slog.New(slog.DiscardHandler), known, h.router, opts); err != nil {
			t.Fatal(err)
		}
		test(h)
	})
}

type request struct {
	method, topic, body string
	headers             map[string]string
}

func (h *harness) do(r request) *http.Response {
	if r.method == "" {
		r.method = "POST"
	}
	if r.topic == "" {
		r.topic = "topic"
	}
	req := httptest.NewRequest(r.method, "/topics/"+r.topic, strings.NewReader(r.body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Sd-Publisher-Key", "good")
	for name, value := range r.headers {
		if value == "" {
			req.Header.Del(name)
			continue
		}
		req.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, req)
	checkDescribed(h.t, r.method, w)
	return w.Result()
}

func (h *harness) document(topic freshet.Topic) string {
	body, _, err := h.router.Document(h.t.Context(), topic)
	if err != nil {
		h.t.Fatal(err)
	}
	return string(body)
}

func TestAnswers(t *testing.T) {
	run(t, publish.Options{MaxBody: 1000}, func(h *harness) {
		for _, c := range []struct {
			name   string
			r      request
			status int
			says   string // in the message
		}{
			{"accepted", request{body: `{"a": 1}`}, 204, ""},
			{"with a charset", request{body: `{"a":2}`, headers: map[string]string{"Content-Type": "application/json; charset=UTF-8"}}, 204, ""},
			{"other charset", request{body: `{}`, headers: map[string]string{"Content-Type": "application/json; charset=latin1"}}, 415, "UTF-8"},
			{"no key", request{body: `{}`, headers: map[string]string{"X-Sd-Publisher-Key": ""}}, 401, ""},
			{"unknown key", request{body: `{}`, headers: map[string]string{"X-Sd-Publisher-Key": "bad"}}, 401, ""},
			{"unknown topic", request{topic: "nope", body: `{}`}, 404, "topic"},
			{"poller", request{topic: "poller", body: `{}`}, 405, "polling"},
			{"method", request{method: "PUT", body: `{}`}, 405, "allowed"},
			{"no JSON", request{body: "{\n \"a\": nope}"}, 400, "line 2, column"},
			{"empty", request{body: ""}, 400, "JSON"},
			{"two values", request{body: "1 2"}, 400, "JSON"},
			{"duplicate keys", request{body: `{"a":1,"a":2}`}, 400, `duplicate key "a"`},
			{"bad UTF-8", request{body: "\"\xff\""}, 400, "UTF-8"},
			{"too deep", request{body: strings.Repeat("[", 513-13) + strings.Repeat("]", 500)}, 204, ""},
			{"too large", request{body: `"` + strings.Repeat("x", 1000) + `"`}, 413, "1000 bytes"},
			{"content type", request{body: `{}`, headers: map[string]string{"Content-Type": "text/plain"}}, 415, "application/json"},
			{"no content type", request{body: `{}`, headers: map[string]string{"Content-Type": ""}}, 415, "application/json"},
			{"content encoding", request{body: `{}`, headers: map[string]string{"Content-Encoding": "br"}}, 415, "gzip"},
			{"bad gzip", request{body: `{}`, headers: map[string]string{"Content-Encoding": "gzip"}}, 400, "gzip"},
			{"items", request{topic: "items", body: `[{"id":1}]`}, 204, ""},
			{"items not in an array", request{topic: "items", body: `{"id":1}`}, 400, "array"},
			{"items not objects", request{topic: "items", body: `[{"id":1}, 2]`}, 400, "element 1"},
			{"patch of items", request{method: "PATCH", topic: "items", body: `[]`, headers: map[string]string{"Content-Type": "application/json-patch+json"}}, 405, "item"},
			{"patch that is no array", request{method: "PATCH", body: `{}`, headers: map[string]string{"Content-Type": "application/json-patch+json"}}, 400, "array"},
			{"patch content type", request{method: "PATCH", body: `[]`}, 415, "application/merge-patch+json"},
			{"bad If-Match", request{body: `{}`, headers: map[string]string{"If-Match": "7"}}, 400, "If-Match"},
			{"long Idempotency-Key", request{body: `{}`, headers: map[string]string{"Idempotency-Key": strings.Repeat("x", 256)}}, 400, "Idempotency-Key"},
		} {
			resp := h.do(c.r)
			body, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != c.status {
				t.Errorf("%s: %d %s", c.name, resp.StatusCode, body)
				continue
			}
			if c.status == 405 && resp.Header.Get("Allow") == "" {
				t.Errorf("%s: it is not said what is allowed", c.name)
			}
			if c.status == 204 {
				if len(body) > 0 {
					t.Errorf("%s: body %q", c.name, body)
				}
				continue
			}
			var e struct{ Message string }
			if err := json.Unmarshal(body, &e); err != nil || !strings.Contains(e.Message, c.says) {
				t.Errorf("%s: %s", c.name, body)
			}
		}
	})
}

// What a patch leads to is not what was sent, and the message must not speak of the body.
func TestAPatchThatLeadsTooFarIsRefused(t *testing.T) {
	run(t, publish.Options{MaxBody: 100_000}, func(h *harness) {
		h.do(request{body: `{"a":1,"long":"` + strings.Repeat("x", 1000) + `"}`})
		before := h.document(h.topic)
		for op, want := range map[string]struct {
			status int
			says   string
		}{
			`{"op":"copy","from":"","path":"/a"}`:      {413, "copied"},
			`{"op":"copy","from":"/long","path":"/a"}`: {413, "copied"},
			`{"op":"add","path":"/a","value":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + `},{"op":"add","path":"/b","value":{}},` +
				strings.Repeat(`{"op":"add","path":"/c","value":{}},{"op":"move","from":"/a","path":"/c/d"},{"op":"move","from":"/c","path":"/a"},`, 20) +
				`{"op":"test","path":"/b","value":{}}`: {400, "the patched document is refused"},
		} {
			n := 1
			if want.status == 413 {
				n = 500
			}
			patch := "[" + strings.TrimSuffix(strings.Repeat(op+",", n), ",") + "]"
			resp := h.do(request{method: "PATCH", body: patch, headers: map[string]string{"Content-Type": "application/json-patch+json"}})
			body, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != want.status || !strings.Contains(string(body), want.says) || !strings.Contains(string(body), "The patch") {
				t.Errorf("%.60s: %d %s", op, resp.StatusCode, body)
			}
		}
		if got := h.document(h.topic); got != before {
			t.Errorf("got %.100s", got)
		}
	})
}

func TestARefusedPublicationChangesNothing(t *testing.T) {
	run(t, publish.Options{MaxBody: 100}, func(h *harness) {
		h.do(request{body: `{"a":1}`})
		h.do(request{body: `{"a":`})
		h.do(request{body: `{"a":2}`, headers: map[string]string{"X-Sd-Publisher-Key": "bad"}})
		h.do(request{body: `"` + strings.Repeat("x", 200) + `"`})
		h.do(request{method: "PATCH", body: `[{"op":"add","path":"/b","value":1},{"op":"remove","path":"/zz"}]`, headers: map[string]string{"Content-Type": "application/json-patch+json"}})
		if got := h.document(h.topic); got != `{"a":1}` {
			t.Errorf("got %s", got)
		}
	})
}

func TestETagAndIfMatch(t *testing.T) {
	run(t, publish.Options{}, func(h *harness) {
		first := h.do(request{body: `1`}).Header.Get("ETag")
		pos, ok := freshet.ParsePosition(strings.Trim(first, `"`))
		if !ok || pos.Version != 1 {
			t.Fatalf("ETag %s", first)
		}
		if same := h.do(request{body: `1.0`}).Header.Get("ETag"); same != first {
			t.Errorf("an equal document moved the ETag to %s", same)
		}
		for _, c := range []struct {
			match  string
			status int
		}{
			{`"99"`, 412}, {`"other-1"`, 412}, {`"something"`, 412}, {"W/" + first, 412}, {`"` + pos.Epoch + `-2"`, 412},
			{first, 204}, {`"2"`, 204}, {`"7", "3"`, 204}, {"*", 204},
		} {
			body := `"` + strings.ReplaceAll(c.match, `"`, "'") + `"`
			resp := h.do(request{body: body, headers: map[string]string{"If-Match": c.match}})
			if resp.StatusCode != c.status {
				t.Errorf("If-Match %s: %d", c.match, resp.StatusCode)
			}
			if changed := h.document(h.topic) == body; changed != (c.status == 204) {
				t.Errorf("If-Match %s: the document is %s", c.match, h.document(h.topic))
			}
		}
		if resp := h.do(request{topic: "items", body: `[]`, headers: map[string]string{"If-Match": "*"}}); resp.StatusCode != 412 {
			t.Errorf("If-Match * on nothing: %d", resp.StatusCode)
		}
	})
}

func TestIdempotencyKeyMakesRepetitionsDoNothing(t *testing.T) {
	run(t, publish.Options{}, func(h *harness) {
		once := request{body: `{"a":1}`, headers: map[string]string{"Idempotency-Key": "k1"}}
		first := h.do(once)
		h.do(request{body: `{"a":2}`})
		again := h.do(once)
		if again.StatusCode != 204 || again.Header.Get("ETag") != first.Header.Get("ETag") || again.Header.Get("Idempotent-Replayed") != "true" || first.Header.Get("Idempotent-Replayed") != "" {
			t.Errorf("%d %v", again.StatusCode, again.Header)
		}
		if got := h.document(h.topic); got != `{"a":2}` {
			t.Errorf("the repetition published: %s", got)
		}
		other := once
		other.body = `{"a":3}`
		if resp := h.do(other); resp.StatusCode != 409 {
			t.Errorf("the same key for another body: %d", resp.StatusCode)
		}
		bad := request{body: `{`, headers: map[string]string{"Idempotency-Key": "k2"}}
		h.do(bad)
		bad.body = `{"a":4}`
		if resp := h.do(bad); resp.StatusCode != 204 || h.document(h.topic) != `{"a":4}` {
			t.Errorf("a refused publication kept its key: %d", resp.StatusCode)
		}
		time.Sleep(25 * time.Hour)
		h.do(once)
		if got := h.document(h.topic); got != `{"a":1}` {
			t.Errorf("the key still holds after its window: %s", got)
		}
	})
}

func TestWithoutForceOnlySubscribersMakeItPublish(t *testing.T) {
	run(t, publish.Options{}, func(h *harness) {
		resp := h.do(request{topic: "quiet", body: `{"a":1}`})
		if resp.StatusCode != 204 || resp.Header.Get("ETag") != "" || h.document(h.quiet) != "" {
			t.Errorf("nobody there: %d %s", resp.StatusCode, h.document(h.quiet))
		}
		if resp := h.do(request{topic: "quiet", body: `{"a":`}); resp.StatusCode != 400 {
			t.Errorf("nonsense: %d", resp.StatusCode)
		}
		feed, err := h.router.Subscribe(h.t.Context(), &h.quiet, router.Variant{Event: "snapshot"})
		if err != nil {
			t.Fatal(err)
		}
		h.do(request{topic: "quiet", body: `{"a":2}`})
		if got := h.document(h.quiet); got != `{"a":2}` {
			t.Errorf("somebody there: %s", got)
		}
		feed.Close()
		h.do(request{topic: "quiet", body: `{"a":3}`})
		if got := h.document(h.quiet); got != `{"a":2}` {
			t.Errorf("nobody there any more: %s", got)
		}
	})
}

func TestPatches(t *testing.T) {
	run(t, publish.Options{}, func(h *harness) {
		json, merge := map[string]string{"Content-Type": "application/json-patch+json"}, map[string]string{"Content-Type": "application/merge-patch+json"}
		if resp := h.do(request{method: "PATCH", body: `[]`, headers: json}); resp.StatusCode != 409 {
			t.Errorf("a patch of nothing: %d", resp.StatusCode)
		}
		h.do(request{body: `{"a":[1],"b":1.50}`})
		if resp := h.do(request{method: "PATCH", body: `[{"op":"test","path":"/a/0","value":1},{"op":"move","from":"/a/0","path":"/c"}]`, headers: json}); resp.StatusCode != 204 || resp.Header.Get("ETag") == "" {
			t.Errorf("%d", resp.StatusCode)
		}
		if resp := h.do(request{method: "PATCH", body: `{"a":null,"d":{"e":1}}`, headers: merge}); resp.StatusCode != 204 {
			t.Errorf("%d", resp.StatusCode)
		}
		if got := h.document(h.topic); got != `{"b":1.50,"c":1,"d":{"e":1}}` {
			t.Errorf("got %s", got)
		}
		if resp := h.do(request{method: "PATCH", body: `[{"op":"test","path":"/c","value":2}]`, headers: json}); resp.StatusCode != 409 {
			t.Errorf("a failed test: %d", resp.StatusCode)
		}
	})
}

func TestPatchesAreRefusedForWhatTheyAreAndForWhatTheyMake(t *testing.T) {
	run(t, publish.Options{MaxBody: 200}, func(h *harness) {
		json, merge := map[string]string{"Content-Type": "application/json-patch+json"}, map[string]string{"Content-Type": "application/merge-patch+json"}
		before := `{"a":"` + strings.Repeat("x", 150) + `"}`
		h.do(request{body: before})
		for name, c := range map[string]struct {
			body    string
			headers map[string]string
			status  int
		}{
			"no such operation":     {`[{"op":"nope","path":"/x"}]`, json, 400},
			"no value":              {`[{"op":"add","path":"/x"}]`, json, 400},
			"no pointer":            {`[{"op":"add","path":"x","value":1}]`, json, 400},
			"no object":             {`[1]`, json, 400},
			"path that is not":      {`[{"op":"remove","path":"/x"}]`, json, 409},
			"copy too much":         {`[{"op":"copy","from":"/a","path":"/b"}]`, json, 413},
			"add too much":          {`[{"op":"add","path":"/b","value":"` + strings.Repeat("y", 100) + `"}]`, json, 413},
			"merge too much":        {`{"b":"` + strings.Repeat("y", 100) + `"}`, merge, 413},
			"copy and remove again": {`[{"op":"copy","from":"/a","path":"/b"},{"op":"remove","path":"/b"}]`, json, 204},
		} {
			if resp := h.do(request{method: "PATCH", body: c.body, headers: c.headers}); resp.StatusCode != c.status {
				t.Errorf("%s: %d, want %d", name, resp.StatusCode, c.status)
			}
			if got := h.document(h.topic); got != before {
				t.Errorf("%s: the document became %s", name, got)
			}
		}
	})
}

func TestGzipBodiesAreLimitedByWhatTheyDecodeTo(t *testing.T) {
	zip := func(s string) string {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		io.WriteString(w, s)
		w.Close()
		return b.String()
	}
	run(t, publish.Options{MaxBody: 10_000}, func(h *harness) {
		headers := map[string]string{"Content-Encoding": "gzip"}
		if resp := h.do(request{body: zip(`{"a":1}`), headers: headers}); resp.StatusCode != 204 || h.document(h.topic) != `{"a":1}` {
			t.Errorf("%d", resp.StatusCode)
		}
		if resp := h.do(request{body: zip(`"` + strings.Repeat("x", 9_998) + `"`), headers: headers}); resp.StatusCode != 204 {
			t.Errorf("exactly the limit: %d", resp.StatusCode)
		}
		if resp := h.do(request{body: zip(`"` + strings.Repeat("x", 1_000_000) + `"`), headers: headers}); resp.StatusCode != 413 {
			t.Errorf("a bomb: %d", resp.StatusCode)
		}
		whole := zip(`{"a":1}`)
		if resp := h.do(request{body: whole[:len(whole)-3], headers: headers}); resp.StatusCode != 400 {
			t.Errorf("a torn body: %d", resp.StatusCode)
		}
	})
}

func TestRateLimitIsToldAndKept(t *testing.T) {
	run(t, publish.Options{Counter: new(minuteCounter)}, func(h *harness) {
		for want := range []int{1, 0} {
			resp := h.do(request{body: `1`})
			if resp.StatusCode != 204 || resp.Header.Get("X-RateLimit-Limit-Minute") != "2" || resp.Header.Get("X-RateLimit-Remaining-Minute") == "" {
				t.Errorf("%d: %d %v", want, resp.StatusCode, resp.Header)
			}
		}
		resp := h.do(request{body: `2`})
		if resp.StatusCode != 429 || resp.Header.Get("Retry-After") == "" || h.document(h.topic) != `1` {
			t.Errorf("%d %v", resp.StatusCode, resp.Header)
		}
	})
}

func TestASlowBodyIsCutOff(t *testing.T) {
	run(t, publish.Options{BodyTimeout: 15 * time.Second}, func(h *harness) {
		server, client := net.Pipe()
		srv := &http.Server{Handler: h.handler}
		ln := &oneConn{conn: server, closed: make(chan struct{})}
		go srv.Serve(ln)
		defer srv.Close()
		defer client.Close()
		io.WriteString(client, "POST /topics/topic HTTP/1.1\r\nHost: x\r\nX-Sd-Publisher-Key: good\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n")
		start := time.Now()
		var dripping sync.WaitGroup
		defer dripping.Wait()
		defer client.Close()
		dripping.Go(func() {
			for {
				if _, err := io.WriteString(client, " "); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		})
		all, _ := io.ReadAll(client)
		if took := time.Since(start); took > 20*time.Second || !bytes.HasPrefix(all, []byte("HTTP/1.1 400")) {
			t.Errorf("after %v: %q", took, all)
		}
	})
}

// oneConn is a listener with one connection.
type oneConn struct {
	conn   net.Conn
	once   sync.Once
	end    sync.Once
	closed chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	var c net.Conn
	l.once.Do(func() { c = l.conn })
	if c == nil {
		<-l.closed
		return nil, net.ErrClosed
	}
	return c, nil
}

func (l *oneConn) Close() error {
	l.end.Do(func() { close(l.closed) })
	return nil
}

func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }

func TestDescriptionIsValidAndComplete(t *testing.T) {
	api := publish.Description()
	text, err := json.Marshal(api)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			Responses   map[string]any
			RequestBody struct{ Content map[string]any }
		}
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	topics := doc.Paths["/topics/{topic_id}"]
	if doc.OpenAPI != "3.1.0" || len(topics) != 2 || topics["post"].RequestBody.Content["application/json"] == nil || len(topics["patch"].RequestBody.Content) != 2 {
		t.Errorf("%s", text)
	}
	for _, status := range []string{"204", "400", "401", "404", "405", "409", "412", "413", "415", "429", "500", "503"} {
		if topics["post"].Responses[status] == nil {
			t.Errorf("%s is not described", status)
		}
	}
}

func TestReadingATopicHereIsNotAllowed(t *testing.T) {
	run(t, publish.Options{}, func(h *harness) {
		w := httptest.NewRecorder()
		h.handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/topics/topic", nil))
		if w.Code != http.StatusMethodNotAllowed || !strings.Contains(w.Header().Get("Allow"), "POST") {
			t.Errorf("got %d, Allow %q", w.Code, w.Header().Get("Allow"))
		}
	})
}
