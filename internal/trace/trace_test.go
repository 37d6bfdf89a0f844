package trace

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const known = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestATraceparentIsReadAsTheRecommendationWants(t *testing.T) {
	for header, want := range map[string]string{
		known: known,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00":      "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00",
		"cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more": known, // of a version to come
		"": "", "00": "", "00-0-0-01": "", "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01": "",
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01":      "",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01":      "",
		"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01":      "",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more": "",
		"00-4bf92f3577b34da6a3ce929d0e0e47xx-00f067aa0ba902b7-01":      "",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1":       "",
	} {
		if got := ParseParent(header).String(); got != want {
			t.Errorf("%q is read as %q", header, got)
		}
	}
}

func TestWhatIsNotFollowedIsNothing(t *testing.T) {
	var off *Tracer
	s := off.Start("x", Server, ParseParent(known))
	s.Set("a", "b")
	s.SetInt("a", 1)
	s.Fail("x")
	s.Child("y", Internal).End()
	s.End()
	if s != nil || off.Deliver(ParseParent(known)) != nil || !s.Parent().IsZero() || With(t.Context(), s) != t.Context() || From(t.Context()) != nil {
		t.Error("something is followed")
	}
	if n := testing.AllocsPerRun(100, func() { off.Start("x", Server, Parent{}).Child("y", Internal).End() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// collector keeps what it is told.
type collector struct {
	mu     sync.Mutex
	status int
	bodies []tracesData
	header http.Header
}

func (c *collector) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.header = r.Header
	zip, err := gzip.NewReader(r.Body)
	if err != nil {
		return nil, err
	}
	in := json.NewDecoder(zip)
	in.DisallowUnknownFields()
	var data tracesData
	if err := in.Decode(&data); err != nil {
		return nil, err
	}
	if c.status == 0 {
		c.bodies = append(c.bodies, data)
		c.status = http.StatusOK
	}
	w.WriteHeader(c.status)
	_, _ = io.WriteString(w, "{}")
	c.status = 0
	return w.Result(), nil
}

func (c *collector) spans() map[string]spanJSON {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[string]spanJSON{}
	for _, b := range c.bodies {
		for _, s := range b.ResourceSpans[0].ScopeSpans[0].Spans {
			all[s.Name] = s
		}
	}
	return all
}

func newTest(c *collector, ratio float64) *Tracer {
	t := New(Options{Endpoint: "http://collector.test:4318/", Header: http.Header{"Authorization": {"Bearer x"}}, Ratio: ratio, Version: "v", Node: "n"})
	t.client = &http.Client{Transport: c}
	return t
}

func TestSpansReachTheCollectorWithTheirParents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(collector)
		tracer := newTest(c, 0)
		if tracer.Start("chance", Server, Parent{}) != nil || tracer.Start("unsampled", Server, ParseParent(known[:len(known)-1]+"0")) != nil {
			t.Error("what nobody asked for is followed")
		}
		s := tracer.Start("publish", Server, ParseParent(known))
		child := s.Child("store", Client)
		child.SetInt("n", 5)
		child.Fail("away")
		child.End()
		d := tracer.Deliver(s.Parent())
		s.Set("freshet.topic", "t")
		s.End()
		time.Sleep(time.Second + time.Millisecond)
		d.Wrote(2, 100)
		time.Sleep(1500 * time.Millisecond)
		d.Wrote(1, 50)
		wrote := time.Now()
		if _, there := c.spans()["deliver"]; there {
			t.Error("the delivery was ended while it went on")
		}
		time.Sleep(2 * quiet)
		d.Wrote(100, 100) // too late to count
		got := c.spans()
		publish, store, deliver := got["publish"], got["store"], got["deliver"]
		if publish.TraceID != known[3:35] || publish.ParentSpanID != known[36:52] || publish.Kind != Server || *publish.Attributes[0].Value.Text != "t" {
			t.Errorf("%+v", publish)
		}
		if store.TraceID != publish.TraceID || store.ParentSpanID != publish.SpanID || store.Status == nil || store.Status.Code != 2 || store.Attributes[0].Value.Number != "5" {
			t.Errorf("%+v", store)
		}
		if deliver.ParentSpanID != publish.SpanID || deliver.End != nano(wrote) || deliver.Attributes[0].Value.Number != "3" || deliver.Attributes[1].Value.Number != "150" {
			t.Errorf("%+v", deliver)
		}
		if c.header.Get("Authorization") != "Bearer x" || c.header.Get("Content-Type") != "application/json" {
			t.Errorf("%v", c.header)
		}
		tracer.Deliver(ParseParent(known)).Wrote(1, 1) // is told when the program ends
		tracer.Start("last", Server, ParseParent(known)).End()
		if err := tracer.Close(context.Background()); err != nil || c.spans()["last"].Name == "" {
			t.Errorf("%v", err)
		}
		if sent, dropped := tracer.Stats(); sent != 5 || dropped != 0 {
			t.Errorf("%d sent, %d dropped", sent, dropped)
		}
	})
}

func nano(at time.Time) string { b, _ := json.Marshal(at.UnixNano()); return string(b) }

func TestACollectorThatIsAwayCostsSpansOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &collector{status: http.StatusServiceUnavailable}
		tracer := newTest(c, 1)
		tracer.Start("lost", Server, Parent{}).End()
		time.Sleep(2 * exportEvery)
		tracer.Start("told", Server, Parent{}).End()
		time.Sleep(2 * exportEvery)
		if sent, dropped := tracer.Stats(); sent != 1 || dropped != 1 {
			t.Errorf("%d sent, %d dropped", sent, dropped)
		}
		tracer.mu.Lock()
		for range maxQueue + 10 {
			tracer.mu.Unlock()
			tracer.Start("many", Server, Parent{}).End()
			tracer.mu.Lock()
		}
		if len(tracer.spans) > maxQueue {
			t.Errorf("%d spans wait", len(tracer.spans))
		}
		tracer.mu.Unlock()
		for range maxDeliveries + 10 {
			tracer.Deliver(ParseParent(known))
		}
		if n := len(tracer.deliveries); n > maxDeliveries {
			t.Errorf("%d deliveries are open", n)
		}
		_ = tracer.Close(context.Background())
	})
}
