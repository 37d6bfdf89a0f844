package gateway

import (
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/textproto"
	"os"
	"slices"
	"strings"

	"github.com/freshet-io/freshet/internal/httpkit"
)

// isPlain reports whether a request can go straight to an upstream. Whatever needs more than a look goes the standard way.
func isPlain(r *http.Request) bool {
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

func isTimeout(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout()
}

// servePlain forwards a plain request as the standard proxy would, but without a copy of it.
func (u *upstream) servePlain(w http.ResponseWriter, r *http.Request) {
	client := httpkit.Unwatch(r.Context())
	defer client.Done()
	c, err := u.gateway.straight.ask(r, u, client)
	u.pass(w, r, c, err)
}

// pass passes on the answer that has begun on a connection, or says why there is none.
func (u *upstream) pass(w http.ResponseWriter, r *http.Request, c *straightConn, err error) {
	if err != nil {
		u.gateway.upstreamFailed(w, r, u.host, err)
		return
	}
	kept := false
	defer func() { // where the answer breaks off, this ends in a panic
		if !kept {
			c.done(false)
		}
	}()
	if r.Method == http.MethodGet {
		if status, length, ok := c.shortAnswer(w.Header()); ok {
			w.WriteHeader(status)
			c.passShort(w, length)
			kept = true
			c.done(true)
			return
		}
	}
	resp, err := c.answer(w, r)
	if err != nil {
		err = c.cause(err)
		u.gateway.upstreamFailed(w, r, u.host, err)
		return
	}
	passHeader(w.Header(), resp)
	w.WriteHeader(resp.StatusCode)
	passBody(w, resp, c.in.Buffered() > 0, func() {
		kept = true
		c.done(!resp.Close)
	})
}

// answer reads the header of an answer, and passes on what comes before it. All of that has one limit.
func (c *straightConn) answer(w http.ResponseWriter, r *http.Request) (*http.Response, error) {
	for {
		resp, err := http.ReadResponse(c.in, r)
		switch {
		case err != nil && c.late:
			return nil, os.ErrDeadlineExceeded
		case err != nil:
			return nil, noEOF(err)
		case resp.StatusCode < http.StatusContinue:
			return nil, errBadStatus
		case resp.StatusCode == http.StatusSwitchingProtocols:
			return nil, errors.New("the upstream switched protocols without being asked")
		case resp.StatusCode >= http.StatusOK:
			return resp, c.headerRead()
		}
		hint(w, resp)
	}
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
		if !isHopByHop(name) {
			to[name] = values
		}
	}
	if len(resp.Trailer) > 0 {
		to["Trailer"] = slices.Sorted(maps.Keys(resp.Trailer))
	}
}

// isHopByHop reports whether a header speaks of one connection only.
func isHopByHop(name string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer",
		"Transfer-Encoding", "Upgrade":
		return true
	}
	return false
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
