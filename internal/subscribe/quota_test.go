package subscribe_test

import (
	"bytes"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/store"
	"github.com/freshet-io/freshet/internal/usage"
)

func TestUsedUpMessagesEndStreamsAndRefuseNewOnes(t *testing.T) {
	// As many as are sent below: with one less, whoever is served last might already be cut.
	forEachPath(t, options{messages: 6}, func(t *testing.T, h *harness) {
		topic := h.topic("snapshot")
		h.post(topic, `{"n":0}`)
		a, b := h.get("/v1/topics/"+topic.ID, nil), h.get("/v1/topics/"+topic.ID, header{"Accept": "application/json"})
		defer a.close()
		defer b.close()
		a.expect("snapshot", `{"n":0}`)
		b.expect("snapshot", `{"n":0}`)
		for i := range 2 {
			h.post(topic, `{"n":`+strconv.Itoa(i+1)+`}`)
			a.expect("patch", "")
			b.expect("snapshot", "")
		}
		for _, s := range []*stream{a, b} {
			if e := s.expect("error", ""); !strings.Contains(e.data, "40122") || e.retry == "" {
				t.Errorf("%+v", e)
			}
			s.expectEnd()
		}
		c := h.get("/v1/topics/"+topic.ID, nil)
		defer c.close()
		if e := c.expect("error", ""); !strings.Contains(e.data, "40122") {
			t.Errorf("a new subscriber got %v", e)
		}
		h.catalog.mu.Lock()
		h.catalog.quotas.MessagesPerMonth = 0
		h.catalog.mu.Unlock()
		d := h.get("/v1/topics/"+topic.ID, nil)
		defer d.close()
		d.expect("snapshot", `{"n":2}`)
	})
}

func TestUsedUpMessagesOfAnAppEndItsStreams(t *testing.T) {
	forEachPath(t, options{messages: 1 << 40, appMessages: 2}, func(t *testing.T, h *harness) {
		topic := h.topic("snapshot")
		h.post(topic, `{"n":0}`)
		s := h.get("/v1/topics/"+topic.ID, nil)
		defer s.close()
		s.expect("snapshot", `{"n":0}`)
		h.post(topic, `{"n":1}`)
		s.expect("patch", "")
		if e := s.expect("error", ""); !strings.Contains(e.data, "40122") || !strings.Contains(e.data, "this app") {
			t.Errorf("%+v", e)
		}
		s.expectEnd()
		again := h.get("/v1/topics/"+topic.ID, nil)
		defer again.close()
		if e := again.expect("error", ""); !strings.Contains(e.data, "40122") {
			t.Errorf("a new subscriber got %v", e)
		}
	})
}

func TestALoweredQuotaOfMessagesEndsStreams(t *testing.T) {
	forEachPath(t, options{messages: 1000}, func(t *testing.T, h *harness) {
		topic := h.topic("snapshot")
		h.post(topic, `{}`)
		s := h.get("/v1/topics/"+topic.ID, nil)
		defer s.close()
		s.expect("snapshot", `{}`)
		h.used(1)
		h.catalog.mu.Lock()
		h.catalog.quotas.MessagesPerMonth = 1
		h.catalog.mu.Unlock()
		if err := h.grid.Notify(t.Context(), grid.Notice{Scope: grid.ScopeUser, ID: "user"}); err != nil {
			t.Fatal(err)
		}
		if e := s.expect("error", ""); !strings.Contains(e.data, "40122") {
			t.Errorf("%v", e)
		}
	})
}

// used waits until so many messages are counted, and returns everything that is.
func (h *harness) used(messages int64) (all freshet.Usage) {
	h.t.Helper()
	span := store.Span{To: time.Now().Add(time.Hour)}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		hours, err := h.meter.Hours(span, func(usage.Place) bool { return true }, func() ([]freshet.UsageHour, error) { return h.store.Usage(h.t.Context(), span) })
		if err != nil {
			h.t.Fatal(err)
		}
		all = freshet.Usage{}
		for _, hour := range hours {
			all.Add(hour.Usage)
		}
		if all.Messages >= messages {
			return all
		}
		time.Sleep(10 * time.Millisecond)
	}
	h.t.Fatalf("%d messages are counted, want %d", all.Messages, messages)
	return all
}

func TestUsageIsWhatWentOverTheWire(t *testing.T) {
	forEachPath(t, options{messages: 1 << 40, heartbeat: time.Hour}, func(t *testing.T, h *harness) {
		topic := h.topic("snapshot")
		document := func(n int) string { return `{"fixed":"` + strings.Repeat("x", 5000) + `","n":` + strconv.Itoa(n) + `}` }
		h.post(topic, document(0))
		var streams []*stream
		for range 3 {
			s := h.get("/v1/topics/"+topic.ID, nil)
			defer s.close()
			s.expect("snapshot", "")
			streams = append(streams, s)
		}
		const publications = 20
		for n := range publications {
			h.post(topic, document(n+1))
			for _, s := range streams {
				s.expect("patch", "")
			}
		}
		const events = 3 * (publications + 1)
		got := h.used(events)
		body := 0
		for _, s := range streams {
			body += s.raw.Len()
		}
		header := int(got.Bytes) - body // of three answers, where we write them ourselves
		if header != 0 && (header < 3*100 || header > 3*400) {
			t.Errorf("%d bytes were counted, %d received", got.Bytes, body)
		}
		frame := bytes.Index(streams[0].raw.Bytes(), []byte("\n\n")) + 2
		if whole := got.FullBytes - int64(header); got.Messages != events || whole < int64(events*frame) || whole > int64(events*(frame+8)) {
			t.Errorf("%+v; %d events, each of %d bytes if whole", got, events, frame)
		}
	})
}
