package gateway

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/registry"
)

// keyAuth asks for a consumer's key, in the query or in a header.
type keyAuth struct {
	names []keyName
	hide  bool
}

func newKeyAuth(c registry.Config, _ *Gateway) (plugin, error) {
	p := &keyAuth{hide: c.Flag("hide_credentials")}
	for _, name := range c.List("key_names") {
		p.names = append(p.names, keyName{query: name, header: http.CanonicalHeaderKey(name)})
	}
	return p, nil
}

// keyName is one name of the key, as it is spelled in each place.
type keyName struct{ query, header string }

var (
	noKey = &answer{status: http.StatusUnauthorized, message: "No API Key found in headers, body or querystring",
		header: []mark{{"Www-Authenticate", []string{`Key realm="freshet"`}}}}
	wrongKey = &answer{status: http.StatusForbidden, message: "Invalid authentication credentials"}
)

// access lets the query go first, as the dialect does, and a header make up for a wrong key there.
func (p *keyAuth) access(x *exchange) *answer {
	inQuery, found := p.fromQuery(x.r.URL.RawQuery)
	consumer := (*freshet.Consumer)(nil)
	if found {
		consumer = x.table.consumer(inQuery)
	}
	if consumer == nil {
		inHeader, ok := p.fromHeader(x.r.Header)
		if ok {
			consumer = x.table.consumer(inHeader)
		}
		found = found || ok
	}
	switch {
	case !found:
		return noKey
	case consumer == nil:
		return wrongKey
	}
	if p.hide {
		p.remove(x.r)
	}
	x.consumer = consumer
	identify(x.r.Header, consumer)
	return nil
}

// identify tells the upstream who asks.
func identify(h http.Header, c *freshet.Consumer) {
	values := [...]string{c.ID, c.Username, c.CustomID}
	for i, name := range [...]string{"X-Consumer-Id", "X-Consumer-Username", "X-Consumer-Custom-Id"} {
		if values[i] != "" {
			h[name] = values[i : i+1 : i+1]
		}
	}
}

func (p *keyAuth) fromHeader(h http.Header) (key string, ok bool) {
	for _, name := range p.names {
		if values := h[name.header]; len(values) > 0 {
			return values[0], true
		}
	}
	return "", false
}

func (p *keyAuth) fromQuery(raw string) (key string, ok bool) {
	if raw == "" {
		return "", false
	}
	for _, name := range p.names {
		for part := range strings.SplitSeq(raw, "&") {
			k, v, _ := strings.Cut(part, "=")
			if unescaped(k) == name.query {
				return unescaped(v), true
			}
		}
	}
	return "", false
}

// unescaped returns text that cannot be decoded as it is.
func unescaped(text string) string {
	if strings.IndexByte(text, '%') < 0 && strings.IndexByte(text, '+') < 0 {
		return text
	}
	if decoded, err := url.QueryUnescape(text); err == nil {
		return decoded
	}
	return text
}

// remove takes the key out of the request, in all its places; the rest of the query stays as it was sent.
func (p *keyAuth) remove(r *http.Request) {
	for _, name := range p.names {
		delete(r.Header, name.header)
	}
	if r.URL.RawQuery == "" {
		return
	}
	var kept []string
	for part := range strings.SplitSeq(r.URL.RawQuery, "&") {
		k, _, _ := strings.Cut(part, "=")
		k = unescaped(k)
		if !slices.ContainsFunc(p.names, func(name keyName) bool { return name.query == k }) {
			kept = append(kept, part)
		}
	}
	r.URL.RawQuery = strings.Join(kept, "&")
}
