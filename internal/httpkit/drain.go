package httpkit

import (
	"io"
	"net/http"
	"time"
)

// What is read and thrown away of a body that a handler refused to read, and for how long. Many clients look for an answer
// only after they have sent everything; closing on them earlier would give them a broken connection instead of the reason.
const (
	drainBytes = 64 << 20
	drainTime  = 10 * time.Second
)

// DrainBodies reads the rest of request bodies, within bounds, before the answer goes out.
func DrainBodies(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		body := &watchedBody{body: r.Body}
		r.Body = body
		next.ServeHTTP(w, r)
		if body.done {
			return
		}
		// Failures mean that the client is gone, or too slow for more patience.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(drainTime))
		_, _ = io.CopyN(io.Discard, body, drainBytes)
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	})
}

// watchedBody knows whether it was read to its end, or failed.
type watchedBody struct {
	body io.ReadCloser
	done bool
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	b.done = b.done || err != nil
	return n, err
}

// Close does nothing: a handler that closes what it will not read would keep us from reading it. The server closes it in
// any case.
func (b *watchedBody) Close() error { return nil }
