package e2e

import (
	"compress/gzip"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// traces is a collector of OTLP/HTTP, as far as these tests need one.
type traces struct {
	url   string
	spans chan traced
}

// traced is a span that a node told, with the name that the node gave itself.
type traced struct {
	TraceID, SpanID, ParentSpanID, Name string
	Attributes                          attributes
	node                                string
}

type attributes []struct {
	Key   string
	Value struct{ StringValue, IntValue string }
}

func (all attributes) get(key string) string {
	for _, a := range all {
		if a.Key == key {
			return a.Value.StringValue + a.Value.IntValue
		}
	}
	return ""
}

func collectTraces(t *testing.T) *traces {
	t.Helper()
	c := &traces{spans: make(chan traced, 1000)}
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var data struct {
			ResourceSpans []struct {
				Resource   struct{ Attributes attributes }
				ScopeSpans []struct{ Spans []traced }
			}
		}
		zip, err := gzip.NewReader(r.Body)
		if err == nil {
			err = json.NewDecoder(zip).Decode(&data)
		}
		if err != nil {
			t.Error(err)
		}
		for _, node := range data.ResourceSpans {
			for _, s := range node.ScopeSpans[0].Spans {
				s.node = node.Resource.Attributes.get("service.instance.id")
				c.spans <- s
			}
		}
	}))
	t.Cleanup(srv.Close)
	c.url = srv.URL
	return c
}

// check follows publications from a POST on one node to the last socket write of both, once as a message and once as a document
// that must be read in parts.
func (c *traces) check(a *anyNode, round string) {
	user := a.somebody()
	app := user.api(201, "POST", "/apps", map[string]string{"name": round})
	key, _ := app["publisher_key"].(string)
	topic, _ := user.api(201, "POST", fmt.Sprint("/apps/", app["id"], "/topics"), map[string]any{"name": "t", "publisher": map[string]any{"type": "http-post", "config": map[string]any{}}})["id"].(string)
	query := url.Values{"X-Sd-Subscriber-Key": {fmt.Sprint(app["subscriber_key"])}}
	var readers []*reader
	for node := range a.c.nodes {
		for range node + 1 { // one on the first node, two on the second
			r := a.subscribeAt(node, topic, query)
			defer r.close()
			readers = append(readers, r)
		}
	}
	user.publish(204, topic, key, `{"n":0}`) // which nobody follows
	noise := make([]byte, 3<<19)             // more than a message of NATS takes, compressed or not
	_, _ = rand.Read(noise)
	for i, body := range []string{`{"n":1}`, `{"n":"` + hex.EncodeToString(noise) + `"}`} {
		for _, r := range readers {
			r.until(fmt.Sprintf(`{"n":%d}`, i))
		}
		trace, parent := fmt.Sprintf("4bf92f3577b34da6a3ce929d0e0e473%d", i), "00f067aa0ba902b7"
		user.publish(204, topic, key, body, "Traceparent", "00-"+trace+"-"+parent+"-01")
		c.expect(a, trace, parent)
	}
}

// expect waits for all spans of a trace, and checks who delivered how many events.
func (c *traces) expect(a *anyNode, trace, parent string) {
	a.t.Helper()
	var publish traced
	deliveries := map[string]traced{} // by node
	for timeout := time.After(patience); publish.SpanID == "" || len(deliveries) < len(a.c.nodes); {
		select {
		case s := <-c.spans:
			if s.TraceID != trace {
				a.t.Fatalf("a publication that nobody follows is followed: %+v", s)
			}
			switch s.Name {
			case "publish":
				publish = s
			case "deliver":
				deliveries[s.node] = s
			}
		case <-timeout:
			a.t.Fatalf("of the trace there only are %+v and %+v", publish, deliveries)
		}
	}
	if publish.ParentSpanID != parent {
		a.t.Errorf("%+v", publish)
	}
	var events []string
	for node, d := range deliveries {
		if node == "" || d.ParentSpanID != publish.SpanID || d.Attributes.get("freshet.bytes") == "0" {
			a.t.Errorf("on node %q: %+v, below %s", node, d, publish.SpanID)
		}
		events = append(events, d.Attributes.get("freshet.events"))
	}
	if got := strings.Join(events, " "); got != "1 2" && got != "2 1" {
		a.t.Errorf("nodes delivered %s events", got)
	}
}
