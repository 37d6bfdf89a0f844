package subscribe_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
)

func TestASnapshotFirstThenPatches(t *testing.T) {
	forEachPath(t, options{}, func(t *testing.T, h *harness) {
		topic := h.topic("snapshot")
		h.post(topic, `{"a":1}`)
		for _, version := range []string{"v1", "latest"} {
			s := h.get("/"+version+"/topics/"+topic.ID, nil)
			defer s.close()
			if s.resp.StatusCode != 200 {
				t.Fatalf("status %d", s.resp.StatusCode)
			}
			for name, want := range (header{
				"Content-Type": "text/event-stream", "X-Accel-Buffering": "no",
				"Access-Control-Allow-Origin": "*", "Cache-Control": "no-cache, no-transform",
			}) {
				if got := s.resp.Header.Get(name); got != want {
					t.Errorf("%s: %q", name, got)
				}
			}
			first := s.expect("snapshot", "")
			h.post(topic, `{"a":`+fmt.Sprint(len(version))+`,"b":1}`)
			second := s.expect("patch", "")
			a, ok1 := freshet.ParsePosition(first.id)
			b, ok2 := freshet.ParsePosition(second.id)
			if !ok1 || !ok2 || a.Epoch != b.Epoch || b.Version != a.Version+1 {
				t.Errorf("ids %s then %s", first.id, second.id)
			}
		}
	})
}

