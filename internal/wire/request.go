package wire

import (
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
)

// Request is the head of a request of the kind that most clients send: HTTP/1.1, a path, one host, nothing that changes how the connection is used,
// and a body only where the method usually has one and its length is given. All texts in it are parts of one.
type Request struct {
	Method string
	Target string // as sent; it begins with a slash
	Host   string
	Length int64 // of the body
	IsLast bool  // the client wants the connection to be closed behind the response

	// IsLiteral says that every character of the path means itself, so it needs no decoding.
	IsLiteral bool

	names, values []string // of header fields but Host, as sent, in order
	hasLength     bool
}

// Parse understands a whole head, with the empty line behind it and nothing else. False means anything but a request of this kind: whether it is
// right, wrong or an attack is for net/http to judge, so that there is one judge of what HTTP allows.
func (r *Request) Parse(head string) bool {
	*r = Request{names: r.names[:0], values: r.values[:0]}
	space, end := strings.IndexByte(head, ' '), strings.Index(head, "\r\n\r\n")
	if space < 0 || end < 0 || end != len(head)-4 || len(head) > MaxHead {
		return false
	}
	method := methodNamed(head[:space])
	fields, ok := r.parseTarget(head[space+1 : len(head)-2])
	if method == "" || !ok || !r.parseFields(fields) {
		return false
	}
	r.Method = method
	return r.hasLength == canHaveBody(method) && r.Host != "" && len(r.names) <= MaxFields
}

// methodNamed returns the method's name as a constant, or nothing for those that are not understood here.
func methodNamed(text string) string {
	switch text {
	case http.MethodGet:
		return http.MethodGet
	case http.MethodHead:
		return http.MethodHead
	case http.MethodOptions:
		return http.MethodOptions
	case http.MethodDelete:
		return http.MethodDelete
	case http.MethodPost:
		return http.MethodPost
	case http.MethodPut:
		return http.MethodPut
	case http.MethodPatch:
		return http.MethodPatch
	}
	return ""
}

func canHaveBody(method string) bool {
	return method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch
}

// parseTarget reads the rest of the first line, and returns the lines behind it.
func (r *Request) parseTarget(text string) (fields string, ok bool) {
	const version = " HTTP/1.1\r\n"
	end, path := 0, inLiteral
	for ; end < len(text) && classes[text[end]]&inTarget != 0; end++ {
		if text[end] == '?' && path == inLiteral {
			path = inTarget // the rest is the query
		}
		if classes[text[end]]&uint8(path) == 0 {
			path = 0
		}
	}
	if end == 0 || text[0] != '/' || !strings.HasPrefix(text[end:], version) {
		return "", false
	}
	r.Target, r.IsLiteral = text[:end], path != 0
	return text[end+len(version):], true
}

// parseFields reads header lines, each with its end.
func (r *Request) parseFields(lines string) bool {
	for lines != "" {
		colon, end := 0, 0
		for colon < len(lines) && classes[lines[colon]]&inName != 0 {
			colon++
		}
		if colon == 0 || colon == len(lines) || lines[colon] != ':' {
			return false
		}
		for end = colon + 1; end < len(lines) && classes[lines[end]]&inValue != 0; end++ {
		}
		if !strings.HasPrefix(lines[end:], "\r\n") || !r.take(lines[:colon], strings.Trim(lines[colon+1:end], " \t")) {
			return false
		}
		lines = lines[end+2:]
	}
	return true
}

// take takes one field in, and reports whether the request can still be of this kind.
func (r *Request) take(name, value string) bool {
	switch {
	case isNamed(name, "Host"):
		ok := r.Host == "" && isAll(value, inHost)
		r.Host = value
		return ok && value != ""
	case isNamed(name, "Content-Length"):
		length, ok := parseDigits(value, maxLengthDigits)
		ok = ok && !r.hasLength
		r.Length, r.hasLength = length, true
		if !ok {
			return false
		}
	case isNamed(name, "Connection"):
		isLast := strings.EqualFold(value, "close")
		if !isLast && !strings.EqualFold(value, "keep-alive") {
			return false
		}
		r.IsLast = r.IsLast || isLast
	case changesMeaning(name):
		return false
	}
	r.names, r.values = append(r.names, name), append(r.values, value)
	return true
}

