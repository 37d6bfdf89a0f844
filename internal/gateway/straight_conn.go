package gateway

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/freshet-io/freshet/internal/httpkit"
)

// glance is how long a read waits for the upstream alone. Most answers are there by then; only for the others is it worth
// watching whether the client goes away, which takes as much as parsing the answer.
const glance = 100 * time.Millisecond

// maxKept is how large a request may be for a connection to keep the room for the next one.
const maxKept = 8 << 10

// straightConn is a connection to an upstream. It belongs to one request at a time.
type straightConn struct {
	net.Conn
	transport *straight
	address   string
	abort     func()
	raw       syscall.RawConn // nil if the connection has none
	in        *bufio.Reader
	glance    time.Duration
	armed     time.Time // the deadline that is set, if it is that of a glance

	// Of the exchange.
	step    func(fd uintptr) bool // takeStep
	buffer  []byte                // where requests are written
	request []byte                // what has not been sent yet
	into    []byte                // where the answer goes
	read    int                   // how much of it there is
	failed  error

	// Of the request.
	ctx      context.Context //nolint:containedctx // it belongs to the request, as the connection does meanwhile
	client   *httpkit.Client
	release  func() bool // ends the interest in ctx; nil while there is none
	unwatch  func()      // ends the one in the client
	begun    time.Time   // when it was asked last
	late     bool        // whether the upstream did not answer in time; the library takes half a line for a bad one
	room     int64       // how much more of a header may come; bodies are not limited
	inHeader bool
}

func newStraightConn(t *straight, address string, raw net.Conn) *straightConn {
	c := &straightConn{Conn: raw, transport: t, address: address, glance: min(glance, t.timeout/2)}
	c.in = bufio.NewReader(c)
	c.abort = func() { _ = raw.SetDeadline(time.Unix(1, 0)) } // ends whatever waits for the connection
	if socket, ok := raw.(syscall.Conn); ok {
		c.raw, _ = socket.SyscallConn() // without it the connection is written to and read as any other
		c.step = c.takeStep
	}
	return c
}

// errUnasked is about an idle connection on which the upstream said something, or that it closed. Whatever it said would be taken
// for the answer to the next request, which is somebody else's.
var errUnasked = errors.New("the upstream spoke before it was asked, or closed the connection")

var errLongHeader = errors.New("the header of the answer is too long")

// Read is what the buffer reads through.
func (c *straightConn) Read(p []byte) (int, error) {
	if c.inHeader {
		if c.room <= 0 {
			return 0, errLongHeader
		}
		p = p[:min(int64(len(p)), c.room)]
	}
	n, err := c.receive(p)
	if err != nil && c.release == nil && isTimeout(err) {
		if err := c.watch(); err != nil {
			return 0, err
		}
		n, err = c.receive(p)
	}
	c.late = err != nil && isTimeout(err)
	c.room -= int64(n)
	return n, err
}

// receive reads from the upstream, which is asked first if it has not been.
func (c *straightConn) receive(p []byte) (int, error) {
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
func (c *straightConn) exchangeSlowly(p []byte) (int, error) {
	_, err := c.Conn.Write(c.request)
	c.request = nil
	if err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

// watch lets the end of the request end the waiting, and sets the deadline that the upstream really has.
func (c *straightConn) watch() error {
	c.ctx, c.unwatch = c.client.Watch(c.ctx)
	c.release = context.AfterFunc(c.ctx, c.abort)
	c.armed = time.Time{}
	until := time.Time{}
	if c.inHeader {
		until = c.begun.Add(c.transport.timeout)
	}
	return c.setDeadline(until)
}

// setDeadline looks at the request last: an abort before that has been undone.
func (c *straightConn) setDeadline(until time.Time) error {
	if err := c.SetReadDeadline(until); err != nil {
		return err
	}
	return c.ctx.Err()
}

// ask sends a request, and waits until its answer begins.
func (c *straightConn) ask(r *http.Request, to *upstream) error {
	c.ctx, c.begun = r.Context(), time.Now()
	c.inHeader, c.room = true, maxResponseHeader
	// Writing needs no deadline of its own: a request without a body fits into the buffers of the system.
	if c.armed.Before(c.begun.Add(c.glance / 2)) {
		c.armed = c.begun.Add(c.glance)
		if err := c.SetReadDeadline(c.armed); err != nil {
			return err
		}
	}
	c.request = appendRequest(c.buffer[:0], r, to)
	if cap(c.request) <= maxKept {
		c.buffer = c.request
	}
	_, err := c.in.Peek(1)
	return noEOF(err)
}

// cause is why a request failed: the client's going away, if it did.
func (c *straightConn) cause(err error) error {
	if gone := c.ctx.Err(); gone != nil {
		return gone
	}
	return err
}

// headerRead says that a body follows, which may take its time.
func (c *straightConn) headerRead() error {
	c.inHeader = false
	if c.release == nil {
		return nil
	}
	return c.setDeadline(time.Time{})
}

// done gives the connection back if it may be kept, nothing is left on it and nobody aborts it.
func (c *straightConn) done(keep bool) {
	if intact := c.letGo(); !intact || !keep || c.in.Buffered() > 0 {
		_ = c.Close()
		return
	}
	c.transport.put(c)
}

// letGo ends the interest in the request, and reports whether nobody aborts the connection.
func (c *straightConn) letGo() bool {
	if c.release == nil {
		c.ctx, c.client = nil, nil
		return true
	}
	intact := c.release()
	c.unwatch()
	c.ctx, c.client, c.release, c.unwatch = nil, nil, nil, nil
	return intact
}

// noEOF makes an end of the connection an error about the answer.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
