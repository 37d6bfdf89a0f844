package httpkit

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// What is read and thrown away of a body that a handler refused to read, and for how long. Many clients look for an answer
// only after they have sent everything; closing on them earlier would give them a broken connection instead of the reason.
const (
	drainBytes = 64 << 20
	drainTime  = 10 * time.Second

	// Who asked before sending is told that its body is not wanted. Some send it all the same, without waiting for the answer.
	drainAsked = time.Second
)

// DrainBodies sends an answer at once, also one to a body that was not read or not sent, and then reads the rest of the body,
// within bounds, before the connection is closed. By itself net/http would read first, for as long as a client cares to keep
// it waiting. HTTP/2 has better ways.
func DrainBodies(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.Body == http.NoBody || r.ProtoMajor != 1 {
			next.ServeHTTP(w, r)
			return
		}
		d := &drainedWriter{ResponseWriter: w, body: watchedBody{body: r.Body}}
		next.ServeHTTP(d, withBody(r, &d.body))
		if !d.body.done.Load() {
			d.WriteHeader(http.StatusOK) // if nobody did
			d.drain(r.Header.Get("Expect") != "")
		}
	})
}

// withBody returns the request with another body. The library's own request stays as it is: it looks at the type of its body to see
// whether that failed, and must not take what follows for a request then.
func withBody(r *http.Request, body io.ReadCloser) *http.Request {
	r = r.WithContext(r.Context()) // a copy
	r.Body = body
	return r
}

// drainedWriter closes the connection behind an answer that is given before all of the body was read, or to a body that failed: nobody
// knows where that ends.
type drainedWriter struct {
	http.ResponseWriter
	body  watchedBody
	wrote bool
}

// WriteHeader implements http.ResponseWriter.
func (d *drainedWriter) WriteHeader(status int) {
	if d.wrote {
		return
	}
	if status >= http.StatusOK { // what comes before does not end anything
		d.wrote = true
		if !d.body.done.Load() {
			d.Header().Set("Connection", "close")
		}
	}
	d.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (d *drainedWriter) Write(p []byte) (int, error) {
	d.WriteHeader(http.StatusOK)
	return d.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (d *drainedWriter) Unwrap() http.ResponseWriter { return d.ResponseWriter }

// drain sends the answer and reads what is left. Failures mean that the client is gone, or too slow for more patience.
func (d *drainedWriter) drain(expects bool) {
	conn := http.NewResponseController(d.ResponseWriter)
	_ = conn.Flush()
	patience := drainTime
	if expects && !d.body.begun.Load() {
		patience = drainAsked
	}
	_ = conn.SetReadDeadline(time.Now().Add(patience)) // it stays, so that net/http does not wait either
	_, _ = io.CopyN(io.Discard, &d.body, drainBytes)
}

// watchedBody knows how far it was read, perhaps by another goroutine than the one that answers.
type watchedBody struct {
	body  io.ReadCloser
	begun atomic.Bool
	done  atomic.Bool // to its end
}

func (b *watchedBody) Read(p []byte) (int, error) {
	b.begun.Store(true)
	n, err := b.body.Read(p)
	if errors.Is(err, io.EOF) {
		b.done.Store(true)
	}
	return n, err
}

// Close does nothing: a handler that closes what it will not read would keep us from reading it. The server closes it in
// any case.
func (b *watchedBody) Close() error { return nil }
