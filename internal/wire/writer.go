package wire

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// ResponseWriter writes one response. It frames it as net/http does: a body that its handler leaves unflushed and short gets a Content-Length, any
// other without one comes in chunks. It is for the goroutine that answers the request.
type ResponseWriter struct {
	to     io.Writer
	isHead bool        // the request was a HEAD
	isLast func() bool // the connection ends behind the response; nil for never

	header   http.Header
	trailers []string // announced

	status   int   // 0 until it is known
	length   int64 // announced, or -1
	written  int64 // of the body, by the handler
	isSent   bool  // the head is
	isChunks bool
	closes   bool  // the client was told so, or the body broke off
	err      error // of the last write

	isTyped, isDated, isEncoded bool // by the handler

	head []byte // from the status line to the handler's last field, until it is sent
	body []byte // not sent yet
}

// Reset makes the writer ready for a response to a request with the method. Its buffers stay.
func (w *ResponseWriter) Reset(to io.Writer, method string, isLast func() bool) {
	header := w.header
	clear(header)
	*w = ResponseWriter{to: to, isHead: method == http.MethodHead, isLast: isLast, header: header, length: -1,
		trailers: w.trailers[:0], head: kept(w.head), body: kept(w.body)}
}

// kept is a buffer for the next time, unless it has grown beyond what most need.
func kept(b []byte) []byte {
	if cap(b) > maxWrite {
		return nil
	}
	return b[:0]
}

// Header implements http.ResponseWriter.
func (w *ResponseWriter) Header() http.Header {
	if w.header == nil {
		w.header = http.Header{}
	}
	return w.header
}

// WriteHeader implements http.ResponseWriter. An informational status is sent at once.
func (w *ResponseWriter) WriteHeader(status int) {
	switch {
	case w.status != 0:
		return
	case status < http.StatusContinue || status > 999:
		panic("wire: no status: " + strconv.Itoa(status))
	case status < http.StatusOK:
		w.head = AppendStatus(w.head[:0], status)
		w.appendHeader()
		w.write(append(w.head, "\r\n"...))
		w.head, w.trailers = w.head[:0], w.trailers[:0]
		return
	}
	if text := w.header.Get("Content-Length"); text != "" {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 {
			w.length = n
		}
	}
	w.closes = slices.ContainsFunc(w.header["Connection"], func(v string) bool { return strings.EqualFold(v, "close") })
	_, w.isTyped = w.header["Content-Type"]
	_, w.isDated = w.header["Date"]
	w.isEncoded = w.header.Get("Content-Encoding") != ""
	w.status = status
	w.head = AppendStatus(w.head[:0], status)
	w.appendHeader()
}

// appendHeader writes the handler's fields but those that are about the framing. A handler that changes them later changes nothing.
func (w *ResponseWriter) appendHeader() {
	var room [24]string
	names := room[:0]
	for name := range w.header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		values := w.header[name]
		switch name {
		case "Content-Length", "Connection", "Transfer-Encoding":
			continue // they come last
		case "Content-Type":
			if w.status == http.StatusNotModified {
				continue
			}
		case "Trailer":
			w.declare(values)
		}
		if !strings.HasPrefix(name, http.TrailerPrefix) && isToken(name) {
			w.head = AppendFields(w.head, name, values)
		}
	}
}

// declare takes in the names of trailers.
func (w *ResponseWriter) declare(values []string) {
	for _, list := range values {
		for name := range strings.SplitSeq(list, ",") {
			w.trailers = append(w.trailers, http.CanonicalHeaderKey(strings.TrimSpace(name)))
		}
	}
}

// hasBody reports whether the status allows for a body.
func (w *ResponseWriter) hasBody() bool {
	return w.status != http.StatusNoContent && w.status != http.StatusNotModified
}

// Write implements http.ResponseWriter.
func (w *ResponseWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if len(p) == 0 {
		return 0, nil
	}
	if !w.hasBody() {
		return 0, http.ErrBodyNotAllowed
	}
	if w.written += int64(len(p)); w.length >= 0 && w.written > w.length {
		return 0, http.ErrContentLength
	}
	if len(w.body)+len(p) <= sizedBody {
		w.body = append(w.body, p...)
		return len(p), w.err
	}
	w.send(p, false)
	if w.err != nil {
		return 0, w.err
	}
	return len(p), nil
}

// FlushError sends what was written so far.
func (w *ResponseWriter) FlushError() error {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if !w.isSent || len(w.body) > 0 {
		w.send(nil, false)
	}
	return w.err
}

// Flush implements http.Flusher.
func (w *ResponseWriter) Flush() { _ = w.FlushError() }

// Finish sends what is left of the response, and reports whether another one may follow on the connection.
func (w *ResponseWriter) Finish() bool {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if !w.isSent || len(w.body) > 0 || w.isChunks {
		w.send(nil, true)
	}
	isWhole := w.isHead || !w.hasBody() || w.length < 0 || w.written == w.length
	return w.err == nil && isWhole && !w.closes
}

