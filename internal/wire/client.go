package wire

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// Client sends requests to upstreams in the goroutine that serves them, on connections that it keeps. It writes a request and reads the beginning of
// its response in one step. It is safe for concurrent use.
type Client struct {
	// Static once it is used.
	Dial        func(ctx context.Context, network, address string) (net.Conn, error)
	Timeout     time.Duration // until the head of the response
	IdleTimeout time.Duration // of connections that nobody uses
	MaxIdle     int           // connections to one address
	MaxHead     int64         // bytes of a response's head, with what comes before it

	mu     sync.Mutex
	idle   map[string][]*ClientConn // Guarded by mu. By address; the last one was used last.
	sweep  *time.Timer              // Guarded by mu. Runs while anything is idle.
	closed bool                     // Guarded by mu.
}

// Watcher looks whether the client of a request goes away while it waits for an upstream.
type Watcher interface {
	// Watch returns a context that ends when the client goes away. It looks until stop is called.
	Watch(ctx context.Context) (watched context.Context, stop func())
}

// Send sends a whole request, and waits until its response begins. The connection is the caller's until it is done with it. Only requests that may
// be repeated can be sent: if a kept connection turns out to be closed, another one is taken. A nil watcher means that the context ends when the
// client goes away.
func (t *Client) Send(ctx context.Context, address string, request []byte, client Watcher) (*ClientConn, error) {
	for {
		c, isKept, err := t.conn(ctx, address, client)
		if err != nil {
			return nil, err
		}
		if err = c.send(ctx, request, client); err == nil {
			return c, nil
		}
		err = c.Cause(err)
		c.Done(false)
		if !isKept || IsTimeout(err) || errors.Is(err, context.Canceled) {
			return nil, err
		}
		// The upstream closed the connection while it was idle, or said something. To ask another time does no harm.
	}
}

// IsTimeout reports whether an error is about something that took too long.
func IsTimeout(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout()
}

// conn takes the connection that was used last, or makes one.
func (t *Client) conn(ctx context.Context, address string, client Watcher) (c *ClientConn, isKept bool, err error) {
	if c = t.take(address); c != nil {
		return c, true, nil
	}
	if client != nil {
		watched, stop := client.Watch(ctx)
		defer stop()
		ctx = watched
	}
	conn, err := t.Dial(ctx, "tcp", address)
	if err != nil {
		return nil, false, err
	}
	return newClientConn(t, address, conn), false, nil
}

// take returns the connection that was used last, or nil.
func (t *Client) take(address string) *ClientConn {
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

// keep keeps a connection for the next request.
func (t *Client) keep(c *ClientConn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || len(t.idle[c.address]) >= t.MaxIdle {
		_ = c.Close()
		return
	}
	if t.idle == nil {
		t.idle = map[string][]*ClientConn{}
	}
	t.idle[c.address] = append(t.idle[c.address], c)
	if t.sweep == nil {
		t.sweep = time.AfterFunc(t.IdleTimeout, t.dropIdle)
	}
}

// dropIdle closes what nobody used for a while.
func (t *Client) dropIdle() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweep = nil
	long := time.Now().Add(-t.IdleTimeout)
	for address, idle := range t.idle {
		stale := 0
		for stale < len(idle) && !idle[stale].sent.After(long) {
			_ = idle[stale].Close()
			stale++
		}
		if t.idle[address] = append([]*ClientConn(nil), idle[stale:]...); len(t.idle[address]) == 0 {
			delete(t.idle, address)
		}
	}
	if len(t.idle) > 0 && !t.closed {
		t.sweep = time.AfterFunc(t.IdleTimeout/2, t.dropIdle)
	}
}

// Close closes idle connections. Those in use are closed when they come back.
func (t *Client) Close() {
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