func TestFramesOnTheWireAreExactlyTheseBytes(t *testing.T) {
	forEachPath(t, options{}, func(t *testing.T, h *harness) {
		topic := h.topic("snapshot")
		h.post(topic, "{\"a\":\r\n 1}")
		s := h.get("/v1/topics/"+topic.ID, nil)
		defer s.close()
		one := s.expect("snapshot", `{"a":1}`)
		h.post(topic, `{"a":2}`)
		two := s.expect("patch", `[{"op":"replace","path":"/a","value":2}]`)
		want := "event: snapshot\ndata: {\"a\":1}\nid: " + one.id + "\n\n" +
			"event: patch\ndata: [{\"op\":\"replace\",\"path\":\"/a\",\"value\":2}]\nid: " + two.id + "\n\n"
		if got := s.raw.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestTheStreamOpensBeforeThereIsADocument(t *testing.T) {
	forEachPath(t, options{}, func(t *testing.T, h *harness) {
		topic := h.topic("snapshot")
		s := h.get("/v1/topics/"+topic.ID, nil)
		defer s.close()
		h.post(topic, `[1]`)
		s.expect("snapshot", `[1]`)
		h.post(topic, `[1,2]`)
		s.expect("patch", "")
	})
}

func TestDeliveryModes(t *testing.T) {
	forEachPath(t, options{}, func(t *testing.T, h *harness) {
		for _, c := range []struct {
			name, query string
			headers     header
			first, then string
		}{
			{"default", "", nil, "snapshot", "patch"},
			{"any", "", header{"Accept": "*/*"}, "snapshot", "patch"},
			{"event stream", "", header{"Accept": "text/event-stream"}, "snapshot", "patch"},
			{"patches", "", header{"Accept": "application/json-patch+json"}, "snapshot", "patch"},
			{"snapshots", "", header{"Accept": "application/json"}, "snapshot", "snapshot"},
			{"both", "", header{"Accept": "application/json-patch+json, application/json;q=0.5"}, "snapshot", "snapshot"},
			{"refused", "", header{"Accept": "application/json;q=0, */*"}, "snapshot", "patch"},
			{"legacy header", "?X-Sd-Header=Accept%3A%20application%2Fjson", nil, "snapshot", "snapshot"},
			{"legacy header encoded twice", "?X-Sd-Header=Accept%253A%2520application%252Fjson", nil, "snapshot", "snapshot"},
			{"app token in the query", "?X-Sd-Token=0123456789abcdef", nil, "data", "patch"},
			{"app token in a header", "", header{"X-Sd-Token": "0123456789abcdef"}, "data", "patch"},
			{"app token and snapshots", "", header{"X-Sd-Token": "0123456789abcdef", "Accept": "application/json"}, "data", "data"},
		} {
			t.Log(c.name)
			topic := h.topic("snapshot")
			h.post(topic, `{"a":1}`)
			s := h.get("/v1/topics/"+topic.ID+c.query, c.headers)
			s.expect(c.first, `{"a":1}`)
			h.post(topic, `{"a":2}`)
			s.expect(c.then, "")
			s.close()
		}
	})
}

func TestCompressedStreamsDecodeEventByEvent(t *testing.T) {
	forEachPath(t, options{heartbeat: 300 * time.Millisecond}, func(t *testing.T, h *harness) {
		for _, c := range []struct {
			query   string
			headers header
			want    string
		}{
			{"", header{"Accept-Encoding": "gzip"}, ""},
			{"", header{"X-Sd-Compress": "true"}, ""},
			{"", header{"X-Sd-Compress": "true", "Accept-Encoding": "br"}, ""},
			{"", header{"X-Sd-Compress": "true", "Accept-Encoding": "gzip, deflate, br"}, "gzip"},
			{"?X-Sd-Compress=true", header{"Accept-Encoding": "deflate"}, "deflate"},
			{"?X-Sd-Compress=true", header{"Accept-Encoding": "gzip;q=0.1, deflate"}, "deflate"},
			{"?X-Sd-Compress=true&padding=true", header{"Accept-Encoding": "gzip"}, "gzip"},
		} {
			topic := h.topic("snapshot")
			h.post(topic, `{"a":1}`)
			s := h.get("/v1/topics/"+topic.ID+c.query, c.headers)
			if got := s.resp.Header.Get("Content-Encoding"); got != c.want {
				t.Errorf("%v: encoding %q, want %q", c.headers, got, c.want)
			}
			s.expect("snapshot", `{"a":1}`)
			for i := range 5 {
				h.post(topic, fmt.Sprintf(`{"a":%d}`, i+2))
				s.expect("patch", "")
			}
			if e, err := s.next(); err != nil || e.comment == "" {
				t.Errorf("waiting for a heartbeat: %v %v", e, err)
			}
			s.close()
		}
	})
}

func TestResumeInFourWays(t *testing.T) {
	forEachPath(t, options{}, func(t *testing.T, h *harness) {
		topic := h.topic("snapshot")
		h.post(topic, `{"a":1}`)
		s := h.get("/v1/topics/"+topic.ID, nil)
		id := s.expect("snapshot", "").id
		s.close()
		h.post(topic, `{"a":2}`)
		h.post(topic, `{"a":3}`)
		for _, c := range []struct {
			query   string
			headers header
			want    string
		}{
			{"", header{"Last-Event-ID": id}, "patch"},
			{"?lastEventId=" + id, nil, "patch"},
			{"?last_event_id=" + id, nil, "patch"},
			{"?evs_last_event_id=" + id, nil, "patch"},
			{"?lastEventId=" + id, header{"Last-Event-ID": "garbage"}, "snapshot"},
			{"?lastEventId=%0d%0adata:x", nil, "snapshot"},
			{"?lastEventId=" + strings.Repeat("9", 1000), nil, "snapshot"},
		} {
			s := h.get("/v1/topics/"+topic.ID+c.query, c.headers)
			e := s.expect(c.want, "")
			if c.want == "patch" && e.data != `[{"op":"replace","path":"/a","value":3}]` {
				t.Errorf("%s: %s", c.query, e.data)
			}
			h.post(topic, `{"a":4}`)
			s.expect("patch", `[{"op":"replace","path":"/a","value":4}]`)
			h.post(topic, `{"a":3}`)
			s.close()
		}
	})
}

func TestFilteredSubscribersSeeTheirItemsOnly(t *testing.T) {
	forEachPath(t, options{}, func(t *testing.T, h *harness) {
		topic := h.topic("item")
		h.post(topic, `[{"id":"a","v":1},{"id":"b","v":1},{"id":7,"v":1}]`)
		s := h.get("/v1/topics/"+topic.ID+"?X-Sd-Filter=7,b", nil)
		defer s.close()
		s.expect("snapshot", `[{"id":"b","v":1},{"id":7,"v":1}]`)
		h.post(topic, `[{"id":"a","v":2}]`)
		h.post(topic, `[{"id":7,"v":2}]`)
		s.expect("patch", `[{"op":"replace","path":"/1/v","value":2}]`)
	})
}

func TestErrorIsAnEventNotAStatus(t *testing.T) {
	forEachPath(t, options{}, func(t *testing.T, h *harness) {
		snapshot, items := h.topic("snapshot"), h.topic("item")
		for key, kind := range map[string]freshet.Kind{
			"no": freshet.Unauthenticated, "malformed": freshet.MalformedCredential, "unknown": freshet.UnknownCredential,
			"revoked": freshet.RevokedCredential, "expired": freshet.ExpiredCredential, "disabled": freshet.AccountDisabled,
			"crowded": freshet.ConnectionLimit, "spent": freshet.MessageLimit, "broken": freshet.Internal,
		} {
			h.catalog.setRefusal(key, kind)
		}
		topic := "/v1/topics/" + snapshot.ID
		for _, c := range []struct {
			method, path string
			code         int
			category     string
		}{
			{"GET", topic + "?X-Sd-Subscriber-Key=no", 40100, "ClientException"},
			{"GET", topic + "?X-Sd-Subscriber-Key=malformed", 40001, "ClientException"},
			{"GET", topic + "?X-Sd-Subscriber-Key=unknown", 40110, "ClientException"},
			{"GET", topic + "?X-Sd-Subscriber-Key=revoked", 40111, "ClientException"},
			{"GET", topic + "?X-Sd-Subscriber-Key=expired", 40112, "ClientException"},
			{"GET", topic + "?X-Sd-Subscriber-Key=disabled", 40120, "ClientException"},
			{"GET", topic + "?X-Sd-Subscriber-Key=crowded", 40121, "ClientException"},
			{"GET", topic + "?X-Sd-Subscriber-Key=spent", 40122, "ClientException"},
			{"GET", topic + "?X-Sd-Subscriber-Key=broken", 50000, "ServerException"},
			{"GET", "/v1/topics/" + freshet.NewID(), 40401, "ClientException"},
			{"GET", "/v1/topics/", 40400, "ClientException"},
			{"GET", "/v1/topics/" + snapshot.ID + "/x", 40400, "ClientException"},
			{"GET", "//v1/topics/" + snapshot.ID, 40400, "ClientException"},
			{"GET", "/v2/topics/" + snapshot.ID, 40400, "ClientException"},
			{"GET", "/", 40400, "ClientException"},
			{"GET", "/https://example.com/a?b=c", 40100, "ClientException"},
			{"GET", topic + "?X-Sd-Filter=a", 40000, "ClientException"},
			{"GET", "/v1/topics/" + items.ID + "?X-Sd-Filter=%zz", 40000, "ClientException"},
			{"GET", topic + "?evs_preamble=x", 40000, "ClientException"},
			{"GET", topic + "?X-Sd-Transport=pigeon", 40000, "ClientException"},
			{"GET", topic + "?X-Sd-Header=nonsense", 40000, "ClientException"},
			{"POST", topic, 40500, "ClientException"},
			{"DELETE", topic, 40500, "ClientException"},
		} {
			s := h.request(c.method, c.path, nil)
			e := s.expect("error", "")
			var f map[string]any
			if err := json.Unmarshal([]byte(e.data), &f); err != nil {
				t.Fatal(err)
			}
			if s.resp.StatusCode != 200 || f["code"] != float64(c.code) || f["category"] != c.category || f["message"] == "" || f["sessionId"] == "" {
				t.Errorf("%s %s: %d %s", c.method, c.path, s.resp.StatusCode, e.data)
			}
			if at, err := time.Parse(time.RFC3339, f["datetime"].(string)); err != nil || at.Location() != time.UTC {
				t.Errorf("datetime %v", f["datetime"])
			}
			if _, has := f["cause"]; has || f["timestamp"] != nil {
				t.Errorf("%s: legacy fields for a new client", c.path)
			}
			if e.retry != "30000" {
				t.Errorf("%s: retry %q", c.path, e.retry)
			}
			s.expectEnd()
			s.close()
		}
		if n := h.server.Connections(); n != 0 {
			t.Errorf("%d connections are left", n)
		}
	})
}

func TestOldClientsGetTheirFields(t *testing.T) {
	forEachPath(t, options{}, func(t *testing.T, h *harness) {
		s := h.get("/v1/topics/nope?X-Sd-Token=0123456789abcdef", header{"X-Sd-Compress": "true", "Accept-Encoding": "gzip"})
		defer s.close()
		e := s.expect("error", "")
		var f struct {
			Code, Status int
			Cause        string
			Timestamp    int64
		}
		if err := json.Unmarshal([]byte(e.data), &f); err != nil || f.Code != 40401 || f.Status != 404 || f.Cause == "" || f.Timestamp == 0 {
			t.Errorf("%s: %v", e.data, err)
		}
		s.expectEnd()
	})
}

func TestHeartbeatsKeepAnIdleStreamAlive(t *testing.T) {
	const every = 400 * time.Millisecond
	forEachPath(t, options{heartbeat: every}, func(t *testing.T, h *harness) {
		topic := h.topic("snapshot")
		h.post(topic, `1`)
		start := time.Now() // before the server's clock starts: this reader may be held up until many heartbeats have come
		s := h.get("/v1/topics/"+topic.ID, nil)
		defer s.close()
		s.expect("snapshot", "1")
		const beats = 5
		for range beats {
			e, err := s.next()
			if err != nil || e.comment == "" || e.name != "" {
				t.Fatalf("got %v, %v", e, err)
			}
		}
		// The sum only, and generously: a busy machine may hold up this reader, but never make heartbeats come faster.
		if took := time.Since(start); took < beats*every*8/10 || took > 5*beats*every+h.slow {
			t.Errorf("%d heartbeats in %v", beats, took)
		}
	})
}

func TestPaddingComesFirst(t *testing.T) {
	forEachPath(t, options{}, func(t *testing.T, h *harness) {
		topic := h.topic("snapshot")
		h.post(topic, `1`)
		for query, n := range map[string]int{"?padding=true": 2048, "?evs_preamble=100": 100, "?evs_preamble=5000&padding=true": 5000} {
			s := h.get("/v1/topics/"+topic.ID+query, nil)
			if e, err := s.next(); err != nil || len(e.comment) != n {
				t.Errorf("%s: a comment of %d bytes, %v", query, len(e.comment), err)
			}
			s.expect("snapshot", "1")
			s.close()
		}
	})
}

func TestPreflightHeadAndKeys(t *testing.T) {
	forEachPath(t, options{}, func(t *testing.T, h *harness) {
		topic := h.topic("snapshot")
		s := h.request("OPTIONS", "/v1/topics/"+topic.ID, header{"Origin": "https://example.com", "Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "x-sd-subscriber-key,x-other"})
		if s.resp.StatusCode != 204 || s.resp.Header.Get("Access-Control-Allow-Origin") != "*" ||
			s.resp.Header.Get("Access-Control-Allow-Headers") != "x-sd-subscriber-key,x-other" || !strings.Contains(s.resp.Header.Get("Access-Control-Allow-Methods"), "GET") {
			t.Errorf("%d %v", s.resp.StatusCode, s.resp.Header)
		}
		s.close()
		s = h.request("HEAD", "/v1/topics/"+topic.ID, nil)
		if body, _ := io.ReadAll(s.resp.Body); s.resp.StatusCode != 200 || s.resp.Header.Get("Content-Type") != "text/event-stream" || len(body) != 0 {
			t.Errorf("%d %v %q", s.resp.StatusCode, s.resp.Header, body)
		}
		s.close()
		for _, c := range []struct {
			query   string
			headers header
			want    string
		}{
			{"?X-Sd-Subscriber-Key=abc", nil, "abc"},
			{"?x-sd-subscriber-key=a%2Dc", nil, "a-c"},
			{"?X-Sd-Subscriber-Key=a%252Dc", nil, "a%2Dc"}, // the catalog decodes what is left
			{"", header{"X-Sd-Subscriber-Key": "abc"}, "abc"},
			{"?X-Sd-Token=tok", nil, "tok"},
			{"?X-Sd-Token=tok&X-Sd-Subscriber-Key=key", nil, "key"},
		} {
			s := h.get("/v1/topics/"+topic.ID+c.query, c.headers)
			if got := h.catalog.lastAsk(); got.Key != c.want || got.TopicID != topic.ID || got.Signed != nil {
				t.Errorf("%s: asked with %q", c.query, got.Key)
			}
			s.close()
		}
		s = h.get("/v1/topics/"+topic.ID+"?q=1&X-Auth-Sd-Ts=15&X-Auth-Sd-S=a%2Bb%3D", nil)
		if got := h.catalog.lastAsk().Signed; got == nil || got.Timestamp != "15" || got.Value != "a+b=" ||
			!slices.Equal(got.URLs, []string{"/v1/topics/" + topic.ID}) {
			t.Errorf("signed %+v", got)
		}
		s.close()
	})
}

func TestNoticesEndStreamsWithTheReason(t *testing.T) {
	forEachPath(t, options{}, func(t *testing.T, h *harness) {
		topic, other := h.topic("snapshot"), h.topic("snapshot")
		h.post(topic, `1`)
		h.post(other, `1`)
		for name, c := range map[string]struct {
			notice grid.Notice
			kind   freshet.Kind
			code   string
		}{
			"key renewed":      {grid.Notice{Scope: grid.ScopeApp, ID: "app"}, freshet.RevokedCredential, "40111"},
			"account disabled": {grid.Notice{Scope: grid.ScopeUser, ID: "user"}, freshet.AccountDisabled, "40120"},
			"nobody says what": {grid.Notice{Scope: grid.ScopeCatalog}, freshet.AccountDisabled, "40120"},
			"topic deleted":    {grid.Notice{Scope: grid.ScopeTopic, ID: topic.ID}, freshet.TopicNotFound, "60000"},
			"app deleted":      {grid.Notice{Scope: grid.ScopeTopic, ID: topic.ID}, freshet.UnknownCredential, "60000"},
		} {
			cut := h.get("/v1/topics/"+topic.ID+"?X-Sd-Subscriber-Key="+strings.ReplaceAll(name, " ", ""), nil)
			old := h.get("/v1/topics/"+topic.ID+"?X-Sd-Token="+strings.ReplaceAll(name, " ", ""), header{"X-Sd-Compress": "true", "Accept-Encoding": "deflate"})
			kept := h.get("/v1/topics/"+other.ID, nil)
			cut.expect("snapshot", "1")
			old.expect("data", "1")
			kept.expect("snapshot", "1")
			h.catalog.setRefusal(strings.ReplaceAll(name, " ", ""), c.kind)
			start := time.Now()
			h.grid.Notify(t.Context(), c.notice)
			if e := cut.expect("error", ""); !strings.Contains(e.data, c.code) || e.retry != "30000" {
				t.Errorf("%s: %v", name, e)
			}
			cut.expectEnd()
			if e := old.expect("error", ""); !strings.Contains(e.data, c.code) || !strings.Contains(e.data, `"cause"`) {
				t.Errorf("%s: %v", name, e)
			}
			old.expectEnd()
			if d := time.Since(start); d > time.Second+h.slow {
				t.Errorf("%s: it took %v", name, d)
			}
			h.post(other, fmt.Sprintf("[%q]", name))
			kept.expect("snapshot", "")
			h.post(other, "1")
			cut.close()
			old.close()
			kept.close()
		}
	})
}

func TestALostNoticeIsMadeGood(t *testing.T) {
	forEachPath(t, options{recheck: 200 * time.Millisecond}, func(t *testing.T, h *harness) {
		topic := h.topic("snapshot")
		h.post(topic, `1`)
		s := h.get("/v1/topics/"+topic.ID+"?X-Sd-Subscriber-Key=k", nil)
		defer s.close()
		s.expect("snapshot", "1")
		h.catalog.setRefusal("broken", freshet.Internal)
		h.catalog.setRefusal("k", freshet.Unavailable) // no answer is not a refusal
		before := h.catalog.asked()
		waitFor(t, func() bool { return h.catalog.asked() > before+1 }) // one may have been asked before
		h.catalog.setRefusal("k", freshet.RevokedCredential)
		if e := s.expect("error", ""); !strings.Contains(e.data, "40111") {
			t.Error(e)
		}
	})
}

func TestTheConnectionLimitIsExact(t *testing.T) {
	forEachPath(t, options{max: 3}, checkConnectionLimit)
}

func TestAnAccountsConnectionLimitIsExact(t *testing.T) {
	forEachPath(t, options{perAccount: 3}, checkConnectionLimit)
}

func TestAnAppsConnectionLimitIsExact(t *testing.T) {
	forEachPath(t, options{perApp: 3}, checkConnectionLimit)
}

func checkConnectionLimit(t *testing.T, h *harness) {
	topic := h.topic("snapshot")
	h.post(topic, `1`)
	var open []*stream
	for range 3 {
		s := h.get("/v1/topics/"+topic.ID, nil)
		s.expect("snapshot", "1")
		open = append(open, s)
	}
	over := h.get("/v1/topics/"+topic.ID, nil)
	if e := over.expect("error", ""); !strings.Contains(e.data, "40121") {
		t.Error(e)
	}
	over.close()
	open[0].close()
	waitFor(t, func() bool { return h.server.Connections() == 2 })
	again := h.get("/v1/topics/"+topic.ID, nil)
	again.expect("snapshot", "1")
	for _, s := range append(open[1:], again) {
		s.close()
	}
	waitFor(t, func() bool { return h.server.Connections() == 0 })
	waitFor(t, func() bool { is, _ := h.grid.Present(t.Context(), topic.ID); return !is })
}

// TestWhoComesAsAnotherGoesFindsItsSeat: closing a connection and opening one at once reach a server by two ways, which differ in length.
func TestWhoComesAsAnotherGoesFindsItsSeat(t *testing.T) {
	for name, opts := range map[string]options{"account": {perAccount: 2}, "app": {perApp: 2}, "edition": {max: 2}} {
		t.Run(name, func(t *testing.T) {
			opts.seatWait = patience
			forEachPath(t, opts, func(t *testing.T, h *harness) {
				topic := h.topic("snapshot")
				h.post(topic, `1`)
				var open []*stream
				for range 50 {
					if len(open) == 2 {
						open[0].close()
						open = open[1:]
					}
					s := h.get("/v1/topics/"+topic.ID, nil)
					s.expect("snapshot", "1")
					open = append(open, s)
				}
				open[0].close()
				open[1].close()
				waitFor(t, func() bool { return h.server.Connections() == 0 })
			})
		})
	}
}

// waitFor waits for something that has no event of its own.
func waitFor(t *testing.T, is func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !is() {
		if time.Now().After(deadline) {
			t.Fatal("it did not come")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// longPoll asks once, and returns the events of the answer.
func (h *harness) longPoll(topic freshet.Topic, query string, headers header) (*http.Response, []map[string]any) {
	h.t.Helper()
	all := header{"Accept": "application/json", "X-Sd-Transport": "long-poll"}
	for name, value := range headers {
		all[name] = value
	}
	s := h.get("/v1/topics/"+topic.ID+query, all)
	defer s.close()
	body, _ := io.ReadAll(s.r)
	var events []map[string]any
	if len(body) > 0 {
		if err := json.Unmarshal(body, &events); err != nil {
			h.t.Fatalf("%s: %v", body, err)
		}
	}
	return s.resp, events
}

func TestLongPollingAnswersOnce(t *testing.T) {
	forEachPath(t, options{}, func(t *testing.T, h *harness) {
		topic := h.topic("snapshot")
		h.post(topic, `{"a":1}`)
		resp, events := h.longPoll(topic, "", nil)
		if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "application/json" || len(events) != 1 || events[0]["event"] != "snapshot" || fmt.Sprint(events[0]["data"]) != "map[a:1]" {
			t.Fatalf("%d %v", resp.StatusCode, events)
		}
		id := events[0]["id"].(string)
		var wg sync.WaitGroup
		wg.Go(func() {
			for h.server.Stats().LongPoll == 0 { // until it waits for news
				time.Sleep(time.Millisecond)
			}
			h.post(topic, `{"a":2}`)
		})
		if _, events = h.longPoll(topic, "?lastEventId="+id, header{"X-Sd-Compress": "true", "Accept-Encoding": "gzip"}); len(events) != 1 || events[0]["event"] != "patch" || events[0]["id"] == id {
			t.Errorf("%v", events)
		}
		wg.Wait()
		if _, events = h.longPoll(topic, "?X-Sd-Header=Accept:application/json&lastEventId="+id, nil); len(events) != 1 || events[0]["event"] != "snapshot" {
			t.Errorf("%v", events)
		}
		h.catalog.setRefusal("bad", freshet.UnknownCredential)
		if resp, events = h.longPoll(topic, "?X-Sd-Subscriber-Key=bad", nil); resp.StatusCode != 200 || len(events) != 1 || events[0]["event"] != "error" || events[0]["data"].(map[string]any)["code"] != 40110.0 {
			t.Errorf("%d %v", resp.StatusCode, events)
		}
		waitFor(t, func() bool { return h.server.Connections() == 0 })
	})
}

func TestLongPollingEndsInSilence(t *testing.T) {
	forEachPath(t, options{longPoll: 200 * time.Millisecond}, func(t *testing.T, h *harness) {
		topic := h.topic("snapshot")
		if resp, events := h.longPoll(topic, "", nil); resp.StatusCode != 204 || events != nil {
			t.Errorf("silence: %d %v", resp.StatusCode, events)
		}
		h.post(topic, `{"a":1}`)
		_, events := h.longPoll(topic, "", nil)
		if len(events) != 1 {
			t.Fatalf("%v", events)
		}
		if resp, _ := h.longPoll(topic, "?lastEventId="+events[0]["id"].(string), nil); resp.StatusCode != 204 {
			t.Errorf("nothing new: %d", resp.StatusCode)
		}
		waitFor(t, func() bool { return h.server.Connections() == 0 })
	})
}

func TestSecretsStayOutOfLogs(t *testing.T) {
	forEachPath(t, options{}, func(t *testing.T, h *harness) {
		h.catalog.setRefusal("canarysecretkey0", freshet.Internal)
		for _, path := range []string{
			"/v1/topics/" + freshet.NewID() + "?X-Sd-Subscriber-Key=canarysecretkey0",
			"/v1/topics/canarysecretkey0?X-Sd-Subscriber-Key=canarysecretkey0",
			"/https://user:canarysecretkey0@example.com/canarysecretkey0?X-Sd-Subscriber-Key=canarysecretkey0",
		} {
			s := h.get(path, nil)
			if e := s.expect("error", ""); strings.Contains(e.data, "canary") {
				t.Error(e)
			}
			s.close()
		}
		h.http.Close()
		if strings.Contains(h.logs.String(), "canary") {
			t.Error(h.logs.String())
		}
	})
}
