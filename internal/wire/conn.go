package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// conn is a connection of a client that is served here. One goroutine serves it. While it waits for a request it has no buffer: most connections wait
// most of the time.
type conn struct {
	net.Conn
	server   *Server
	listener *listener
	ctx      context.Context //nolint:containedctx // its requests have no other
	raw      syscall.RawConn // nil where there is no socket to read from directly
	state    atomic.Int32    // one of those below

	// Owned by the goroutine that serves it.
	x            *Exchange // nil while it waits
	hasServed    bool
	isBehindPost bool                  // the last request was one
	template     *http.Request         // what its requests have in common; nil until one is made
	readStep     func(fd uintptr) bool // receiveNow
	writeStep    func(fd uintptr) bool // sendNow
	failed       error                 // of the last step
	received     int                   // in the last step
	unsent       []byte
	wrote        time.Time // when it was last written to
	writeArm     time.Time // the deadline of writes

	// The deadline of reads. It moves with every request, and the socket hears of it only when one comes true.
	mu        sync.Mutex
	wanted    time.Time // Guarded by mu.
	armed     time.Time // Guarded by mu. The one that the socket has; never later than wanted while somebody reads.
	isReading bool      // Guarded by mu.
}

// States of a connection.
const (
	isServed int32 = iota // it brings a request, or has brought none yet
	isIdle                // it waits for its next one
	isEnding              // nobody waits for it any more
)

// serve serves a connection in a goroutine of its own. HTTP/2 over TLS, and what is no connection of a network, is net/http's at once.
func (s *Server) serve(nc net.Conn, l *listener) {
	if s.Opened != nil {
		s.Opened(1)
	}
	if !canGuard(nc) {
		go s.pass(nc, l)
		return
	}
	c := &conn{Conn: nc, server: s, listener: l, ctx: context.Background()}
	if s.ConnContext != nil {
		c.ctx = s.ConnContext(c.ctx, nc)
	}
	c.ctx = context.WithValue(c.ctx, http.LocalAddrContextKey, nc.LocalAddr())
	if socket, ok := nc.(syscall.Conn); ok && canReadNow {
		c.raw, _ = socket.SyscallConn() // without it a connection is read as any other
		c.readStep, c.writeStep = c.receiveNow, c.sendNow
	}
	s.enter(c)
	go c.run()
}

func (c *conn) run() {
	c.wantRead(time.Now().Add(c.server.HeadTimeout))
	switch c.serveAll() {
	case Pass:
		unread := bytes.Clone(c.x.unread())
		c.release()
		_ = c.Conn.SetDeadline(time.Time{})
		c.server.pass(GuardConn(c.Conn, unread, !c.hasServed), c.listener)
		c.server.leave(c)
	case Done:
		_ = c.Conn.Close()
		c.server.ended(c)
	}
}

// serveAll serves requests until the connection is over, or somebody else's.
func (c *conn) serveAll() (o Outcome) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		o = Done
		if err, ok := v.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
			c.server.Log.Error("handler panicked", "panic", v, "stack", string(debug.Stack()))
		}
		c.x.abort()
	}()
	for {
		o, isOver := c.receiveHead()
		if isOver {
			return o
		}
		x := c.x
		if !x.begin() {
			return Pass
		}
		if o = c.ask(); o != Done {
			x.start = x.headStart // none of it was read
			return o
		}
		c.hasServed, c.isBehindPost = true, x.Method == http.MethodPost
		if !x.finish() || c.server.isClosing.Load() {
			return Done
		}
	}
}

// ask asks the handlers in turn.
func (c *conn) ask() Outcome {
	for _, h := range c.server.Handlers {
		if o := h.ServeWire(c.x); o != Pass {
			return o
		}
	}
	return Pass
}

// stubSize is how much net/http waits for before it takes something behind a request for another one.
const stubSize = 4

// receiveHead waits for a request, and reads until its head is whole. isOver says that there is none, and what is to be done with the connection.
func (c *conn) receiveHead() (o Outcome, isOver bool) {
	if c.x == nil || c.x.isEmpty() {
		if err := c.await(); err != nil {
			return Done, true
		}
	}
	x := c.x
	for isWaiting := false; !x.hasHead(); isWaiting = true {
		if x.isEmpty() { // there were empty lines only
			return c.receiveHead()
		}
		isStub := c.hasServed && len(x.unread()) < stubSize
		if !isStub && !isPlausible(x.unread()) || !x.makeRoom() {
			return Pass, true
		}
		if c.hasServed && !isWaiting {
			c.wantRead(time.Now().Add(c.server.HeadTimeout))
		}
		n, err := c.Read(x.in[x.end:])
		x.end += n
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded), err != nil && isStub:
			return Done, true
		case err != nil:
			return Pass, true // net/http knows what to say to half a request
		}
	}
	return Done, false
}

