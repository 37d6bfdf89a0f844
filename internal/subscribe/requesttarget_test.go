package subscribe

import (
	"slices"
	"testing"

	"github.com/freshet-io/freshet"
)

func TestTheRawTargetDecides(t *testing.T) {
	for _, c := range []struct{ raw, topic, source, query string }{
		{"/v1/topics/abc", "abc", "", ""},
		{"/latest/topics/abc?x=1", "abc", "", "x=1"},
		{"http://host:6080/v1/topics/abc?x", "abc", "", "x"},
		{"HTTPS://host/v1/topics/abc", "abc", "", ""},
		{"http://host", "", "", ""},
		{"http://host//v1/topics/abc", "", "", ""},
		{"//v1/topics/abc", "", "", ""},
		{"/v1/topics/../topics/abc", "", "", ""},
		{"/v1/topics/abc/", "", "", ""},
		{"/https://host/a//b/../c?x=1&y=2", "", "https://host/a//b/../c", "x=1&y=2"},
		{"/http:/host/a", "", "http:/host/a", ""},
		{"http://front/http://host/a", "", "http://host/a", ""},
		{"/ftp://host/a", "", "ftp://host/a", ""},
		{"/file:///etc/passwd", "", "file:///etc/passwd", ""},
		{"/1a://host/a", "", "", ""},
		{"/a b://host/a", "", "", ""},
		{"/://host/a", "", "", ""},
		{"/host:80/a", "", "", ""},
		{"*", "", "", ""},
		{"", "", "", ""},
	} {
		target := parseRequestTarget(c.raw)
		id, _ := target.topicID()
		source, _ := target.sourceURL()
		if id != c.topic || source != c.source || target.query != c.query {
			t.Errorf("%q: topic %q, source %q, query %q", c.raw, id, source, target.query)
		}
	}
}

func TestReadingsOfASignedText(t *testing.T) {
	for _, c := range []struct {
		raw  string
		want []string
	}{
		{"/v1/topics/abc?X-Auth-Sd-Ts=1&X-Auth-Sd-S=2", []string{"/v1/topics/abc"}},
		{"/http://myRestservice.com/stocks?X-Sd-Token=x", []string{"http://myRestservice.com/stocks"}},
		{"/https://api.example.com:8443/caf%C3%A9/prix?q=été&X-Sd-Token=x", []string{
			"https://api.example.com:8443/caf%C3%A9/prix?q=été", "https://api.example.com:8443/café/prix?q=été"}},
		{"/http://h/a%20b%2Fc?q=%C3%A9", []string{"http://h/a%20b%2Fc?q=%C3%A9", "http://h/a b%2Fc?q=é", "http://h/a b/c?q=é"}},
		{"/http://h/a?b=1&&X-Sd-Token=x", []string{"http://h/a?b=1&"}},
		{"/http://h/a?&X-Sd-Token=x", []string{"http://h/a?"}},
		{"/http://h/a?X-Sd-Token=x&b=1", nil},
		{"/v1/topics/abc?X-Sd-Token=x&b=1", []string{"/v1/topics/abc"}},
	} {
		target := parseRequestTarget(c.raw)
		if got := target.signedTexts(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q", c.raw, got)
		}
	}
}

func TestEveryKindHasACode(t *testing.T) {
	for _, kind := range freshet.Kinds() {
		if codes[kind] == 0 {
			t.Errorf("kind %d has no code", kind)
		}
	}
	for kind := range codes {
		if !slices.Contains(freshet.Kinds(), kind) {
			t.Errorf("kind %d does not exist", kind)
		}
	}
}

func FuzzTarget(f *testing.F) {
	f.Add("/v1/topics/x?a=%zz&&b")
	f.Add("http://a/http://b?X-Sd-Header=%25")
	f.Fuzz(func(t *testing.T, raw string) {
		target := parseRequestTarget(raw)
		target.topicID()
		target.sourceURL()
		// What a signature covers of a query is all of what the target is asked with.
		if _, source := target.sourceURL(); source && (target.signedTexts() == nil) != (target.signedQuery() != target.sourceQuery()) {
			t.Errorf("%q is signed, %q is asked", target.signedQuery(), target.sourceQuery())
		}
		_, _ = target.sourceAccept()
	})
}
