// Package plain reads requests of the plainest kind: those that come a thousand times a second and look all alike. It does not know
// HTTP. Whether anything else is right, wrong or an attack is left to net/http, and a fuzz test holds that what is read here, net/http
// reads in the same way.
package plain

import (
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
)

// Head is a request of the plainest kind: a GET in HTTP/1.1, complete, with nothing after it and nothing in it that asks for
// more than an answer. Everything in it is a part of one text.
type Head struct {
	Target string // as sent
	Host   string
	Clean  bool // every character of the path means itself

	names, values []string // of header fields but Host, as sent, in order
}

// Read understands the text of a request. False means anything but a plain one: whether it is right, wrong or an attack is left to
// net/http, so that there is one judge of what HTTP allows.
func (h *Head) Read(text string) bool {
	const get, version = "GET ", " HTTP/1.1\r\n"
	h.names, h.values = h.names[:0], h.values[:0]
	if !strings.HasPrefix(text, get+"/") || strings.Index(text, "\r\n\r\n") != len(text)-4 {
		return false
	}
	var lines string
	h.Target, lines, _ = strings.Cut(text[len(get):len(text)-2], version)
	return h.readTarget() && h.readFields(lines)
}

func (h *Head) readTarget() bool {
	path, _, _ := strings.Cut(h.Target, "?")
	h.Clean = true
	for i := range len(h.Target) {
		c := h.Target[i]
		if c <= ' ' || c >= 0x7f {
			return false
		}
		h.Clean = h.Clean && (i >= len(path) || isUnreserved(c))
	}
	return true
}

// readFields reads header lines, each with its end.
func (h *Head) readFields(lines string) bool {
	hosts := 0
	for lines != "" {
		line, rest, ok := strings.Cut(lines, "\r\n")
		name, value, colon := strings.Cut(line, ":")
		value = strings.Trim(value, " \t")
		if !ok || !colon || !isFieldName(name) || !isFieldValue(value) || asksForMore(name, value) {
			return false
		}
		lines = rest
		if strings.EqualFold(name, "Host") {
			h.Host = value
			hosts++
			continue
		}
		h.names, h.values = append(h.names, name), append(h.values, value)
	}
	return hosts == 1
}

// Values returns the values of the fields with a name, like http.Header's.
func (h *Head) Values(name string) []string {
	i := h.find(name, 0)
	if i < 0 {
		return nil
	}
	values := h.values[i : i+1 : i+1]
	for i = h.find(name, i+1); i >= 0; i = h.find(name, i+1) {
		values = append(values, h.values[i])
	}
	return values
}

// Get returns the first of Values, or nothing.
func (h *Head) Get(name string) string {
	if i := h.find(name, 0); i >= 0 {
		return h.values[i]
	}
	return ""
}

// find returns where the next field with the name is, or -1.
func (h *Head) find(name string, from int) int {
	for i := from; i < len(h.names); i++ {
		if len(h.names[i]) == len(name) && strings.EqualFold(h.names[i], name) {
			return i
		}
	}
	return -1
}

// Fields is how many header fields there are but Host.
func (h *Head) Fields() int { return len(h.names) }

// Request returns the request for a handler of net/http, or nil if its URL is none. It is good until the next Read.
func (h *Head) Request() *http.Request {
	r := &http.Request{URL: new(url.URL), Header: make(http.Header, len(h.names))}
	if !h.Fill(r) {
		return nil
	}
	return r
}

// Fill makes a request that has a URL and a header what Request would return. What else there is in it, such as its context, stays.
func (h *Head) Fill(r *http.Request) bool {
	if !h.fillURL(r.URL) {
		return false
	}
	h.fillRest(r)
	return true
}

func (h *Head) fillRest(r *http.Request) {
	r.Method, r.RequestURI, r.Host, r.Body = http.MethodGet, h.Target, h.Host, http.NoBody
	r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/1.1", 1, 1
	clear(r.Header)
	for i, name := range h.names {
		name = textproto.CanonicalMIMEHeaderKey(name)
		if earlier := r.Header[name]; earlier != nil {
			r.Header[name] = append(earlier, h.values[i])
			continue
		}
		r.Header[name] = h.values[i : i+1 : i+1]
	}
}

func (h *Head) fillURL(u *url.URL) bool {
	if !h.Clean {
		parsed, err := url.ParseRequestURI(h.Target)
		if err != nil {
			return false
		}
		*u = *parsed
		return true
	}
	path, query, queried := strings.Cut(h.Target, "?")
	*u = url.URL{Path: path, RawQuery: query, ForceQuery: queried && query == ""}
	return true
}

// IsHost reports whether a host is one beyond doubt.
func IsHost(host string) bool {
	for i := range len(host) {
		switch c := host[i]; c {
		case '.', '-', '_', ':', '[', ']':
		default:
			if !isAlphanumeric(c) {
				return false
			}
		}
	}
	return host != ""
}

// isUnreserved reports whether a character of a path means itself, however it is written.
func isUnreserved(c byte) bool {
	return isAlphanumeric(c) || c == '-' || c == '_' || c == '.' || c == '~' || c == '/'
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// asksForMore reports fields that change how the request is read or answered.
func asksForMore(name, value string) bool {
	if strings.EqualFold(name, "Connection") {
		return !strings.EqualFold(value, "keep-alive") && !strings.EqualFold(value, "close")
	}
	for _, more := range [...]string{"Content-Length", "Transfer-Encoding", "Trailer", "Upgrade", "Expect", "Http2-Settings"} {
		if strings.EqualFold(name, more) {
			return true
		}
	}
	return false
}

func isFieldName(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isAlphanumeric(c) && c != '-' && c != '_' {
			return false
		}
	}
	return s != ""
}

func isFieldValue(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' && s[i] != '\t' || s[i] == 0x7f {
			return false
		}
	}
	return true
}
