package wire

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"
)

// glance is how long a read waits for the upstream alone. Most responses are there by then. Only for the others is it worth watching whether the client
// goes away, which takes as much as parsing the response.
const glance = 100 * time.Millisecond

// ClientConn is a connection to an upstream. It belongs to one request at a time.
type ClientConn struct {
	net.Conn
	client  *Client
	address string
	abort   func()
	raw     syscall.RawConn // nil if the connection has none
	in      *bufio.Reader
	glance  time.Duration
	armed   time.Time // the deadline that is set, if it is that of a glance

	// Of the exchange.
	step    func(fd uintptr) bool // takeStep
	request []byte                // what has not been sent yet
	into    []byte                // where the response goes
	read    int                   // how much of it there is
	failed  error

	// Of the request.
	ctx      context.Context //nolint:containedctx // it belongs to the request, as the connection does meanwhile
	watcher  Watcher
	release  func() bool // ends the interest in ctx; nil while there is none
	unwatch  func()      // ends the one in the client
	sent     time.Time   // when it was asked last
	isLate   bool        // the upstream did not respond in time; net/http takes half a line for a bad one
	room     int64       // how much more of a head may come; bodies are not limited
	isInHead bool
	short    Response
}

func newClientConn(t *Client, address string, conn net.Conn) *ClientConn {
	c := &ClientConn{Conn: conn, client: t, address: address, glance: min(glance, t.Timeout/2)}
	c.in = bufio.NewReader(c)
	c.abort = func() { _ = conn.SetDeadline(time.Unix(1, 0)) } // ends whatever waits for the connection
	if socket, ok := conn.(syscall.Conn); ok && canReadNow {
		c.raw, _ = socket.SyscallConn() // without it the connection is written to and read as any other
		c.step = c.takeStep
	}
	return c
}

// errUnasked is about an idle connection on which the upstream said something, or that it closed. Whatever it said would be taken
// for the response to the next request, which is somebody else's.
var errUnasked = errors.New("the upstream spoke before it was asked, or closed the connection")

var errLongHead = errors.New("the head of the response is too long")

// ErrBadStatus is about a response whose status no server may send on.
var ErrBadStatus = errors.New("the status of the response is below 100")

var errSwitched = errors.New("the upstream switched protocols without being asked")

// Read is what the buffer reads through.
func (c *ClientConn) Read(p []byte) (int, error) {
	if c.isInHead {
		if c.room <= 0 {
			return 0, errLongHead
		}
		p = p[:min(int64(len(p)), c.room)]
	}
	n, err := c.receive(p)
	if err != nil && c.release == nil && IsTimeout(err) {
		if err := c.watch(); err != nil {
			return 0, err
		}
		n, err = c.receive(p)
	}
	c.isLate = err != nil && IsTimeout(err)
	c.room -= int64(n)
	return n, err
}

// receive reads from the upstream, which is asked first if it has not been.
func (c *ClientConn) receive(p []byte) (int, error) {
	switch {
	case len(c.request) == 0:
		return c.Conn.Read(p)
	case c.raw == nil:
		return c.exchangeSlowly(p)
	}
	return c.exchange(p)
}

