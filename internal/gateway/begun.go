package gateway

import (
	"bytes"
	"net/http"
	"time"

	"github.com/freshet-io/freshet/internal/httpkit"
)

// begun is a request that a clerk has judged, and passed on if it may be.
type begun struct {
	to     *upstream
	header []mark
	answer *answer       // that of a plugin
	conn   *straightConn // on which the upstream has begun to answer
	err    error         // why it did not
}

// Close implements io.Closer, for those whom nobody goes on with.
func (b *begun) Close() error {
	if b.conn != nil {
		b.conn.done(false)
	}
	return nil
}

// ServeHTTP goes on from there.
func (b *begun) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m := &marked{ResponseWriter: w, isProxied: true, header: b.header}
	if b.answer != nil {
		b.to.gateway.refuse(m, r, b.answer)
		return
	}
	client := httpkit.Unwatch(r.Context())
	defer client.Done()
	if b.conn != nil {
		b.conn.ctx, b.conn.client = r.Context(), client
	}
	b.to.pass(m, r, b.conn, b.err)
}

// lastAnswer is the last one on its connection, the end of which ends the body too.
type lastAnswer struct {
	conn   *httpkit.DeskConn
	header http.Header
	done   bool
	err    error
}

func (a *lastAnswer) Header() http.Header { return a.header }

func (a *lastAnswer) WriteHeader(status int) {
	if a.done || status < http.StatusOK {
		return
	}
	a.done = true
	a.header.Set("Connection", "close")
	a.header.Del("Trailer")
	if a.header.Get("Date") == "" {
		a.header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	}
	b := bytes.NewBuffer(appendStatus(nil, status))
	_ = a.header.Write(b) // it cannot fail
	b.WriteString("\r\n")
	a.err = a.conn.Answer(b.Bytes())
}

func (a *lastAnswer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	if a.err == nil {
		a.err = a.conn.Answer(p)
	}
	return len(p), a.err
}

// FlushError implements what http.ResponseController asks for.
func (a *lastAnswer) FlushError() error { return a.err }
