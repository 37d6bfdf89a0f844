package manage

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
)

// pretender remembers what it was asked to try.
type pretender struct {
	asked *catalog.Source
	trial catalog.Trial
}

func (p *pretender) Try(_ context.Context, s *catalog.Source) (*catalog.Trial, error) {
	p.asked = s
	return &p.trial, nil
}

func trialBody(config map[string]any, topic string) map[string]any {
	b := map[string]any{"publisher": map[string]any{"type": "http-poller", "config": config}}
	if topic != "" {
		b["topic_id"] = topic
	}
	return b
}

func TestAURLIsTriedWithTheSettingsOfTheRequest(t *testing.T) {
	t.Parallel()
	p := &pretender{trial: catalog.Trial{Status: 200, Took: 38 * time.Millisecond, Bytes: 9, Document: []byte(`{"a":12345678901234567890}`)}}
	s := serve(t, setting{manage: func(o *Options) { o.Tester = p }})
	c := s.tenant()
	path := "/apps/" + c.app + "/topics/test"
	c.call("PATCH", "/apps/"+c.app, map[string]any{"allowed_target_hosts": []string{"example.com"}}).want(200)
	a := c.call("POST", path, trialBody(map[string]any{"url": "http://example.com/a", "headers": map[string]any{"x-key": "k"}}, "")).want(200)
	if !strings.Contains(string(a.body), `"document":{"a":12345678901234567890}`) || a.at("status") != 200.0 || a.at("duration_ms") != 38.0 || a.at("bytes") != 9.0 || a.at("error") != nil {
		t.Errorf("%s", a.body)
	}
	asked := p.asked.Topic.Publisher
	if asked.URL != "http://example.com/a" || asked.Headers[0].Value.Reveal() != "k" || p.asked.AllowedHosts[0] != "example.com" || p.asked.UserID != c.id {
		t.Errorf("asked %+v", p.asked)
	}
	p.trial = catalog.Trial{Failure: freshet.Errorf(freshet.SourceUnknownHost, "The host name is not known")}
	a = c.call("POST", path, trialBody(map[string]any{"url": "http://example.com/a"}, "")).want(200)
	if a.text("error") != "The host name is not known" || a.at("document") != nil || a.at("status") != nil {
		t.Errorf("%s", a.body)
	}
	if n := c.call("GET", "/apps/"+c.app+"/topics", nil).want(200).at("total"); n != 1.0 {
		t.Errorf("%v topics after trials", n)
	}
}

func TestHiddenValuesOfATrialAreThoseOfItsTopic(t *testing.T) {
	t.Parallel()
	p := &pretender{}
	s := serve(t, setting{manage: func(o *Options) { o.Tester = p }})
	c, eve := s.tenant(), s.tenant()
	polled := c.call("POST", "/apps/"+c.app+"/topics", topicBody("http-poller",
		map[string]any{"url": "http://example.com/", "headers": map[string]any{"X-Key": "s3cret"}}, nil)).want(201).text("id")
	hidden := map[string]any{"url": "http://example.com/", "headers": map[string]any{"X-Key": "[hidden]"}}
	c.call("POST", "/apps/"+c.app+"/topics/test", trialBody(hidden, polled)).want(200)
	if got := p.asked.Topic.Publisher.Headers[0].Value.Reveal(); got != "s3cret" {
		t.Errorf("the target would get %q", got)
	}
	p.asked = nil
	c.call("POST", "/apps/"+c.app+"/topics/test", trialBody(hidden, "")).want(400)
	eve.call("POST", "/apps/"+eve.app+"/topics/test", trialBody(hidden, polled)).want(404)
	other := c.newApp().text("id")
	c.call("POST", "/apps/"+other+"/topics/test", trialBody(hidden, polled)).want(404)
	if p.asked != nil {
		t.Errorf("tried %+v", p.asked)
	}
	admin := s.admin()
	admin.call("POST", "/apps/"+c.app+"/topics/test", trialBody(hidden, polled)).want(200)
	entry := admin.call("GET", "/admin/audit", nil).want(200).at("items").([]any)[0].(map[string]any)
	if entry["action"] != "topic.test" || entry["subject"] != c.app {
		t.Errorf("audit: %v", entry)
	}
}

func TestOnlyAnHTTPPollerCanBeTried(t *testing.T) {
	t.Parallel()
	p := &pretender{}
	s := serve(t, setting{manage: func(o *Options) { o.Tester = p }})
	c := s.tenant()
	for field, body := range map[string]string{
		"publisher.type":       `{"publisher":{"type":"http-post","config":{}}}`,
		"publisher.config.url": `{"publisher":{"type":"http-poller","config":{"url":"file:///etc/passwd"}}}`,
		"publisher":            `{}`,
	} {
		if faults := c.call("POST", "/apps/"+c.app+"/topics/test", body).want(400).faults(); faults[field] == "" {
			t.Errorf("%s: %v", body, faults)
		}
	}
	if p.asked != nil {
		t.Errorf("tried %+v", p.asked)
	}
}
