package publish

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/httpkit"
	"github.com/freshet-io/freshet/internal/plain"
	"github.com/freshet-io/freshet/internal/router"
)

// plainHead is what matters of the head of a plain publication: a POST of JSON whose length is known, without conditions and without
// anything that asks for special care. Its texts are made from the head at once.
type plainHead struct {
	path    string
	key     string
	length  int // of the body
	headLen int
}

const (
	plainStart = "POST /"
	plainLine  = " HTTP/1.1\r\n"

	maxPlainHead = 4 << 10
	// A client that announces more than firstRead and sends nothing must not cost that much; the library's way knows how.
	maxPlainBody = firstRead
)

// readPlain reads a head. What is not plain beyond doubt is not plain: the HTTP library knows better.
func readPlain(read []byte) (req plainHead, ok bool) {
	if len(read) < len(plainStart) || string(read[:len(plainStart)]) != plainStart {
		return req, false
	}
	end := bytes.Index(read[:min(len(read), maxPlainHead)], []byte("\r\n\r\n"))
	if end < 0 {
		return req, false
	}
	req.headLen = end + 4
	head := string(read[:end+2])
	line := strings.IndexByte(head, '\n') + 1
	target, ok := strings.CutSuffix(head[len(plainStart)-1:line], plainLine)
	if !ok || !isPlainPath(target) {
		return req, false
	}
	req.path = target
	var seen plainFields
	for rest := head[line:]; rest != ""; {
		end := strings.IndexByte(rest, '\n')
		name, value, ok := cutField(rest[:end+1])
		if !ok || !seen.read(name, value, &req) {
			return req, false
		}
		rest = rest[end+1:]
	}
	known := seen.host && seen.length && seen.media && seen.key
	return req, known && seen.fields <= httpkit.MaxHeaderFields && len(read)-req.headLen <= req.length
}

// isPlainPath reports whether a path means what it says.
func isPlainPath(path string) bool {
	for i := range len(path) {
		if c := path[i]; !isAlphanumeric(c) && c != '/' && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// cutField cuts one line of a head, with its end.
func cutField(line string) (name, value string, ok bool) {
	line, ok = strings.CutSuffix(line, "\r\n")
	colon := strings.IndexByte(line, ':')
	if !ok || colon <= 0 {
		return "", "", false
	}
	name, value = line[:colon], strings.Trim(line[colon+1:], " \t")
	for i := range len(name) {
		if c := name[i]; !isAlphanumeric(c) && c != '-' {
			return "", "", false
		}
	}
	for i := range len(value) {
		if c := value[i]; c < ' ' || c > '~' {
			return "", "", false
		}
	}
	return name, value, true
}

// plainFields is which of the fields that a plain publication must have were seen.
type plainFields struct {
	host, length, media, key bool
	fields                   int
}

// read takes one field in. It reports whether the publication can still be plain.
func (f *plainFields) read(name, value string, req *plainHead) (ok bool) {
	f.fields++
	var lower [32]byte
	if len(name) > len(lower) {
		return false
	}
	for i := range len(name) {
		lower[i] = name[i] | 0x20 // a hyphen has it
	}
	switch string(lower[:len(name)]) {
	case "host":
		ok = !f.host && plain.IsHost(value)
		f.host = true
	case "content-length":
		req.length, ok = plainLength(value)
		ok = ok && !f.length
		f.length = true
	case "content-type":
		ok = !f.media && (value == "application/json" || value == "application/json; charset=utf-8")
		f.media = true
	case "x-sd-publisher-key":
		ok = !f.key && value != ""
		req.key, f.key = value, true
	case "connection":
		ok = strings.EqualFold(value, "keep-alive")
	case "user-agent", "accept", "accept-encoding", "accept-language", "traceparent", "tracestate", "forwarded", "via",
		"x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-port", "x-real-ip", "x-request-id":
		ok = true // nobody asks for them
	}
	return ok
}

func plainLength(text string) (int, bool) {
	if text == "" || len(text) > len("65536") {
		return 0, false
	}
	n := 0
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
		n = n*10 + int(text[i]-'0')
	}
	return n, n > 0 && n <= maxPlainBody
}

// topicOf returns the topic in the path of a publication.
func topicOf(path string) (id string, ok bool) {
	id, ok = strings.CutPrefix(path, "/topics/")
	return id, ok && freshet.IsID(id)
}

// accept sends the answer of a publication that was taken, the same as the library would.
func (c *clerk) accept(out router.Outcome, budget httpkit.Budget, isLast bool) error {
	b := make([]byte, 0, 320)
	b = append(b, "HTTP/1.1 204 No Content\r\n"...)
	if isLast {
		b = append(b, "Connection: close\r\n"...)
	}
	if !out.Position.IsZero() {
		b = append(append(append(b, `Etag: "`...), out.Position.String()...), "\"\r\n"...)
	}
	b = append(b, "Vary: Origin\r\n"...)
	if budget.Limit > 0 {
		b = strconv.AppendInt(append(b, "X-Ratelimit-Limit-Minute: "...), budget.Limit, 10)
		b = strconv.AppendInt(append(b, "\r\nX-Ratelimit-Minute: "...), budget.Limit, 10)
		b = strconv.AppendInt(append(b, "\r\nX-Ratelimit-Remaining-Minute: "...), budget.Remaining, 10)
		b = append(b, "\r\n"...)
	}
	b = time.Now().UTC().AppendFormat(append(b, "Date: "...), http.TimeFormat)
	b = append(b, "\r\n\r\n"...)
	return c.send(b, isLast)
}

func (c *clerk) send(answer []byte, isLast bool) error {
	if err := c.conn.Answer(answer); err != nil || !isLast {
		return err
	}
	return io.EOF
}

// refuse sends the answer of a publication that was not taken.
func (c *clerk) refuse(path string, budget httpkit.Budget, reason error, isLast bool) error {
	a := httpkit.NewAnswer()
	a.Header().Set("Vary", "Origin")
	a.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
	budget.SetHeaders(a.Header())
	r := (&http.Request{Method: http.MethodPost, URL: &url.URL{Path: path}}).WithContext(c.conn.Context())
	httpkit.WriteError(a, r, c.api.log, reason)
	response := http.Response{StatusCode: a.Status, ProtoMajor: 1, ProtoMinor: 1, Close: isLast, Header: a.Header(),
		Body: io.NopCloser(&a.Body), ContentLength: int64(a.Body.Len())}
	var b bytes.Buffer
	_ = response.Write(&b) // it cannot fail
	return c.send(b.Bytes(), isLast)
}