// SetReadDeadline is for http.ResponseController.
func (w *ResponseWriter) SetReadDeadline(t time.Time) error {
	if c, ok := w.to.(interface{ SetReadDeadline(time.Time) error }); ok {
		return c.SetReadDeadline(t)
	}
	return http.ErrNotSupported
}

// send sends what waits, and p behind it, in one write unless it is much.
func (w *ResponseWriter) send(p []byte, isEnd bool) {
	if !w.isSent {
		w.endHead(p, isEnd)
	}
	if w.isHead {
		w.body, p = w.body[:0], nil
	}
	out := w.head
	if n := len(w.body) + len(p); n > 0 && w.isChunks {
		out = append(strconv.AppendInt(out, int64(n), 16), "\r\n"...)
	}
	out = append(out, w.body...)
	if len(out)+len(p) > maxWrite {
		w.write(out)
		w.write(p)
		out = out[:0]
	} else {
		out = append(out, p...)
	}
	if w.isChunks && len(w.body)+len(p) > 0 {
		out = append(out, "\r\n"...)
	}
	if w.isChunks && isEnd {
		out = w.appendTrailers(append(out, "0\r\n"...))
	}
	w.write(out)
	w.head, w.body = out[:0], w.body[:0]
}

// endHead decides how the body is framed, and writes the fields that say so.
func (w *ResponseWriter) endHead(p []byte, isEnd bool) {
	w.isSent = true
	written := len(w.body) + len(p)
	isSized := w.length >= 0
	switch {
	case !w.hasBody():
		isSized = false
	case isSized:
	case isEnd && len(w.trailers) == 0 && (!w.isHead || written > 0):
		w.length, isSized = int64(written), true
	case !w.isHead:
		w.isChunks = true
	}
	if !w.isDated {
		w.head = AppendDate(w.head)
	}
	if isSized {
		w.head = append(strconv.AppendInt(append(w.head, "Content-Length: "...), w.length, 10), "\r\n"...)
	}
	if written > 0 && !w.isTyped && !w.isEncoded {
		first := w.body
		if len(first) == 0 {
			first = p
		}
		w.head = AppendField(w.head, "Content-Type", http.DetectContentType(first))
	}
	if w.closes = w.closes || w.isLast != nil && w.isLast(); w.closes {
		w.head = append(w.head, "Connection: close\r\n"...)
	}
	if w.isChunks {
		w.head = append(w.head, "Transfer-Encoding: chunked\r\n"...)
	}
	w.head = append(w.head, "\r\n"...)
}

// appendTrailers ends a body in chunks.
func (w *ResponseWriter) appendTrailers(b []byte) []byte {
	for _, name := range w.trailers {
		if isToken(name) && !IsHopByHop(name) && name != "Content-Length" {
			b = AppendFields(b, name, w.header[name])
		}
	}
	for name, values := range w.header {
		if late, ok := strings.CutPrefix(name, http.TrailerPrefix); ok && isToken(late) {
			b = AppendFields(b, late, values)
		}
	}
	return append(b, "\r\n"...)
}

func (w *ResponseWriter) write(b []byte) {
	if w.err == nil && len(b) > 0 {
		_, w.err = w.to.Write(b)
	}
}

// isToken reports whether a name may be written as that of a header field. There are more of them than names that are read here.
func isToken(name string) bool {
	for i := range len(name) {
		if c := name[i]; classes[c]&inName == 0 && strings.IndexByte("!#$%&'*+.^`|~", c) < 0 {
			return false
		}
	}
	return name != ""
}

// AppendStatus writes a status line.
func AppendStatus(b []byte, status int) []byte {
	b = strconv.AppendInt(append(b, "HTTP/1.1 "...), int64(status), 10)
	b = append(b, ' ')
	if text := http.StatusText(status); text != "" {
		b = append(b, text...)
	} else {
		b = strconv.AppendInt(append(b, "status code "...), int64(status), 10)
	}
	return append(b, "\r\n"...)
}

// AppendFields writes header fields with the same name.
func AppendFields(b []byte, name string, values []string) []byte {
	for _, v := range values {
		b = AppendField(b, name, v)
	}
	return b
}

// AppendField writes a header field.
func AppendField(b []byte, name, value string) []byte {
	// There is none, since each value was checked when it was read; this is for what is put in later.
	if strings.IndexByte(value, '\n') >= 0 || strings.IndexByte(value, '\r') >= 0 {
		value = lineBreaks.Replace(value)
	}
	b = append(b, name...)
	b = append(b, ": "...)
	b = append(b, value...)
	return append(b, "\r\n"...)
}

var lineBreaks = strings.NewReplacer("\r", " ", "\n", " ")

// dateNow is the field of the present second. To make it anew for everybody would cost more than all the rest of a header.
var dateNow atomic.Pointer[date]

type date struct {
	second int64
	field  string
}

// AppendDate writes the field that says when a response was made.
func AppendDate(b []byte) []byte {
	now := time.Now()
	d := dateNow.Load()
	if d == nil || d.second != now.Unix() {
		d = &date{now.Unix(), "Date: " + now.UTC().Format(http.TimeFormat) + "\r\n"}
		dateNow.Store(d)
	}
	return append(b, d.field...)
}
