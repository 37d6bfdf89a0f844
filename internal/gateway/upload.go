package gateway

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/freshet-io/freshet/internal/httpkit"
)

// upload passes on a request with a body. An upstream may answer before it has all of it, to refuse it or because it works
// on what it has: the client gets that at once, and what it still sends goes on to the upstream meanwhile.
func (g *Gateway) upload(w http.ResponseWriter, r *http.Request, next http.Handler) {
	pass := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := &patientBody{ReadCloser: r.Body, conn: http.NewResponseController(w), timeout: g.bodyTimeout}
		r = r.WithContext(r.Context()) // a copy: the server looks into the body of its own
		r.Body = body
		next.ServeHTTP(w, r)
	})
	if _, upgrade := r.Header["Upgrade"]; upgrade {
		pass(w, r) // what follows the answer may be no body
		return
	}
	httpkit.DrainBodies(pass).ServeHTTP(w, r)
}

// patientBody gives up on a client that stops sending in the middle of a body, since it holds a connection to an
// upstream. The server then takes the client for gone: the request is canceled and the connection closed.
type patientBody struct {
	io.ReadCloser
	conn    *http.ResponseController
	timeout time.Duration
}

func (b *patientBody) Read(p []byte) (int, error) {
	_ = b.conn.SetReadDeadline(time.Now().Add(b.timeout)) // a connection that has no deadlines has no stalls to fear
	n, err := b.ReadCloser.Read(p)
	switch {
	case errors.Is(err, io.EOF):
		_ = b.conn.SetReadDeadline(time.Time{}) // what comes after the body may take its time
	case err != nil:
		err = &bodyError{err}
	}
	return n, err
}

// bodyError is the client's failure to send a body, as opposed to the upstream's to answer.
type bodyError struct{ err error }

func (e *bodyError) Error() string { return "request body: " + e.err.Error() }
func (e *bodyError) Unwrap() error { return e.err }