// exchangeSlowly sends what is left of the request, and then reads. The connection is taken at its word that nobody has said
// anything on it yet.
func (c *ClientConn) exchangeSlowly(p []byte) (int, error) {
	_, err := c.Conn.Write(c.request)
	c.request = nil
	if err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

// exchange sends the request and waits for the response, in one go: whatever the system is asked on the way, the lock and the
// deadline of the connection are looked at once.
func (c *ClientConn) exchange(p []byte) (int, error) {
	c.into, c.read, c.failed = p, 0, nil
	err := c.raw.Read(c.step)
	c.into = nil
	switch {
	case err != nil:
		return 0, err
	case c.failed != nil:
		return 0, c.failed
	case len(c.request) > 0: // the system had no room for all of it
		return c.exchangeSlowly(p)
	case c.read == 0:
		return 0, io.EOF
	}
	return c.read, nil
}

// takeStep does what can be done without waiting, and reports whether the exchange is over.
func (c *ClientConn) takeStep(fd uintptr) bool {
	if len(c.request) > 0 && !c.sendNow(fd) {
		return true
	}
	var wait bool
	c.read, wait, c.failed = readNow(fd, c.into)
	return !wait
}

// sendNow sends the request if the upstream is silent, and reports whether all of it was sent.
func (c *ClientConn) sendNow(fd uintptr) bool {
	var b [1]byte
	if _, wait, _ := readNow(fd, b[:]); !wait {
		c.failed = errUnasked
		return false
	}
	n, _, err := writeNow(fd, c.request)
	c.request, c.failed = c.request[n:], err
	return err == nil && len(c.request) == 0
}

// watch lets the end of the request end the waiting, and sets the deadline that the upstream really has.
func (c *ClientConn) watch() error {
	c.unwatch = func() {}
	if c.watcher != nil {
		c.ctx, c.unwatch = c.watcher.Watch(c.ctx)
	}
	c.release = context.AfterFunc(c.ctx, c.abort)
	c.armed = time.Time{}
	until := time.Time{}
	if c.isInHead {
		until = c.sent.Add(c.client.Timeout)
	}
	return c.setDeadline(until)
}

// setDeadline looks at the request last: an abort before that has been undone.
func (c *ClientConn) setDeadline(until time.Time) error {
	if err := c.SetReadDeadline(until); err != nil {
		return err
	}
	return c.ctx.Err()
}

// send sends a request, and waits until its response begins.
func (c *ClientConn) send(ctx context.Context, request []byte, client Watcher) error {
	c.ctx, c.watcher, c.sent = ctx, client, time.Now()
	c.isInHead, c.room = true, c.client.MaxHead
	// Writing needs no deadline of its own: a request without a body fits into the buffers of the system.
	if c.armed.Before(c.sent.Add(c.glance / 2)) {
		c.armed = c.sent.Add(c.glance)
		if err := c.SetReadDeadline(c.armed); err != nil {
			return err
		}
	}
	c.request = request
	_, err := c.in.Peek(1)
	return noEOF(err)
}

// Cause is why a request failed: the client went away, if it did.
func (c *ClientConn) Cause(err error) error {
	if gone := c.ctx.Err(); gone != nil {
		return gone
	}
	return err
}

// Short reads the response if it is a short one, and is whole. Otherwise it returns nil, and nothing was read. It is good until Done.
func (c *ClientConn) Short() *Response {
	here, _ := c.in.Peek(c.in.Buffered()) // that much is there
	n := c.short.Parse(here)
	if n == 0 {
		return nil
	}
	_, _ = c.in.Discard(n) // which leaves the bytes where they are
	return &c.short
}

// Response reads the head of any response by way of net/http, and tells hint what comes before it. All of that has one limit.
func (c *ClientConn) Response(r *http.Request, hint func(*http.Response)) (*http.Response, error) {
	for {
		resp, err := http.ReadResponse(c.in, r)
		switch {
		case err != nil && c.isLate:
			return nil, os.ErrDeadlineExceeded
		case err != nil:
			return nil, noEOF(err)
		case resp.StatusCode < http.StatusContinue:
			return nil, ErrBadStatus
		case resp.StatusCode == http.StatusSwitchingProtocols:
			return nil, errSwitched
		case resp.StatusCode >= http.StatusOK:
			return resp, c.headRead()
		}
		hint(resp)
	}
}

// HasMore reports whether more of a response has arrived than was read.
func (c *ClientConn) HasMore() bool { return c.in.Buffered() > 0 }

// headRead says that a body follows, which may take its time.
func (c *ClientConn) headRead() error {
	c.isInHead = false
	if c.release == nil {
		return nil
	}
	return c.setDeadline(time.Time{})
}

// Done gives the connection back. It is kept if it may be, nothing is left on it and nobody aborts it.
func (c *ClientConn) Done(keep bool) {
	if isIntact := c.letGo(); !isIntact || !keep || c.in.Buffered() > 0 {
		_ = c.Close()
		return
	}
	c.client.keep(c)
}

// letGo ends the interest in the request, and reports whether nobody aborts the connection.
func (c *ClientConn) letGo() bool {
	isIntact := true
	if c.release != nil {
		isIntact = c.release()
		c.unwatch()
	}
	c.ctx, c.watcher, c.release, c.unwatch, c.request = nil, nil, nil, nil, nil
	clear(c.short.Fields)
	return isIntact
}

// noEOF makes an end of the connection an error about the response.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