// isPlausible reports whether what was read can become a request that is understood here. net/http refuses some others before their head is whole.
func isPlausible(begun []byte) bool {
	space := bytes.IndexByte(begun, ' ')
	if space < 0 {
		space = len(begun)
	}
	if space > len(http.MethodOptions) || space < len(begun) && methodNamed(string(begun[:space])) == "" {
		return false
	}
	for i, b := range begun {
		isEnd := b == '\r' && (i+1 == len(begun) || begun[i+1] == '\n') || b == '\n' && i > 0 && begun[i-1] == '\r'
		if classes[b]&inValue == 0 && !isEnd {
			return false
		}
	}
	return true
}

// await waits for the next request without a buffer.
func (c *conn) await() error {
	c.release()
	if c.hasServed {
		c.state.Store(isIdle)
		if c.server.isClosing.Load() { // looked at last: who sets it looks at the state then
			return io.EOF
		}
	}
	if err := c.waitForInput(); err != nil {
		return err
	}
	if c.hasServed && !c.state.CompareAndSwap(isIdle, isServed) {
		return io.EOF
	}
	return nil
}

// endIfIdle ends a connection that waits for its next request.
func (c *conn) endIfIdle() {
	if c.state.CompareAndSwap(isIdle, isEnding) {
		c.wantRead(time.Unix(1, 0))
	}
}

// waitForInput reads the beginning of a request.
func (c *conn) waitForInput() error {
	if c.raw == nil {
		c.x = newExchange(c)
		n, err := c.Read(c.x.in[:])
		c.x.end = n
		return err
	}
	c.received, c.failed = 0, nil
	if err := c.whileReading(func() error { return c.raw.Read(c.readStep) }); err != nil {
		return err
	}
	if c.received == 0 && c.failed == nil {
		return io.EOF
	}
	return c.failed
}

// receiveNow reads what is there, and reports whether there was anything.
func (c *conn) receiveNow(fd uintptr) bool {
	x := newExchange(c)
	var wait bool
	if c.received, wait, c.failed = readNow(fd, x.in[:]); wait {
		exchanges.Put(x)
		return false
	}
	c.x, x.end = x, c.received
	return true
}

// release gives the buffers back.
func (c *conn) release() {
	if c.x != nil {
		exchanges.Put(c.x)
		c.x = nil
	}
}

// Read implements net.Conn. It is for bodies and for what is late of a head.
func (c *conn) Read(p []byte) (n int, err error) {
	err = c.whileReading(func() error {
		n, err = c.Conn.Read(p)
		if n > 0 {
			return nil
		}
		return err
	})
	return n, err
}

// whileReading reads with the deadline that is wanted.
func (c *conn) whileReading(read func() error) error {
	if err := c.beginRead(); err != nil {
		return err
	}
	defer c.endRead()
	for {
		err := read()
		if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) || !c.extend() {
			return err
		}
	}
}

func (c *conn) beginRead() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isReading = true
	if !c.wanted.IsZero() && (c.armed.IsZero() || c.wanted.Before(c.armed)) {
		return c.arm(c.wanted)
	}
	return nil
}

func (c *conn) endRead() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isReading = false
}

// extend reports whether the deadline that came true was not the last one wanted, which it sets.
func (c *conn) extend() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.armed.Equal(c.wanted) && c.arm(c.wanted) == nil
}

// arm sets the socket's deadline. The caller holds mu.
func (c *conn) arm(t time.Time) error {
	c.armed = t
	return c.Conn.SetReadDeadline(t)
}

// disarm lets a read of somebody else last as long as it takes.
func (c *conn) disarm() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.arm(time.Time{})
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wanted = t
	if c.isReading {
		return c.arm(t)
	}
	return nil
}

func (c *conn) wantRead(until time.Time) { _ = c.SetReadDeadline(until) }

// Write implements net.Conn. A client that takes nothing for too long is given up.
func (c *conn) Write(b []byte) (int, error) {
	if c.wrote = time.Now(); c.writeArm.Before(c.wrote.Add(c.server.IdleTimeout / 2)) {
		c.writeArm = c.wrote.Add(c.server.IdleTimeout)
		_ = c.Conn.SetWriteDeadline(c.writeArm)
	}
	if c.raw == nil {
		return c.Conn.Write(b)
	}
	c.unsent, c.failed = b, nil
	for {
		before := len(c.unsent)
		err := c.raw.Write(c.writeStep)
		if errors.Is(err, os.ErrDeadlineExceeded) && len(c.unsent) < before {
			c.writeArm = time.Now().Add(c.server.IdleTimeout)
			_ = c.Conn.SetWriteDeadline(c.writeArm)
			continue
		}
		n := len(b) - len(c.unsent)
		c.unsent = nil
		if err == nil {
			err = c.failed
		}
		return n, err
	}
}

// sendNow writes what there is room for, and reports whether that was all.
func (c *conn) sendNow(fd uintptr) bool {
	for len(c.unsent) > 0 {
		n, wait, err := writeNow(fd, c.unsent)
		if wait {
			return false
		}
		if c.failed = err; err != nil {
			break
		}
		c.unsent = c.unsent[n:]
	}
	return true
}
