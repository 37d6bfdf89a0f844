package subscribe_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
)

// polled makes a topic whose source is the URL.
func (h *harness) polled(url string) freshet.Topic {
	topic := h.topic("snapshot")
	topic.Publisher.Type, topic.Name = freshet.HTTPPoller, url
	h.catalog.mu.Lock()
	defer h.catalog.mu.Unlock()
	h.catalog.topics[topic.ID] = topic
	return topic
}

// fail does what the poller does when a source fails; nil when it recovers.
func (h *harness) fail(topic freshet.Topic, f *freshet.SourceFailure) {
	h.t.Helper()
	ctx, name := context.Background(), freshet.SourceValue(topic.ID)
	old, _ := h.grid.Value(ctx, name)
	value := ""
	if f != nil {
		value = f.Text()
	}
	if _, err := h.grid.Swap(ctx, name, old, value, time.Hour); err != nil {
		h.t.Fatal(err)
	}
	_ = h.grid.Notify(ctx, grid.Notice{Scope: grid.ScopeSource, ID: topic.ID})
}

func failure(kind freshet.Kind, fatal bool) *freshet.SourceFailure {
	return &freshet.SourceFailure{Kind: kind, Msg: "It fails", Since: time.Now(), Fatal: fatal}
}

func (s *stream) expectCode(code int) event {
	s.t.Helper()
	e := s.expect("error", "")
	var data struct{ Code int }
	if err := json.Unmarshal([]byte(e.data), &data); err != nil || data.Code != code {
		s.t.Errorf("got %v, want code %d", e, code)
	}
	return e
}

func TestTheRawTargetDecidesWhatIsPolled(t *testing.T) {
	forEachPath(t, options{}, func(t *testing.T, h *harness) {
		for raw, want := range map[string]string{
			"/https://api.example.com/p?x=1": "https://api.example.com/p?x=1",
			"/https:/api.example.com/p?x=1":  "https://api.example.com/p?x=1",
			"/HTTPS://API.Example.com/P":     "https://api.example.com/P",
			"/http://h:8080":                 "http://h:8080/",
			"/http://h:8080?a=b":             "http://h:8080/?a=b",
			"/http://h//a//../b/./c%2Fd":     "http://h//a//../b/./c%2Fd",
			"/http://h/?b=%20&a=+&a=%2B&&c":  "http://h/?b=%20&a=+&a=%2B&&c",
			"/http://h/?X-Sd-Token=k&b=1&x-sd-filter=&evs_preamble=10&c=2&EVS_x=":    "http://h/?b=1&c=2",
			"/http://h/?b=1&X-Auth-Sd-Ts=1&X-Auth-Sd-S=2&X-Own=3":                    "http://h/?b=1&X-Own=3",
			"/http://h/caf\xe9/caf\xc3\xa9?q=\xe9&X-Sd-Token=k":                      "http://h/caf%E9/caf%C3%A9?q=%E9",
			"/http://h/?X-Sd-Subscriber-Key=k":                                       "http://h/",
			"/http://h/?lastEventId=mine&last_event_id=7&padding=true":               "http://h/?lastEventId=mine&last_event_id=7&padding=true",
			"/http://h/?lastEventId=abc-12&last_event_id=abc-12&a=1":                 "http://h/?a=1",
			"/http://h/http://other/?u=http://third/":                                "http://h/http://other/?u=http://third/",
			"http://subscriber.test/https://api.example.com/absolute?form=1":         "https://api.example.com/absolute?form=1",
			"/http://h/?X-Sd-Header=X-Key%3A%20a&X-Sd-Header=Authorization%253A%20b": "http://h/",
		} {
			s := h.get(raw, nil)
			s.close()
			ask := h.catalog.lastAsk()
			if ask.Source == nil || ask.Source.URL != want {
				t.Errorf("%s is %+v, want %s", raw, ask.Source, want)
			}
		}
	})
}

