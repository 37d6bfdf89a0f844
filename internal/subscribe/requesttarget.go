package subscribe

import (
	"net/url"
	"slices"
	"strings"

	"github.com/freshet-io/freshet"
)

// requestTarget is what a request asks for, read from the raw request requestTarget: a path may be the absolute URL of a data source,
// and net/http's idea of a clean path would destroy it.
type requestTarget struct {
	path   string // as sent
	query  string // as sent
	params []param
}

// param is one query parameter, in the order of the query.
type param struct {
	name, value string // value is decoded once
	bad         bool   // the value's escapes are broken
}

// parseRequestTarget reads the request requestTarget. Absolute-form requests, which proxies and some clients send, lose their scheme and
// authority.
func parseRequestTarget(raw string) requestTarget {
	if scheme, rest, ok := strings.Cut(raw, "://"); ok && !strings.HasPrefix(raw, "/") && isScheme(scheme) {
		if slash := strings.IndexAny(rest, "/?"); slash >= 0 {
			raw = rest[slash:]
		} else {
			raw = "/"
		}
	}
	var t requestTarget
	t.path, t.query, _ = strings.Cut(raw, "?")
	for part := range strings.SplitSeq(t.query, "&") {
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		p := param{name: unescape(name), value: value}
		if decoded, err := url.QueryUnescape(value); err == nil {
			p.value = decoded
		} else {
			p.bad = true
		}
		t.params = append(t.params, p)
	}
	return t
}

func isScheme(s string) bool { return strings.EqualFold(s, "http") || strings.EqualFold(s, "https") }

func unescape(s string) string {
	if decoded, err := url.QueryUnescape(s); err == nil {
		return decoded
	}
	return s
}

// param returns the first parameter of that name. Names of headers do not depend on case, and neither do these.
func (t *requestTarget) param(name string) (value string, found, bad bool) {
	for i := range t.params {
		if strings.EqualFold(t.params[i].name, name) {
			return t.params[i].value, true, t.params[i].bad
		}
	}
	return "", false, false
}

// topicID returns the topic that the path names, in any version of the interface that is served.
func (t *requestTarget) topicID() (string, bool) {
	for _, version := range versions {
		if id, ok := strings.CutPrefix(t.path, "/"+version+"/topics/"); ok && id != "" && !strings.Contains(id, "/") {
			return id, true
		}
	}
	return "", false
}

// versions are the versions of the interface that are served side by side.
var versions = []string{"v1", "latest"}

// sourceURL returns the data source that the path names, for topics that are created by subscribing to them. One slash
// after the scheme is accepted too, because some clients and proxies merge two into one.
func (t *requestTarget) sourceURL() (string, bool) {
	rest := strings.TrimPrefix(t.path, "/")
	if scheme, _, ok := strings.Cut(rest, ":/"); ok && canBeScheme(scheme) {
		return rest, true
	}
	return "", false
}

// canBeScheme reports whether a text can be a URL's scheme. Which ones may be asked for is not decided here.
func canBeScheme(s string) bool {
	for i := range len(s) {
		letter := s[i]|0x20 >= 'a' && s[i]|0x20 <= 'z'
		if !letter && (i == 0 || !strings.ContainsRune("+-.0123456789", rune(s[i]))) {
			return false
		}
	}
	return s != ""
}

// signedTexts are the readings of what a client may have signed, in the order in which they are compared: as sent, with
// only what transports escape by themselves decoded, and fully decoded. Of a topic it is the path alone; of a data source it is
// the URL with the query that the target is asked with. A client signs before it adds parameters of ours, so one of the target's
// behind those is covered by no signature: then there is no reading at all.
func (t *requestTarget) signedTexts() []string {
	base := t.path
	if source, ok := t.sourceURL(); ok {
		query := t.signedQuery()
		if query != t.sourceQuery() {
			return nil
		}
		base = source + query // without the slash that is ours
	}
	texts := []string{base}
	add := func(s string) {
		if !slices.Contains(texts, s) {
			texts = append(texts, s)
		}
	}
	add(decodeTransport(base))
	if full, err := url.PathUnescape(base); err == nil {
		add(full)
	}
	return texts
}

// signedQuery is the query up to the first parameter of ours, with its question mark.
func (t *requestTarget) signedQuery() string {
	end := 0
	for part := range strings.SplitSeq(t.query, "&") {
		if isOurs(part) {
			return ("?" + t.query)[:end]
		}
		end += len(part) + 1
	}
	return t.sourceQuery()
}

// sourceQuery is the query without parameters of ours, in its order and spelling, with its question mark.
func (t *requestTarget) sourceQuery() string {
	if t.query == "" {
		return ""
	}
	kept := slices.DeleteFunc(strings.Split(t.query, "&"), isOurs)
	if len(kept) == 0 {
		return ""
	}
	return "?" + strings.Join(kept, "&")
}

// isOurs reports whether a parameter, as it stands in a query, is for us and not for a data source. Two names of the place to
// resume from could just as well be the target's; they are ours if they hold what only we write.
func isOurs(part string) bool {
	name, value, _ := strings.Cut(part, "=")
	name = unescape(name)
	for _, prefix := range []string{"x-sd-", "x-auth-sd-", "evs_"} {
		if len(name) >= len(prefix) && strings.EqualFold(name[:len(prefix)], prefix) {
			return true
		}
	}
	if strings.EqualFold(name, "lastEventId") || strings.EqualFold(name, "last_event_id") {
		_, ok := freshet.ParsePosition(unescape(value))
		return ok
	}
	return false
}

// decodeTransport decodes only escapes of spaces and of bytes outside ASCII: transports escape those after the client
// signed.
func decodeTransport(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			hi, ok1 := unhex(s[i+1])
			lo, ok2 := unhex(s[i+2])
			if c := hi<<4 | lo; ok1 && ok2 && (c == ' ' || c >= 0x80) {
				b.WriteByte(c)
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func unhex(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
