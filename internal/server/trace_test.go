package server

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	api "github.com/freshet-io/freshet/client"
	"github.com/freshet-io/freshet/internal/settings"
)

// told is a span as a collector gets it.
type told struct {
	TraceID, SpanID, ParentSpanID, Name string
	Attributes                          []struct {
		Key   string
		Value struct{ StringValue, IntValue string }
	}
}

func (s told) attribute(key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.StringValue + a.Value.IntValue
		}
	}
	return ""
}

// collect is a receiver of traces over OTLP/HTTP.
func collect(t *testing.T) (url string, spans <-chan told, raw func() string) {
	t.Helper()
	out := make(chan told, 1000)
	var all strings.Builder // owned by the handler: there is one request at a time
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var data struct {
			ResourceSpans []struct{ ScopeSpans []struct{ Spans []told } }
		}
		zip, err := gzip.NewReader(r.Body)
		if err == nil {
			err = json.NewDecoder(io.TeeReader(zip, &all)).Decode(&data)
		}
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL, err)
			return
		}
		for _, s := range data.ResourceSpans[0].ScopeSpans[0].Spans {
			out <- s
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL, out, all.String
}

func TestATraceLeadsFromThePostToTheLastSocketWrite(t *testing.T) {
	collector, spans, raw := collect(t)
	r := run(t, func(s *settings.Settings) { s.Telemetry.Endpoint = collector })
	ctx := t.Context()
	c, err := api.New(api.Options{BaseURL: "http://" + r.address("gateway")})
	if err != nil {
		t.Fatal(err)
	}
	topic, app := makeTopic(ctx, t, c)
	stream, err := http.Get("http://" + r.address("subscriber") + "/v1/topics/" + topic)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	lines := bufio.NewScanner(stream.Body)
	const trace, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+r.address("gateway")+"/publish/v1/topics/"+topic, strings.NewReader(`{"n":1}`))
	if err != nil {
		t.Fatal(err)
	}
	post.Header = http.Header{"X-Sd-Publisher-Key": {app.PublisherKey}, "Content-Type": {"application/json"}, "Traceparent": {"00-" + trace + "-" + parent + "-01"}}
	resp, err := http.DefaultClient.Do(post)
	if err != nil || resp.StatusCode != 204 {
		t.Fatal(resp, err)
	}
	resp.Body.Close()
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "data") {
	}
	got := map[string]told{}
	for len(got) < 4 {
		if s := <-spans; s.TraceID == trace {
			got[s.Name] = s
		}
	}
	publish := got["publish"]
	if publish.ParentSpanID != parent || publish.attribute("freshet.topic") != topic || publish.attribute("http.response.status_code") != "204" {
		t.Errorf("%+v", publish)
	}
	for _, name := range []string{"compare", "store", "deliver"} {
		if got[name].ParentSpanID != publish.SpanID {
			t.Errorf("%s: %+v", name, got[name])
		}
	}
	if d := got["deliver"]; d.attribute("freshet.events") != "1" || d.attribute("freshet.bytes") == "0" || d.attribute("freshet.topic") != topic {
		t.Errorf("%+v", d)
	}
	stream.Body.Close()
	r.cancel()
	if err := r.wait(); err != nil {
		t.Error(err)
	}
	for _, secret := range []string{app.PublisherKey, app.SubscriberKey, app.SignatureKey, `{\"n\":1}`} {
		if strings.Contains(raw(), secret) {
			t.Errorf("a trace says %s", secret)
		}
	}
}

// makeTopic makes a user, an app and a topic.
func makeTopic(ctx context.Context, t testing.TB, c *api.Client) (topicID string, app *api.App) {
	t.Helper()
	email := "ada@example.com"
	_, err := c.CreateUser(ctx, api.NewUser{Email: email, Password: "correct horse battery", FirstName: "Ada", LastName: "Lovelace", Language: "en_GB"})
	if err == nil {
		_, err = c.SignIn(ctx, email, "correct horse battery")
	}
	if err == nil {
		app, err = c.CreateApp(ctx, api.AppChange{Name: api.Set("Quotes")})
	}
	if err != nil {
		t.Fatal(err)
	}
	topic, err := c.CreateTopic(ctx, app.ID, api.NewTopic{Name: "Paris", Publisher: api.NewPublisher{Type: "http-post"}})
	if err != nil {
		t.Fatal(err)
	}
	return topic.ID, app
}
