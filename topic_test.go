package freshet

import (
	"strings"
	"testing"
	"time"
)

func poller(change func(*Topic)) *Topic {
	t := &Topic{Name: "Quotes", Publisher: Publisher{Type: HTTPPoller, URL: "https://example.com/q.json", Payload: Payload{Type: PayloadSnapshot}}}
	if change != nil {
		change(t)
	}
	return t
}

func post(change func(*Topic)) *Topic {
	return poller(func(t *Topic) {
		t.Publisher.Type, t.Publisher.URL = HTTPPost, ""
		if change != nil {
			change(t)
		}
	})
}

func TestATopicIsCheckedByTheTypeOfItsPublisher(t *testing.T) {
	path, err := ParseItemPath(".a")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		topic *Topic
		want  map[string]string
	}{
		"poller":         {poller(nil), nil},
		"post":           {post(nil), nil},
		"items":          {post(func(t *Topic) { t.Publisher.Payload = Payload{PayloadItem, path} }), nil},
		"no name":        {post(func(t *Topic) { t.Name = "" }), map[string]string{"name": "is required"}},
		"no type":        {post(func(t *Topic) { t.Publisher.Type = "" }), map[string]string{"publisher.type": "is required"}},
		"other type":     {post(func(t *Topic) { t.Publisher.Type = "x" }), map[string]string{"publisher.type": "must be http-poller or http-post"}},
		"no url":         {poller(func(t *Topic) { t.Publisher.URL = "" }), map[string]string{"publisher.config.url": "is required"}},
		"url to post":    {post(func(t *Topic) { t.Publisher.URL = "x" }), map[string]string{"publisher.config.url": "is not a setting of http-post"}},
		"poll to post":   {post(func(t *Topic) { t.Publisher.PollEvery = new(time.Second) }), map[string]string{"publisher.config.polling_frequency": "is not a setting of http-post"}},
		"force to poll":  {poller(func(t *Topic) { t.Publisher.ForcePublishing = new(true) }), map[string]string{"publisher.config.force_publishing": "is not a setting of http-poller"}},
		"too fast":       {poller(func(t *Topic) { t.Publisher.PollEvery = new(99 * time.Millisecond) }), map[string]string{"publisher.config.polling_frequency": "must be between 100 and 86400000 milliseconds"}},
		"no payload":     {post(func(t *Topic) { t.Publisher.Payload.Type = "" }), map[string]string{"publisher.payload.type": "must be item or snapshot"}},
		"item, no path":  {post(func(t *Topic) { t.Publisher.Payload.Type = PayloadItem }), map[string]string{"publisher.payload.item_id_path": "is required when payload.type is item"}},
		"snapshot, path": {post(func(t *Topic) { t.Publisher.Payload.ItemIDPath = path }), map[string]string{"publisher.payload.item_id_path": "is only for payload.type item"}},
	} {
		wantFaults(t, name, test.topic.Validate(), test.want)
	}
}

func TestATargetIsAnHTTPURL(t *testing.T) {
	for _, url := range []string{"http://a", "https://a/", "HTTPS://A/b?c=d&e=%20", "http://a:1/", "http://a:65535", "http://a:", "http://192.0.2.1/x", "http://[2001:db8::1]:8080/x",
		"https://exämple.com/é?q=été", "http://a/b c", "http://a/#", "http://a/?x=http://b", "http://a/" + strings.Repeat("x", 8192-9)} {
		wantFaults(t, url, poller(func(t *Topic) { t.Publisher.URL = url }).Validate(), nil)
	}
	for url, want := range map[string]string{
		"a": "must begin with http:// or https://", "ftp://a/": "must begin with http:// or https://", "javascript:alert(1)": "must begin with http:// or https://",
		"http:": "must name a host", "http:///x": "must name a host", "http:a": "must name a host", "https://:1/": "must name a host",
		"http://a:0/": "must have a port from 1 to 65535, or none", "http://a:99999999999999999999/": "must have a port from 1 to 65535, or none",
		"http://u@a/": "must not contain a user name or password", "http://u:p@a/": "must not contain a user name or password", "http://@a/": "must not contain a user name or password",
		"http://a/#b": "must not contain a fragment", "http://a\x7f/": "is not a valid URL", "http://a/\u2028": "is not a valid URL", "http://a:x/": "is not a valid URL",
		"://a": "is not a valid URL", "http://%zz/": "is not a valid URL", `http://a\@b/`: "is not a valid URL",
		"http://a/" + strings.Repeat("x", 8192-8): "is longer than 8192 bytes",
	} {
		wantFaults(t, url, poller(func(t *Topic) { t.Publisher.URL = url }).Validate(), map[string]string{"publisher.config.url": want})
	}
}

func TestSettingsFlowFromTopicToAppToService(t *testing.T) {
	app := Defaults{PollEvery: new(time.Second), ForcePublishing: new(false)}
	if p := poller(nil).Effective(Defaults{}); *p.PollEvery != 2*time.Second || p.ForcePublishing != nil {
		t.Errorf("%+v", p)
	}
	if p := poller(nil).Effective(app); *p.PollEvery != time.Second {
		t.Errorf("%+v", p)
	}
	own := poller(func(t *Topic) { t.Publisher.PollEvery = new(time.Minute) })
	if p := own.Effective(app); *p.PollEvery != time.Minute {
		t.Errorf("%+v", p)
	}
	if p := post(nil).Effective(Defaults{}); !*p.ForcePublishing || p.PollEvery != nil {
		t.Errorf("%+v", p)
	}
	if p := post(nil).Effective(app); *p.ForcePublishing {
		t.Errorf("%+v", p)
	}
	open := post(nil)
	open.Effective(app)
	if open.Publisher.ForcePublishing != nil {
		t.Error("Effective changed the topic itself")
	}
}
