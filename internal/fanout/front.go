package fanout

import (
	"bytes"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
)

// FrontHandler is a handler most of whose requests become streams.
type FrontHandler interface {
	http.Handler

	// Streams reports whether the request asks for a stream, so that a connection that ends with the answer will do. It
	// may be wrong. It must not block.
	Streams(r *http.Request) bool
}

// maxHead is the longest request that is read without net/http, in bytes.
const maxHead = 4 << 10

// parseHead understands a request of the plainest kind: a GET in HTTP/1.1, complete, with nothing after it and nothing in it
// that asks for more than an answer. Anything else is nil: whether it is right, wrong or an attack is left to net/http, so
// that there is one judge of what HTTP allows.
func parseHead(head []byte) *http.Request {
	const get, version = "GET /", " HTTP/1.1\r\n"
	if len(head) < len(get) || string(head[:len(get)]) != get || bytes.Index(head, []byte("\r\n\r\n")) != len(head)-4 {
		return nil
	}
	text := string(head[:len(head)-2]) // every line with its end; all strings of the request are parts of this one
	first, lines, _ := strings.Cut(text[len(get)-1:], version)
	u, ok := parseURL(first)
	if !ok {
		return nil
	}
	r := &http.Request{
		Method: http.MethodGet, URL: u, RequestURI: first,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody,
	}
	var hosts []string
	if r.Header = parseFields(lines); r.Header != nil {
		hosts = r.Header["Host"]
		delete(r.Header, "Host")
	}
	if len(hosts) != 1 {
		return nil
	}
	r.Host = hosts[0]
	return r
}

func parseURL(target string) (*url.URL, bool) {
	path, query, queried := strings.Cut(target, "?")
	plain := true
	for i := range len(target) {
		if target[i] <= ' ' || target[i] >= 0x7f {
			return nil, false
		}
		plain = plain && (i >= len(path) || isUnreserved(target[i]))
	}
	if !plain {
		u, err := url.ParseRequestURI(target)
		return u, err == nil
	}
	return &url.URL{Path: path, RawQuery: query, ForceQuery: queried && query == ""}, true
}

// isUnreserved reports whether a character of a path means itself, however it is written.
func isUnreserved(c byte) bool {
	return isAlphanumeric(c) || c == '-' || c == '_' || c == '.' || c == '~' || c == '/'
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// parseFields reads header lines, or returns nil.
func parseFields(lines string) http.Header {
	n := strings.Count(lines, "\r\n")
	fields := make(http.Header, n)
	values := make([]string, 0, n) // one piece of memory for all of them
	for lines != "" {
		line, rest, ok := strings.Cut(lines, "\r\n")
		name, value, colon := strings.Cut(line, ":")
		value = strings.Trim(value, " \t")
		if !ok || !colon || !isFieldName(name) || !isFieldValue(value) {
			return nil
		}
		lines = rest
		name = textproto.CanonicalMIMEHeaderKey(name)
		if asksForMore(name, value) {
			return nil
		}
		if earlier := fields[name]; earlier != nil {
			fields[name] = append(earlier, value)
			continue
		}
		values = append(values, value)
		fields[name] = values[len(values)-1 : len(values) : len(values)]
	}
	return fields
}

// asksForMore reports fields that change how the request is read or answered.
func asksForMore(name, value string) bool {
	switch name {
	case "Content-Length", "Transfer-Encoding", "Trailer", "Upgrade", "Expect", "Http2-Settings":
		return true
	case "Connection":
		return !strings.EqualFold(value, "keep-alive") && !strings.EqualFold(value, "close")
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
