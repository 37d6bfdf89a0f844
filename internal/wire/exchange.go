package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// Exchange is one request of a connection and the response to it. It belongs to the goroutine of the connection, and to its handler while that runs.
type Exchange struct {
	Request
	conn *conn

	headStart  int   // where the request begins
	start, end int   // what was read and not taken yet
	bodyLeft   int64 // of the body, with what was read of it

	isLastFunc func() bool // IsLast
	response   ResponseWriter
	isWriting  bool   // by way of response
	buffer     []byte // for a response that is made without it
	failed     error  // of such a response

	http   http.Request
	url    url.URL
	header http.Header
	in     [inputSize]byte
}

// exchanges are those that no connection has.
var exchanges = sync.Pool{New: func() any {
	x := &Exchange{header: http.Header{}}
	x.isLastFunc = x.IsLast
	return x
}}

func newExchange(c *conn) *Exchange {
	x := exchanges.Get().(*Exchange)
	x.conn, x.start, x.end = c, 0, 0
	return x
}

// unread is what was read and not taken yet.
func (x *Exchange) unread() []byte { return x.in[x.start:x.end] }

func (x *Exchange) isEmpty() bool { return x.start == x.end }

var (
	emptyLine = []byte("\r\n")
	headEnd   = []byte("\r\n\r\n")
)

// hasHead reports whether a whole head was read. It skips empty lines before it (RFC 9112, 2.2), and behind a POST, where some clients send them, also
// halves of one, as net/http does.
func (x *Exchange) hasHead() bool {
	for bytes.HasPrefix(x.unread(), emptyLine) {
		x.start += len(emptyLine)
	}
	for x.conn.isBehindPost && !x.isEmpty() && (x.in[x.start] == '\r' || x.in[x.start] == '\n') {
		x.start++
	}
	return bytes.Contains(x.unread(), headEnd)
}

// makeRoom makes room for the rest of a head, and reports whether it may still come.
func (x *Exchange) makeRoom() bool {
	x.end, x.start = copy(x.in[:], x.unread()), 0
	return x.end < MaxHead
}

// begin reads the head, and reports whether it is understood.
func (x *Exchange) begin() bool {
	x.headStart = x.start
	length := bytes.Index(x.unread(), headEnd) + len(headEnd)
	if !x.Parse(string(x.in[x.start : x.start+length])) {
		return false
	}
	x.start += length
	x.bodyLeft, x.isWriting, x.failed = x.Length, false, nil
	return true
}

// finish sends what is left of the response, and reports whether the next request may come.
func (x *Exchange) finish() bool {
	isReusable := x.failed == nil
	if x.isWriting {
		isReusable = x.response.Finish()
	}
	x.conn.wantRead(x.conn.wrote.Add(x.conn.server.IdleTimeout))
	return isReusable && !x.Request.IsLast && x.bodyLeft == 0
}

// abort ends a response that broke off. Nobody may take it for whole. On a connection that ends in any case, the client gets what there was of it.
func (x *Exchange) abort() {
	if x != nil && x.isWriting && x.response.status != 0 && x.IsLast() {
		x.response.Flush()
	}
}

// Context is that of the connection's requests. It does not end when the client goes away; see Watch.
func (x *Exchange) Context() context.Context { return x.conn.ctx }

// RemoteAddr is the address of the client.
func (x *Exchange) RemoteAddr() net.Addr { return x.conn.RemoteAddr() }

// IsLast reports whether the connection ends behind the response, which should say so.
func (x *Exchange) IsLast() bool {
	return x.Request.IsLast || x.bodyLeft > 0 || x.conn.server.isClosing.Load()
}

// HTTP returns the request for handlers of net/http, or nil if its target is no URL. It is good until the handler returns.
func (x *Exchange) HTTP() *http.Request {
	c := x.conn
	if c.template == nil {
		like := http.Request{RemoteAddr: c.RemoteAddr().String()}
		if encrypted, ok := c.Conn.(*tls.Conn); ok {
			state := encrypted.ConnectionState()
			like.TLS = &state
		}
		c.template = like.WithContext(c.ctx)
	}
	x.http = *c.template
	x.http.URL, x.http.Header = &x.url, x.header
	if !x.Fill(&x.http) {
		return nil
	}
	if x.bodyLeft > 0 {
		x.http.Body = body{x}
	}
	return &x.http
}

// Response returns the writer of the response.
func (x *Exchange) Response() *ResponseWriter {
	if !x.isWriting {
		x.isWriting = true
		x.response.Reset(x.conn, x.Method, x.isLastFunc)
		if usual := x.conn.server.Header; len(usual) > 0 {
			maps.Copy(x.response.Header(), usual)
		}
	}
	return &x.response
}

// Header is what a response should say that is made without the writer, unless it says otherwise.
func (x *Exchange) Header() http.Header { return x.conn.server.Header }

// Buffer returns an empty buffer for a response that is made without the writer.
func (x *Exchange) Buffer() []byte { return x.buffer[:0] }

// Reply sends a whole response that was made without the writer, in its Buffer. It should say Connection: close if IsLast does.
func (x *Exchange) Reply(response []byte) {
	x.buffer = kept(response)
	if _, err := x.conn.Write(response); err != nil {
		x.failed = err
	}
}

// ReadBody reads from the body.
func (x *Exchange) ReadBody(p []byte) (n int, err error) {
	if x.bodyLeft == 0 {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), x.bodyLeft)]
	if n = copy(p, x.unread()); n > 0 {
		x.start += n
	} else if n, err = x.conn.Read(p); errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	x.bodyLeft -= int64(n)
	return n, err
}

// ReadFull reads so much of the body as fits into p. The client has so long to send it.
func (x *Exchange) ReadFull(p []byte, timeout time.Duration) error {
	if len(p) > x.end-x.start { // otherwise it is here
		x.conn.wantRead(time.Now().Add(timeout))
	}
	_, err := io.ReadFull(body{x}, p)
	return err
}

// body is the body of a request for handlers of net/http.
type body struct{ x *Exchange }

func (b body) Read(p []byte) (int, error) { return b.x.ReadBody(p) }
func (body) Close() error                 { return nil }

// Watch implements Watcher. A client that closes its end has gone. One that sends its next request is there, and is watched no more.
func (x *Exchange) Watch(ctx context.Context) (watched context.Context, stop func()) {
	c := x.conn
	if x.bodyLeft > 0 || !x.isEmpty() || c.disarm() != nil {
		return ctx, func() {}
	}
	watched, cancel := context.WithCancel(ctx)
	looked := make(chan struct{})
	x.start, x.end = 0, 0
	go func() {
		defer close(looked)
		n, err := c.Conn.Read(x.in[:])
		x.end = n
		if n == 0 && !IsTimeout(err) {
			cancel()
		}
	}()
	return watched, func() {
		c.mu.Lock()
		_ = c.arm(time.Unix(1, 0)) // lets the read return; who reads next finds that it is not wanted
		c.mu.Unlock()
		<-looked
		cancel()
	}
}