func TestWhatIsForwardedToTheTarget(t *testing.T) {
	forEachPath(t, options{}, func(t *testing.T, h *harness) {
		req := func(path string, headers http.Header) string {
			t.Helper()
			ctx, cancel := context.WithCancel(context.Background())
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, h.base, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.URL.Opaque = path
			r.Header = headers
			h.do(r, cancel).close()
			var got []string
			for _, f := range h.catalog.lastAsk().Source.Headers {
				got = append(got, f.Name+"="+f.Value.Reveal())
			}
			return strings.Join(got, " ")
		}
		all := http.Header{
			"Authorization": {"Basic x"}, "X-Api-Key": {"k"}, "X-Twice": {"1", "2"}, "Cookie": {"c"}, "Connection": {"x, x-hop", "X-Leap"}, "X-Hop": {"1"}, "X-Leap": {"1"}, "Accept": {"text/html"},
			"X-Sd-Subscriber-Key": {"kkkkkkkkkkkkkkkkkkkk"}, "X-Auth-Sd-Ts": {"1"}, "X-Forwarded-For": {"f"}, "X-Real-Ip": {"r"}, "X-Requested-With": {"w"},
			"Proxy-Authorization": {"p"}, "Referer": {"r"}, "Origin": {"o"}, "Last-Event-Id": {"l"}, "User-Agent": {"u"},
		}
		if got := req("/http://h/", all); got != "Authorization=Basic x X-Api-Key=k X-Twice=1 X-Twice=2" {
			t.Errorf("forwarded %s", got)
		}
		for query, want := range map[string]string{
			"X-Sd-Header=X-A:%201":                             "X-A=1",
			"X-Sd-Header=x-a:1&X-Sd-Header=B:%202":             "B=2 X-A=1",
			"X-Sd-Header=X-A%253A%25201%2525":                  "X-A=1%",
			"X-Sd-Header=Authorization:%20Bearer%20a%2Bb%253D": "Authorization=Bearer a+b%3D",
			"X-Sd-Header=Accept:%20application/json":           "",
			"X-Sd-Header=Accept:%20application/vnd.x%2Bjson":   "Accept=application/vnd.x+json",
			"X-Sd-Header=Cookie:%20c&X-Sd-Header=Host:%20h&X-Sd-Header=Connection:%20x&X-Sd-Header=X-Sd-Token:%20x": "",
			"X-Sd-Header=X-Forwarded-For:%20c&X-Sd-Header=X-Requested-With:%20w":                                    "X-Requested-With=w",
		} {
			if got := req("/http://h/?"+query, nil); got != want {
				t.Errorf("%s forwards %q, want %q", query, got, want)
			}
		}
		if got := req("/http://h/?X-Sd-Header=Authorization:%20asked", http.Header{"Authorization": {"sent"}}); got != "Authorization=asked" {
			t.Errorf("what is asked for does not replace what is sent: %s", got)
		}
		for _, bad := range []string{"X-Sd-Header=none", "X-Sd-Header=A%20B:%20c", "X-Sd-Header=A:%20b%0d%0ac", "X-Sd-Header=%zz",
			"X-Sd-Header=A:%20" + strings.Repeat("x", 20<<10)} {
			s := h.get("/http://h/?"+bad, nil)
			s.expectCode(40000)
			s.close()
		}
		s := h.get("/http://h/", header{"Via": "1.1 proxy, 1.1 freshet"})
		s.expectCode(40000)
		s.close()
	})
}

func TestAFailureWithoutADocumentEndsTheStream(t *testing.T) {
	forEachPath(t, options{}, func(t *testing.T, h *harness) {
		topic := h.polled("http://h/")
		s := h.get("/http://h/", nil)
		defer s.close()
		waitFor(t, func() bool { return h.server.Connections() == 1 })
		h.fail(topic, failure(freshet.SourceUnknownHost, true))
		if e := s.expectCode(60400); e.retry != "30000" {
			t.Errorf("retry is %q", e.retry)
		}
		if _, err := s.next(); err != errEnd {
			t.Error("the stream goes on")
		}
		late := h.get("/v1/topics/"+topic.ID, header{"X-Sd-Compress": "true", "Accept-Encoding": "gzip"})
		defer late.close()
		late.expectCode(60400)
		if _, err := late.next(); err != errEnd {
			t.Error("the late one's stream goes on")
		}
		h.fail(topic, nil)
		h.post(topic, `1`)
		again := h.get("/http://h/", nil)
		defer again.close()
		again.expect("snapshot", "1")
	})
}

