package gateway

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/freshet-io/freshet/internal/httpkit"
)

// straight keeps connections to upstreams for plain requests: no bodies, no TLS, no upgrades, only methods that may be
// repeated. That is most of the traffic, and the standard way would copy each such request and hand it through two
// goroutines more, at twice the cost. Here it is written to the upstream in the goroutine that serves it, and the answer
// read there; see plain.go. Everything else goes the standard way.
type straight struct {
	// Static after newStraight.
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	timeout time.Duration // until the header of the response

	mu     sync.Mutex
	idle   map[string][]*straightConn // Guarded by mu. By address; the last one was used last.
	sweep  *time.Timer                // Guarded by mu. Runs while anything is idle.
	closed bool                       // Guarded by mu.
}

// newStraight connects, and waits, as the other transport does.
func newStraight(like *http.Transport) *straight {
	return &straight{dial: like.DialContext, timeout: like.ResponseHeaderTimeout, idle: map[string][]*straightConn{}}
}

// ask sends a request and waits until its answer begins. The connection is the caller's until it is done with it.
func (t *straight) ask(r *http.Request, to *upstream, client *httpkit.Client) (*straightConn, error) {
	for {
		c, reused, err := t.conn(r.Context(), to.address, client)
		if err != nil {
			return nil, err
		}
		c.client = client
		if err = c.ask(r, to); err == nil {
			return c, nil
		}
		err = c.cause(err)
		c.done(false)
		if !reused || isTimeout(err) || errors.Is(err, context.Canceled) {
			return nil, err
		}
		// The upstream closed the connection while it was idle, or said something. Asking another time does no harm.
	}
}

// conn takes the connection that was used last, or makes one.
func (t *straight) conn(ctx context.Context, address string, client *httpkit.Client) (c *straightConn, reused bool, err error) {
	if c = t.take(address); c != nil {
		return c, true, nil
	}
	ctx, stop := client.Watch(ctx)
	defer stop()
	raw, err := t.dial(ctx, "tcp", address)
	if err != nil {
		return nil, false, err
	}
	return newStraightConn(t, address, raw), false, nil
}

// take returns the connection that was used last, or nil.
func (t *straight) take(address string) *straightConn {
	t.mu.Lock()
	defer t.mu.Unlock()
	idle := t.idle[address]
	if len(idle) == 0 {
		return nil
	}
	c := idle[len(idle)-1]
	idle[len(idle)-1] = nil
	t.idle[address] = idle[:len(idle)-1]
	return c
}

// put keeps a connection for the next request.
func (t *straight) put(c *straightConn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || len(t.idle[c.address]) >= maxIdlePerUpstream {
		_ = c.Close()
		return
	}
	t.idle[c.address] = append(t.idle[c.address], c)
	if t.sweep == nil {
		t.sweep = time.AfterFunc(idleTimeout, t.dropIdle)
	}
}

// dropIdle closes what nobody used for a while.
func (t *straight) dropIdle() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweep = nil
	long := time.Now().Add(-idleTimeout)
	for address, idle := range t.idle {
		stale := 0
		for stale < len(idle) && !idle[stale].begun.After(long) {
			_ = idle[stale].Close()
			stale++
		}
		if t.idle[address] = append([]*straightConn(nil), idle[stale:]...); len(t.idle[address]) == 0 {
			delete(t.idle, address)
		}
	}
	if len(t.idle) > 0 && !t.closed {
		t.sweep = time.AfterFunc(idleTimeout/2, t.dropIdle)
	}
}

// close closes idle connections; those in use are closed when they come back.
func (t *straight) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if t.sweep != nil {
		t.sweep.Stop()
	}
	for _, idle := range t.idle {
		for _, c := range idle {
			_ = c.Close()
		}
	}
	clear(t.idle)
}