func isNamed(name, want string) bool { return len(name) == len(want) && strings.EqualFold(name, want) }

// changesMeaning reports fields that change how the request is read or answered.
func changesMeaning(name string) bool {
	for _, more := range [...]string{"Transfer-Encoding", "Trailer", "Te", "Upgrade", "Expect", "Http2-Settings"} {
		if isNamed(name, more) {
			return true
		}
	}
	return false
}

// Clone returns a copy that is good after the next Parse.
func (r *Request) Clone() *Request {
	c := *r
	c.names, c.values = slices.Clone(r.names), slices.Clone(r.values)
	return &c
}

// Fields is how many header fields there are besides Host.
func (r *Request) Fields() int { return len(r.names) }

// Field returns the name, as it was sent, and the value of a field.
func (r *Request) Field(i int) (name, value string) { return r.names[i], r.values[i] }

// Get returns the first of Values, or nothing.
func (r *Request) Get(name string) string {
	if i := r.find(name, 0); i >= 0 {
		return r.values[i]
	}
	return ""
}

// Values returns the values of the fields with a name, like http.Header's.
func (r *Request) Values(name string) []string {
	i := r.find(name, 0)
	if i < 0 {
		return nil
	}
	values := r.values[i : i+1 : i+1]
	for i = r.find(name, i+1); i >= 0; i = r.find(name, i+1) {
		values = append(values, r.values[i])
	}
	return values
}

// find returns where the next field with the name is, or -1.
func (r *Request) find(name string, from int) int {
	for i := from; i < len(r.names); i++ {
		if isNamed(r.names[i], name) {
			return i
		}
	}
	return -1
}

// HTTP returns the request for a handler of net/http, without its body, or nil if its target is no URL. It is good until the next Parse.
func (r *Request) HTTP() *http.Request {
	h := &http.Request{URL: new(url.URL), Header: make(http.Header, len(r.names))}
	if !r.Fill(h) {
		return nil
	}
	return h
}

// RawHTTP is HTTP for handlers that read the target themselves: where that is no URL, its parts stay as they were sent.
func (r *Request) RawHTTP() *http.Request {
	if h := r.HTTP(); h != nil {
		return h
	}
	path, query, _ := strings.Cut(r.Target, "?")
	h := &http.Request{URL: &url.URL{Path: path, RawQuery: query}, Header: make(http.Header, len(r.names))}
	r.fillRest(h)
	return h
}

// Fill makes h, which has a URL and a header, what HTTP would return. What else there is in it, such as its context, stays. It reports whether the target
// is a URL.
func (r *Request) Fill(h *http.Request) bool {
	if !r.fillURL(h.URL) {
		return false
	}
	r.fillRest(h)
	return true
}

func (r *Request) fillURL(u *url.URL) bool {
	if !r.IsLiteral {
		parsed, err := url.ParseRequestURI(r.Target)
		if err != nil {
			return false
		}
		*u = *parsed
		return true
	}
	path, query, queried := strings.Cut(r.Target, "?")
	*u = url.URL{Path: path, RawQuery: query, ForceQuery: queried && query == ""}
	return true
}

func (r *Request) fillRest(h *http.Request) {
	h.Method, h.RequestURI, h.Host = r.Method, r.Target, r.Host
	h.Proto, h.ProtoMajor, h.ProtoMinor = "HTTP/1.1", 1, 1
	h.ContentLength, h.Body, h.Close = r.Length, http.NoBody, r.IsLast
	clear(h.Header)
	for i, name := range r.names {
		name = textproto.CanonicalMIMEHeaderKey(name)
		if earlier := h.Header[name]; earlier != nil {
			h.Header[name] = append(earlier, r.values[i])
			continue
		}
		h.Header[name] = r.values[i : i+1 : i+1]
	}
	// As net/http does, for requests of HTTP/1.0's time.
	if pragma := h.Header["Pragma"]; len(pragma) > 0 && pragma[0] == "no-cache" && h.Header["Cache-Control"] == nil {
		h.Header["Cache-Control"] = []string{"no-cache"}
	}
}
