package subscribe_test

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
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
		header := int(got.Bytes) - body // of three answers
		if header < 3*100 || header > 3*400 {
			t.Errorf("%d bytes were counted, %d received", got.Bytes, body)
		}
		frame := bytes.Index(streams[0].raw.Bytes(), []byte("\n\n")) + 2
		if whole := got.FullBytes - int64(header); got.Messages != events || whole < int64(events*frame) || whole > int64(events*(frame+8)) {
			t.Errorf("%+v; %d events, each of %d bytes if whole", got, events, frame)
		}
	})
}

// usedBytes waits until so many bytes are counted, and returns everything that is.
func (h *harness) usedBytes(bytes int64) (all freshet.Usage) {
	h.t.Helper()
	for deadline := time.Now().Add(patience); all.Bytes < bytes && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
		all = h.used(0)
	}
	return all
}

func TestErrorsAreNoMessages(t *testing.T) {
	forEachPath(t, options{messages: 2, heartbeat: time.Hour}, func(t *testing.T, h *harness) {
		topic := h.polled("https://api.example.com/quotes")
		h.post(topic, `{"a":1}`)
		s := h.get("/v1/topics/"+topic.ID, nil)
		defer s.close()
		s.expect("snapshot", "")
		h.fail(topic, failure(freshet.SourceFailed, false))
		s.expectCode(60001)
		if got := h.usedBytes(int64(s.raw.Len())); got.Messages != 1 {
			t.Errorf("a source that fails is counted: %+v", got)
		}
		h.post(topic, `{"a":2}`)
		s.expect("patch", "")
		s.expectCode(40122)
		if got := h.usedBytes(int64(s.raw.Len())); got.Messages != 2 {
			t.Errorf("the end is counted: %+v", got)
		}
	})
}

func TestLongPollsAreCountedAsTheyGoOverTheWire(t *testing.T) {
	forEachPath(t, options{messages: 1 << 40, longPoll: 200 * time.Millisecond}, func(t *testing.T, h *harness) {
		topic := h.topic("snapshot")
		wire := 0
		ask := func(headers string, want int) {
			nc := h.rawGet("/v1/topics/" + topic.ID + " HTTP/1.1\r\nAccept: application/json\r\nX-Sd-Transport: long-poll\r\n" + headers + "X-Rest:")
			defer nc.Close()
			var raw bytes.Buffer
			answer, err := http.ReadResponse(bufio.NewReader(io.TeeReader(nc, &raw)), nil)
			if err != nil || answer.StatusCode != want {
				t.Fatalf("%v: %v", err, answer)
			}
			if _, err := io.Copy(io.Discard, answer.Body); err != nil {
				t.Fatal(err)
			}
			wire += raw.Len()
		}
		variants := []string{"", "Connection: close\r\n", "X-Sd-Compress: true\r\nAccept-Encoding: gzip\r\n"}
		for _, headers := range variants {
			ask(headers, 204) // there is nothing yet
		}
		h.post(topic, `{"a":"`+strings.Repeat("x", 5000)+`"}`)
		for _, headers := range variants {
			ask(headers, 200)
		}
		if got := h.usedBytes(int64(wire)); got.Bytes != int64(wire) || got.Messages != 3 {
			t.Errorf("%d bytes went over the wire: %+v", wire, got)
		}
	})
}