func TestAFailureWithADocumentIsToldOnceAndStreamsStay(t *testing.T) {
	for name, headers := range map[string]header{
		"plain": nil, "gzip": {"X-Sd-Compress": "true", "Accept-Encoding": "gzip"}, "legacy": {"X-Sd-Token": "kkkkkkkkkkkkkkkkkkkk"},
	} {
		t.Run(name, func(t *testing.T) {
			snapshot := map[bool]string{true: "data", false: "snapshot"}[name == "legacy"]
			forEachPath(t, options{}, func(t *testing.T, h *harness) {
				topic := h.polled("http://h/")
				h.post(topic, `{"a":1}`)
				s := h.get("/http://h/", headers)
				defer s.close()
				s.expect(snapshot, `{"a":1}`)
				outage := failure(freshet.SourceFailed, false)
				h.fail(topic, outage)
				e := s.expectCode(60001)
				if e.retry != "" || e.id != "" || strings.Contains(e.data, `"cause"`) != (name == "legacy") {
					t.Errorf("told %+v", e)
				}
				h.fail(topic, outage) // told again by the poller: the same outage
				late := h.get("/http://h/", headers)
				defer late.close()
				late.expect(snapshot, `{"a":1}`)
				late.expectCode(60001)
				h.fail(topic, nil)
				h.post(topic, `{"a":2}`)
				for _, s := range []*stream{s, late} {
					s.expect("patch", "")
				}
				waitFor(t, func() bool {
					calm := h.get("/http://h/", headers)
					defer calm.close()
					calm.expect(snapshot, `{"a":2}`)
					h.post(topic, fmt.Sprintf(`{"a":2,"t":%d}`, time.Now().UnixNano()))
					e, err := calm.next()
					h.post(topic, `{"a":2}`)
					return err == nil && e.name == "patch"
				})
				next := failure(freshet.SourceUnreachable, false)
				next.Since = outage.Since.Add(time.Minute)
				h.fail(topic, next)
				for {
					if e, err := late.next(); err != nil || e.name == "error" {
						if !strings.Contains(e.data, "60100") {
							t.Errorf("the next outage: %+v, %v", e, err)
						}
						break
					}
				}
			})
		})
	}
}

func TestRefusedCredentialsEndTheStreamAfterTheDocument(t *testing.T) {
	forEachPath(t, options{}, func(t *testing.T, h *harness) {
		topic := h.polled("http://h/")
		h.post(topic, `1`)
		s := h.get("/http://h/", nil)
		defer s.close()
		s.expect("snapshot", "1")
		h.fail(topic, failure(freshet.SourceExpired, true))
		s.expectCode(60103)
		if _, err := s.next(); err != errEnd {
			t.Error("the stream goes on")
		}
		late := h.get("/http://h/", nil)
		defer late.close()
		late.expect("snapshot", "1")
		late.expectCode(60103)
		if _, err := late.next(); err != errEnd {
			t.Error("the late one's stream goes on")
		}
	})
}

func TestASourceThatGivesNothingInTimeEndsTheStream(t *testing.T) {
	forEachPath(t, options{snapshot: 200 * time.Millisecond}, func(t *testing.T, h *harness) {
		h.polled("http://h/")
		posted := h.topic("snapshot")
		s := h.get("/http://h/", nil)
		defer s.close()
		patient := h.get("/v1/topics/"+posted.ID, nil)
		defer patient.close()
		if e := s.expectCode(50001); e.retry == "" {
			t.Error("no advice when to come back")
		}
		h.post(posted, `1`)
		patient.expect("snapshot", "1")
	})
}

func TestLongPollersLearnOfFailuresWithoutSpinning(t *testing.T) {
	forEachPath(t, options{longPoll: 300 * time.Millisecond}, func(t *testing.T, h *harness) {
		topic := h.polled("http://h/")
		h.post(topic, `1`)
		h.fail(topic, failure(freshet.SourceFailed, false))
		ask := func(path string) []map[string]any {
			t.Helper()
			s := h.get(path, header{"X-Sd-Transport": "long-poll"})
			defer s.close()
			if s.resp.StatusCode == http.StatusNoContent {
				return nil
			}
			var got []map[string]any
			if err := json.NewDecoder(s.r).Decode(&got); err != nil {
				t.Fatal(err)
			}
			return got
		}
		first := ask("/http://h/")
		if len(first) != 2 || first[0]["event"] != "snapshot" || first[1]["event"] != "error" {
			t.Fatalf("first: %v", first)
		}
		if again := ask("/http://h/?evs_last_event_id=" + first[0]["id"].(string)); again != nil {
			t.Errorf("told at once again: %v", again)
		}
	})
}
