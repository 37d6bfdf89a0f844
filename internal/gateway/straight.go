package gateway

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"time"
)

// straight carries plain requests to upstreams in the goroutine that asks for them: no bodies, no TLS, no upgrades, only
// methods that may be repeated. That is most of the traffic, and the general transport would hand each such request
// through two goroutines more, at twice the cost. It writes and parses with the standard library; everything else it
// leaves to the general transport.
type straight struct {
	// Static after newStraight.
	general *http.Transport
	timeout time.Duration // until the header of the response

	mu     sync.Mutex
	idle   map[string][]*straightConn // Guarded by mu. By address; the last one was used last.
	sweep  *time.Timer                // Guarded by mu. Runs while anything is idle.
	closed bool                       // Guarded by mu.
}

func newStraight(general *http.Transport) *straight {
	return &straight{general: general, timeout: general.ResponseHeaderTimeout, idle: map[string][]*straightConn{}}
}

// RoundTrip implements http.RoundTripper.
func (t *straight) RoundTrip(r *http.Request) (*http.Response, error) {
	if !isPlain(r) {
		return t.general.RoundTrip(r)
	}
	address := r.URL.Host
	if r.URL.Port() == "" {
		address = net.JoinHostPort(r.URL.Hostname(), "80")
	}
	for {
		c, reused, err := t.conn(r.Context(), address)
		if err != nil {
			return nil, err
		}
		resp, err := c.roundTrip(r)
		if err == nil {
			return resp, nil
		}
		_ = c.Close() // it is of no more use
		if r.Context().Err() != nil {
			return nil, r.Context().Err()
		}
		if !reused || c.answered || isTimeout(err) {
			return nil, err
		}
		// The upstream closed the connection while it was idle. Nothing was answered, and asking twice does no harm.
	}
}

// isPlain reports whether the request can go straight.
func isPlain(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
	default:
		return false
	}
	if r.URL.Scheme != "http" || r.Body != nil && r.Body != http.NoBody || r.ContentLength != 0 || len(r.TransferEncoding) > 0 {
		return false
	}
	if _, upgrade := r.Header["Upgrade"]; upgrade {
		return false
	}
	if _, expects := r.Header["Expect"]; expects {
		return false
	}
	return !strings.ContainsFunc(hostOf(r), func(c rune) bool { return c <= ' ' || c >= 0x7f })
}

func hostOf(r *http.Request) string {
	if r.Host != "" {
		return r.Host
	}
	return r.URL.Host
}

func isTimeout(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout()
}

// conn takes the connection that was used last, or makes one.
func (t *straight) conn(ctx context.Context, address string) (c *straightConn, reused bool, err error) {
	t.mu.Lock()
	if idle := t.idle[address]; len(idle) > 0 {
		c = idle[len(idle)-1]
		idle[len(idle)-1] = nil
		t.idle[address] = idle[:len(idle)-1]
	}
	t.mu.Unlock()
	if c != nil {
		return c, true, nil
	}
	raw, err := t.general.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, false, err
	}
	c = &straightConn{Conn: raw, transport: t, address: address}
	c.in, c.out = bufio.NewReader(c), bufio.NewWriter(raw)
	c.abort = func() { _ = raw.SetDeadline(time.Unix(1, 0)) } // ends whatever waits for the connection
	return c, false, nil
}

// put keeps a connection for the next request.
func (t *straight) put(c *straightConn) {
	c.since = time.Now()
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
		for stale < len(idle) && !idle[stale].since.After(long) {
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
	t.general.CloseIdleConnections()
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

// straightConn is a connection to an upstream. It belongs to one request at a time.
type straightConn struct {
	net.Conn
	transport *straight
	address   string
	abort     func()
	in        *bufio.Reader
	out       *bufio.Writer
	since     time.Time // idle since

	answered bool  // whether the upstream sent anything for this request
	room     int64 // how much more of a header may come; bodies are not limited
	inHeader bool
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
	if n > 0 {
		c.answered = true
	}
	c.room -= int64(n)
	return n, err
}

func (c *straightConn) roundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	release := context.AfterFunc(ctx, c.abort)
	c.answered, c.inHeader, c.room = false, true, maxResponseHeader
	resp, err := c.exchange(r)
	c.inHeader = false
	if err == nil {
		err = ctx.Err() // after the deadline was lifted: an abort before that would have been undone
	}
	if err != nil {
		release()
		return nil, err
	}
	b := &straightBody{ReadCloser: resp.Body, conn: c, release: release, keep: !resp.Close && !r.Close}
	if resp.Body == http.NoBody {
		b.finish(b.keep)
	} else {
		resp.Body = b
	}
	return resp, nil
}

// exchange sends the request and reads the header of the response.
func (c *straightConn) exchange(r *http.Request) (*http.Response, error) {
	// Writing needs no deadline of its own: a request without a body fits into the buffers of the system.
	if err := c.SetReadDeadline(time.Now().Add(c.transport.timeout)); err != nil {
		return nil, err
	}
	if err := c.send(r); err != nil {
		return nil, err
	}
	for {
		resp, err := http.ReadResponse(c.in, r)
		if err != nil {
			return nil, noEOF(err)
		}
		switch {
		case resp.StatusCode == http.StatusSwitchingProtocols:
			return nil, errors.New("the upstream switched protocols without being asked")
		case resp.StatusCode >= http.StatusOK:
			if resp.ContentLength >= 0 && resp.ContentLength <= int64(c.in.Buffered()) {
				return resp, nil // all of it is here; the next request sets another deadline
			}
			return resp, c.SetReadDeadline(time.Time{})
		}
		if trace := httptrace.ContextClientTrace(r.Context()); trace != nil && trace.Got1xxResponse != nil {
			if err := trace.Got1xxResponse(resp.StatusCode, map[string][]string(resp.Header)); err != nil {
				return nil, err
			}
		}
	}
}

// send writes the request. Its parts were checked when they were read; Header.Write leaves no line break in a value.
func (c *straightConn) send(r *http.Request) error {
	for _, s := range [...]string{r.Method, " ", r.URL.RequestURI(), " HTTP/1.1\r\nHost: ", hostOf(r), "\r\n"} {
		if _, err := c.out.WriteString(s); err != nil {
			return err
		}
	}
	if values, ok := r.Header["User-Agent"]; ok && len(values) == 1 && values[0] == "" {
		delete(r.Header, "User-Agent") // the proxy's way to say: none
	}
	if err := r.Header.Write(c.out); err != nil {
		return err
	}
	if _, err := c.out.WriteString("\r\n"); err != nil {
		return err
	}
	return c.out.Flush()
}

// noEOF makes an end of the connection an error about the answer.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// straightBody gives the connection back once the body was read to its end.
type straightBody struct {
	io.ReadCloser
	conn    *straightConn
	release func() bool // ends the interest in the request's context
	keep    bool
	done    bool
}

func (b *straightBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !b.done {
		b.finish(b.keep && errors.Is(err, io.EOF))
	}
	return n, err
}

func (b *straightBody) Close() error {
	if !b.done {
		b.finish(false)
	}
	return nil
}

// finish keeps the connection only if nothing is left on it and nobody aborts it.
func (b *straightBody) finish(keep bool) {
	b.done = true
	if !b.release() || !keep || b.conn.in.Buffered() > 0 {
		_ = b.conn.Close()
		return
	}
	b.conn.transport.put(b.conn)
}
