package gateway

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// transport is the standard way to upstreams. It keeps connections, like the one it stands on, but not for everybody: some
// upstreams close each one behind the answer without saying so. A request that comes upon it just before would be lost, and
// one that must not be made twice cannot be made again. So those get a new connection each as long as it is not known that
// the upstream keeps them.
type transport struct {
	// Static after newTransport.
	*http.Transport
	fresh *http.Transport // the same, but each connection serves once
	grace time.Duration   // an upstream that has kept a connection for so long keeps them

	hasty sync.Map // until when an address is taken for one that closes, as a time.Time
}

const (
	usualGrace = 250 * time.Millisecond
	hastyFor   = time.Minute
)

// keepConnections puts the transport on one that knows nothing of all this.
func keepConnections(general *http.Transport) *transport {
	t := &transport{Transport: general.Clone(), grace: usualGrace}
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := general.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &watchedConn{Conn: conn, transport: t, address: address}, nil
	}
	t.fresh = t.Clone()
	t.fresh.MaxIdleConnsPerHost = -1 // not DisableKeepAlives, which tells the upstream: it could tell the ways apart
	return t
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !canRepeat(r) && t.isHasty(address(r.URL)) {
		return t.fresh.RoundTrip(r)
	}
	return t.Transport.RoundTrip(r)
}

// canRepeat reports whether the library may make the request again; see markRepeatable.
func canRepeat(r *http.Request) bool {
	if r.Body != nil && r.Body != http.NoBody {
		return false
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPut, http.MethodDelete:
		return true
	}
	return false
}

// markRepeatable tells the library what it does not take for granted: that PUT and DELETE may be made again, which is said by
// a header without values, and that a body of which nothing was read is as good as new.
func markRepeatable(r *http.Request) {
	if _, said := r.Header["Idempotency-Key"]; !said && (r.Method == http.MethodPut || r.Method == http.MethodDelete) {
		r.Header["Idempotency-Key"] = nil
	}
	if r.URL.Scheme == "http" { // HTTP/2 finds out by itself, and would take the error for the end
		r.GetBody = func() (io.ReadCloser, error) { return nil, errBodyRead }
	}
}

var errBodyRead = errors.New("the upstream closed the connection, and the body was sent already")

// address is what the library connects to.
func address(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Host
	case u.Scheme == "https":
		return net.JoinHostPort(u.Hostname(), "443")
	}
	return net.JoinHostPort(u.Hostname(), "80")
}

func (t *transport) isHasty(address string) bool {
	until, met := t.hasty.Load(address)
	return met && time.Now().Before(until.(time.Time)) //nolint:forcetypeassert // nothing else is in it
}

// watchedConn sees whether the upstream closes it right behind an answer. Only one goroutine reads.
type watchedConn struct {
	net.Conn
	transport *transport
	address   string
	last      time.Time // when the upstream said something
}

func (c *watchedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	now := time.Now()
	switch {
	case n > 0:
		if c.last.IsZero() {
			c.transport.hasty.LoadOrStore(c.address, now.Add(c.transport.grace))
		}
		c.last = now
	case errors.Is(err, io.EOF) && now.Sub(c.last) < c.transport.grace:
		c.transport.hasty.Store(c.address, now.Add(hastyFor))
	}
	return n, err
}
