package gateway

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"sync"

	"github.com/freshet-io/freshet/internal/wire"
)

// canSend reports whether a request can be sent to an upstream by the client of wire: it has no body and may be repeated. That is most of the traffic,
// and the standard proxy would copy each such request and hand it through two goroutines more, at twice the cost. Whatever needs more than a look goes
// through that proxy.
func canSend(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
	default:
		return false
	}
	if r.Body != nil && r.Body != http.NoBody || r.ContentLength != 0 || len(r.TransferEncoding) > 0 {
		return false
	}
	for _, name := range [...]string{"Upgrade", "Expect", "Te", "Trailer"} {
		if _, given := r.Header[name]; given {
			return false
		}
	}
	for _, v := range r.Header["Connection"] {
		if !strings.EqualFold(v, "keep-alive") && !strings.EqualFold(v, "close") {
			return false // it names headers that end here
		}
	}
	return !strings.ContainsFunc(r.Host, func(c rune) bool { return c <= ' ' || c >= 0x7f })
}

// requests are buffers in which requests to upstreams are written.
var requests = sync.Pool{New: func() any { return new([]byte) }}

// send sends a request, and waits until its response begins. A nil watcher means that the request's context ends when its client goes away.
func (u *upstream) send(r *http.Request, client wire.Watcher) (*wire.ClientConn, error) {
	buf := requests.Get().(*[]byte)
	defer requests.Put(buf)
	*buf = appendRequest((*buf)[:0], r, u)
	return u.gateway.client.Send(r.Context(), u.address, *buf, client)
}

// appendRequest writes a request as its upstream gets it, with the header in no order: net/http sorts it each time.
func appendRequest(b []byte, r *http.Request, to *upstream) []byte {
	path, prefix := to.target(r.URL)
	b = append(b, r.Method...)
	b = append(b, ' ')
	b = append(b, to.path...)
	b = append(b, path...)
	if r.URL.RawQuery != "" || r.URL.ForceQuery {
		b = append(b, '?')
		b = append(b, r.URL.RawQuery...)
	}
	host := to.host
	if to.preserveHost && r.Host != "" { // HTTP/1.0 may have none
		host = r.Host
	}
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, host...)
	b = append(b, "\r\n"...)
	for name, values := range r.Header {
		if !wire.IsHopByHop(name) && !isForwarding(name) {
			b = wire.AppendFields(b, name, values)
		}
	}
	told := forwarding(r, prefix)
	for i := range told {
		if told[i] != "" {
			b = wire.AppendField(b, forwardingNames[i], told[i])
		}
	}
	b = wire.AppendFields(b, "Forwarded", forwarded(r))
	b = wire.AppendFields(b, hopHeader, nextHop(r))
	return append(b, "\r\n"...)
}

// pass passes on the response that has begun on a connection, or says why there is none.
func (u *upstream) pass(w http.ResponseWriter, r *http.Request, c *wire.ClientConn, err error) {
	if err != nil {
		u.gateway.upstreamFailed(w, r, u.host, err)
		return
	}
	isKept := false
	defer func() { // where the response breaks off, this ends in a panic
		if !isKept {
			c.Done(false)
		}
	}()
	if r.Method == http.MethodGet && passShort(w, c) {
		isKept = true
		c.Done(true)
		return
	}
	resp, err := c.Response(r, func(resp *http.Response) { hint(w, resp) })
	if err != nil {
		u.gateway.upstreamFailed(w, r, u.host, c.Cause(err))
		return
	}
	passHeader(w.Header(), resp)
	w.WriteHeader(resp.StatusCode)
	passBody(w, resp, c.HasMore(), func() {
		isKept = true
		c.Done(!resp.Close)
	})
}

// passShort passes a short response on, and reports whether it was one.
func passShort(w http.ResponseWriter, c *wire.ClientConn) bool {
	s := c.Short()
	if s == nil {
		return false
	}
	h := w.Header()
	for _, f := range s.Fields {
		delete(h, f.Name) // as passHeader does
	}
	values := make([]string, len(s.Fields)) // one allocation for all
	for i, f := range s.Fields {
		values[i] = f.Value
		if before := h[f.Name]; len(before) > 0 {
			h[f.Name] = append(before, f.Value)
		} else {
			h[f.Name] = values[i : i+1 : i+1]
		}
	}
	w.WriteHeader(s.Status)
	if _, err := w.Write(s.Body); err != nil && len(s.Body) > 0 {
		panic(http.ErrAbortHandler) // the client has gone
	}
	return true
}

// hint passes on what an upstream says before its answer.
func hint(w http.ResponseWriter, resp *http.Response) {
	h := w.Header()
	ours := maps.Clone(h)
	passHeader(h, resp)
	w.WriteHeader(resp.StatusCode)
	clear(h)
	maps.Copy(h, ours)
}

// passHeader moves the header of an answer, without what is between the upstream and us alone.
func passHeader(to http.Header, resp *http.Response) {
	for _, list := range resp.Header["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			if name = textproto.TrimString(name); name != "" {
				resp.Header.Del(name)
			}
		}
	}
	for name, values := range resp.Header {
		if !wire.IsHopByHop(name) {
			to[name] = values
		}
	}
	if len(resp.Trailer) > 0 {
		to["Trailer"] = slices.Sorted(maps.Keys(resp.Trailer))
	}
}

// passBody copies a body, and the trailers behind it. It says so when it has read all of it, before the client has: the
// next request may come at once. Where the body breaks off, so does ours: nobody may take it for whole.
func passBody(w http.ResponseWriter, resp *http.Response, more bool, read func()) {
	if resp.Body == http.NoBody {
		read()
		return
	}
	buf := buffers.Get()
	defer buffers.Put(buf)
	flush := func() error { return nil }
	if resp.ContentLength < 0 || isEventStream(resp.Header) {
		flush = http.NewResponseController(w).Flush
		if !more {
			_ = flush() // the body may be long in coming; a failure shows when it is written
		}
	}
	announced := len(resp.Trailer)
	if err := copyBody(w, resp.Body, buf, flush, read); err != nil {
		panic(http.ErrAbortHandler)
	}
	for name, values := range resp.Trailer {
		if len(resp.Trailer) != announced { // there are more than the upstream had announced
			name = http.TrailerPrefix + name
		}
		w.Header()[name] = values
	}
}

func copyBody(to io.Writer, from io.Reader, buf []byte, flush func() error, read func()) error {
	for {
		n, err := from.Read(buf)
		whole := errors.Is(err, io.EOF)
		if whole {
			read()
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return err
			}
			if err := flush(); err != nil {
				return err
			}
		}
		if whole {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func isEventStream(h http.Header) bool {
	kind := h["Content-Type"]
	return len(kind) > 0 && strings.HasPrefix(kind[0], "text/event-stream")
}
