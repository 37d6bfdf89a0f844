package subscribe_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/httpkit"
)

// logged returns the only line of the log that has the session of an error event.
func (h *harness) logged(data string) string {
	h.t.Helper()
	var f struct{ SessionID string }
	if err := json.Unmarshal([]byte(data), &f); err != nil || f.SessionID == "" {
		h.t.Fatalf("%s: %v", data, err)
	}
	var lines []string
	waitFor(h.t, func() bool { // the event may be sent before the line is written
		lines = nil
		for line := range strings.Lines(h.logs.String()) {
			if strings.Contains(line, "session="+f.SessionID) {
				lines = append(lines, line)
			}
		}
		return len(lines) > 0
	})
	if len(lines) != 1 {
		h.t.Errorf("%d lines have the session of %s: %q", len(lines), data, lines)
	}
	return lines[0]
}

func TestARefusedSubscriptionIsInTheLog(t *testing.T) {
	forEachPath(t, options{}, func(t *testing.T, h *harness) {
		topic := h.topic("snapshot")
		unknown := freshet.NewID()
		h.catalog.setRefusal("revokedkey000000", freshet.RevokedCredential)
		h.catalog.setRefusal("brokenstore00000", freshet.Internal)
		for _, c := range []struct {
			method, path string
			headers      header
			want         []string
		}{
			{"GET", "/v1/topics/" + unknown, nil, []string{"level=INFO", `msg="subscription refused"`, "code=40401", "topic=" + unknown, `reason="There is no such topic"`}},
			{"GET", "/v1/topics/" + topic.ID + "?X-Sd-Subscriber-Key=revokedkey000000", nil, []string{"level=INFO", "code=40111", "topic=" + topic.ID, "reason=refused"}},
			{"GET", "/v1/topics/" + topic.ID, header{"X-Sd-Subscriber-Key": "revokedkey000000", "X-Sd-Token": "old"}, []string{"code=40111"}},
			{"GET", "/v1/topics/" + topic.ID, header{"X-Sd-Subscriber-Key": "brokenstore00000"}, []string{"level=ERROR", `msg="subscription failed"`, "code=50000", "topic=" + topic.ID}},
			{"GET", "/v1/topics/" + topic.ID + "?X-Sd-Filter=a", nil, []string{"code=40000"}},
			{"GET", "/v1/topics/" + topic.ID + "?X-Sd-Transport=pigeon", nil, []string{"code=40000", "topic=" + topic.ID}},
			{"GET", "/https://user:pass@API.example.com:8443/a?b=c", nil, []string{"code=40100", "host=api.example.com"}},
			{"GET", "/https://api.example.com/?X-Sd-Header=none", nil, []string{"code=40000", "host=api.example.com"}},
			{"GET", "/nowhere", nil, []string{"code=40400"}},
			{"POST", "/v1/topics/" + topic.ID, nil, []string{"code=40500", "topic=" + topic.ID}},
		} {
			s := h.request(c.method, c.path, c.headers)
			line := h.logged(s.expect("error", "").data)
			s.close()
			for _, want := range append(c.want, "remote=") {
				if !strings.Contains(line, want) {
					t.Errorf("%s: no %s in %s", c.path, want, line)
				}
			}
		}
		h.catalog.setRefusal("badkey0000000000", freshet.UnknownCredential)
		_, events := h.longPoll(topic, "?X-Sd-Subscriber-Key=badkey0000000000", nil)
		data, _ := json.Marshal(events[0]["data"])
		if line := h.logged(string(data)); !strings.Contains(line, "code=40110") {
			t.Error(line)
		}
		for _, secret := range []string{"revokedkey", "badkey", "brokenstore", "pass", "user:", "b=c", "/a", "pigeon"} {
			if strings.Contains(h.logs.String(), secret) {
				t.Errorf("%s is in the log:\n%s", secret, h.logs.String())
			}
		}
	})
}

func TestBehindAProxyTheClientsAddressIsInTheLog(t *testing.T) {
	loopback := httpkit.Proxies{netip.MustParsePrefix("127.0.0.0/8")}
	for name, c := range map[string]struct {
		proxies httpkit.Proxies
		want    string
	}{
		"one that is trusted": {loopback, "remote=203.0.113.7:0"},
		"any other":           {nil, "remote=127.0.0.1:"},
	} {
		t.Run(name, func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			h := newHarness(t, options{proxies: c.proxies}, tcpListener{ln}, -1)
			defer h.close()
			s := h.get("/v1/topics/"+freshet.NewID(), header{"X-Forwarded-For": "198.51.100.1, 203.0.113.7"})
			defer s.close()
			if line := h.logged(s.expect("error", "").data); !strings.Contains(line, c.want) {
				t.Errorf("no %s in %s", c.want, line)
			}
		})
	}
}

func TestAStreamThatEndsWithAnErrorIsInTheLog(t *testing.T) {
	forEachPath(t, options{}, func(t *testing.T, h *harness) {
		topic := h.topic("snapshot")
		h.post(topic, `1`)
		var open []*stream
		for _, headers := range []header{nil, nil, {"X-Sd-Compress": "true", "Accept-Encoding": "gzip"}, {"X-Sd-Token": "kkkkkkkkkkkkkkkkkkkk"}} {
			s := h.get("/v1/topics/"+topic.ID, headers)
			defer s.close()
			if e, err := s.next(); err != nil || e.data != "1" {
				t.Fatal(e, err)
			}
			open = append(open, s)
		}
		h.catalog.mu.Lock()
		delete(h.catalog.topics, topic.ID)
		h.catalog.mu.Unlock()
		if err := h.grid.Notify(t.Context(), grid.Notice{Scope: grid.ScopeTopic, ID: topic.ID}); err != nil {
			t.Fatal(err)
		}
		for i, s := range open {
			line := h.logged(s.expect("error", "").data)
			for _, want := range []string{"level=INFO", `msg="streams ended"`, "code=60000", "topic=" + topic.ID, `reason="The topic was deleted"`} {
				if !strings.Contains(line, want) {
					t.Errorf("stream %d: no %s in %s", i, want, line)
				}
			}
		}
	})
}

func TestAnOutageThatIsToldIsInTheLog(t *testing.T) {
	forEachPath(t, options{}, func(t *testing.T, h *harness) {
		topic := h.polled("http://h/")
		h.post(topic, `1`)
		s := h.get("/http://h/", nil)
		defer s.close()
		s.expect("snapshot", "1")
		h.fail(topic, failure(freshet.SourceFailed, false))
		line := h.logged(s.expect("error", "").data)
		for _, want := range []string{"level=INFO", `msg="streams told of an error"`, "code=60001", "topic=" + topic.ID} {
			if !strings.Contains(line, want) {
				t.Errorf("no %s in %s", want, line)
			}
		}
	})
}

func TestAFloodOfRefusalsDoesNotFillTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, options{}, newPipeListener(), -1)
		defer h.close()
		for range 100 {
			s := h.request(http.MethodGet, "/v1/topics/"+freshet.NewID(), nil)
			s.expect("error", "")
			s.close()
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		refused := strings.Count(h.logs.String(), `msg="subscription refused"`)
		if left := fmt.Sprintf(`msg="log lines left out" about="error events" count=%d`, 100-refused); refused != 20 || strings.Count(h.logs.String(), left) != 1 {
			t.Errorf("%d lines:\n%s", refused, h.logs.String())
		}
	})
}
