package gateway

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/freshet-io/freshet/internal/httpkit"
)

// glance is how long a read waits for the upstream alone. Most answers are there by then; only for the others is it worth
// watching whether the client goes away, which takes as much as parsing the answer.
const glance = 100 * time.Millisecond

// straightConn is a connection to an upstream. It belongs to one request at a time.
type straightConn struct {
	net.Conn
	transport *straight
	address   string
	abort     func()
	raw       syscall.RawConn // nil if the connection has none
	probe     func(fd uintptr)
	silent    bool // what probe found
	in        *bufio.Reader
	out       *bufio.Writer
	glance    time.Duration
	armed     time.Time // the deadline that is set, if it is that of a glance

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
	c.in, c.out = bufio.NewReader(c), bufio.NewWriter(raw)
	c.abort = func() { _ = raw.SetDeadline(time.Unix(1, 0)) } // ends whatever waits for the connection
	if socket, ok := raw.(syscall.Conn); ok {
		c.raw, _ = socket.SyscallConn() // without it the connection cannot be asked, and is taken at its word
		c.probe = func(fd uintptr) { c.silent = nothingToRead(fd) }
	}
	return c
}

// isSilent reports whether the upstream has neither closed the idle connection nor said anything on it. Whatever it said
// without being asked would be taken for the answer to the next request, which is somebody else's.
func (c *straightConn) isSilent() bool {
	if c.raw == nil {
		return true
	}
	return c.raw.Control(c.probe) == nil && c.silent
}

var errLongHeader = errors.New("the header of the answer is too long")

// Read is what the buffer reads through.
func (c *straightConn) Read(p []byte) (int, error) {
	if c.inHeader {
		if c.room <= 0 {
			return 0, errLongHeader
		}
		p = p[:min(int64(len(p)), c.room)]
	}
	n, err := c.Conn.Read(p)
	if err != nil && c.release == nil && isTimeout(err) {
		if err := c.watch(); err != nil {
			return 0, err
		}
		n, err = c.Conn.Read(p)
	}
	c.late = err != nil && isTimeout(err)
	c.room -= int64(n)
	return n, err
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
	if err := c.send(r, to); err != nil {
		return err
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

// lineBreaks may be in no value. None is, since each was checked when it was read; this is for what is put in later.
var lineBreaks = strings.NewReplacer("\r", " ", "\n", " ")

// send writes the request, with its header in no order: the library's way sorts it each time.
func (c *straightConn) send(r *http.Request, to *upstream) error {
	path, prefix := to.target(r.URL)
	c.writeStrings(r.Method, " ", to.path, path)
	if r.URL.RawQuery != "" || r.URL.ForceQuery {
		c.writeStrings("?", r.URL.RawQuery)
	}
	host := to.host
	if to.preserveHost && r.Host != "" { // HTTP/1.0 may have none
		host = r.Host
	}
	c.writeStrings(" HTTP/1.1\r\nHost: ", host, "\r\n")
	for name, values := range r.Header {
		if !isHopByHop(name) && !isForwarding(name) {
			c.writeHeader(name, values)
		}
	}
	told := forwarding(r, prefix)
	for i := range told {
		if told[i] != "" {
			c.writeHeader(forwardingNames[i], told[i:i+1])
		}
	}
	c.writeHeader("Forwarded", forwarded(r))
	c.writeHeader(hopHeader, nextHop(r))
	c.writeStrings("\r\n")
	return c.out.Flush() // says also what failed before
}

func (c *straightConn) writeHeader(name string, values []string) {
	for _, v := range values {
		if strings.ContainsAny(v, "\r\n") {
			v = lineBreaks.Replace(v)
		}
		c.writeStrings(name, ": ", v, "\r\n")
	}
}

func (c *straightConn) writeStrings(all ...string) {
	for _, s := range all {
		_, _ = c.out.WriteString(s) // errors stay until Flush
	}
}

// noEOF makes an end of the connection an error about the answer.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
