package httpkit

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"
)

// KeepHeads makes Framing able to see the heads of requests as they were sent. The HTTP library drops a length that stands
// beside chunks before any handler sees the request, and a proxy in front of us may have believed that one. The server
// must have HeadState as its ConnState and ConnContext as its ConnContext. Connections that are encrypted above the
// listener cannot be seen through.
func KeepHeads(l net.Listener) net.Listener { return &headListener{l} }

type headListener struct{ net.Listener }

func (l *headListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if s, ok := conn.(Socket); ok && err == nil {
		return &headConn{Socket: s, keeps: true}, nil
	}
	return conn, err
}

// Socket is what the HTTP library, and ClientGone, make use of in a TCP connection.
type Socket interface {
	net.Conn
	syscall.Conn
	io.ReaderFrom
	CloseWrite() error
}

// maxHead is more than the server accepts. Of anything longer the framing is unknown.
const maxHead = 32 << 10

// headConn keeps what it reads until a request has begun. Only the server's goroutine changes it, and not while another
// one reads in the background. HTTP/2 has its own goroutines for reading and for states, so from its preface on, which the server's
// goroutine reads, nothing is changed any more.
type headConn struct {
	Socket
	isHTTP2 bool
	keeps   bool   // whether what is read belongs to a head
	head    []byte // and perhaps the beginning of a body
}

// NetConn is what it reads from.
func (c *headConn) NetConn() net.Conn { return c.Socket }

var (
	http2Preface = []byte("PRI ")
	emptyLine    = []byte("\r\n")
)

// hasServed reports whether requests of the connection were answered before the library saw any.
func (c *headConn) hasServed() bool {
	d, ok := c.Socket.(*DeskConn)
	return ok && d.hasServed
}

// refusePreface answers the preface of HTTP/2 behind a request of HTTP/1, as the library does where it answered that. To the library this
// is the beginning of a connection.
func (c *headConn) refusePreface() error {
	c.keeps, c.isHTTP2, c.head = false, false, nil
	_, _ = io.WriteString(c.Socket, "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n400 Bad Request")
	return io.EOF
}

func (c *headConn) Read(p []byte) (int, error) {
	n, err := c.Socket.Read(p)
	for err == nil && c.keeps && len(c.head) == 0 && bytes.HasPrefix(p[:n], emptyLine) {
		if n = copy(p, p[len(emptyLine):n]); n == 0 { // RFC 9112, 2.2
			n, err = c.Socket.Read(p)
		}
	}
	if c.keeps && n > 0 {
		c.head = append(c.head, p[:n]...)
		c.isHTTP2 = bytes.HasPrefix(c.head, http2Preface)
		if c.isHTTP2 && c.hasServed() {
			return 0, c.refusePreface()
		}
		if len(c.head) > maxHead || c.isHTTP2 {
			c.keeps, c.head = false, nil
		}
	}
	return n, err
}

// HeadState tells a connection where a head begins and ends. It is for http.Server.
func HeadState(conn net.Conn, state http.ConnState) {
	c, ok := conn.(*headConn)
	if !ok {
		return
	}
	DeskState(c.Socket, state)
	if c.isHTTP2 {
		return
	}
	switch state {
	case http.StateActive:
		c.keeps = false
	case http.StateIdle:
		c.keeps, c.head = true, append(c.head[:0], behind(c.head)...)
	}
}

// behind returns what was read together with a request and belongs to the next one, as far as that is known.
func behind(head []byte) []byte {
	head = bytes.TrimLeft(head, "\r\n")
	end := bytes.Index(head, []byte("\r\n\r\n"))
	if end < 0 {
		return nil
	}
	head, rest := head[:end+2], head[end+4:]
	length, chunks := framingFields(head)
	switch {
	case chunks:
		return nil // the library knows
	case !length:
		return rest
	}
	for line := range bytes.Lines(head) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		if !bytes.EqualFold(bytes.TrimSpace(name), []byte("Content-Length")) {
			continue
		}
		if n, err := strconv.Atoi(string(bytes.TrimSpace(value))); err == nil && n >= 0 && n <= len(rest) {
			return rest[n:]
		}
		break
	}
	return nil
}

// Framed is what is known about how a request said where its body ends.
type Framed int

// What Framing finds.
const (
	FramedOnce    Framed = iota // in one way at most
	FramedTwice                 // in two ways; readers differ in which one they believe
	FramedUnknown               // by chunks at least; the head was not seen
	FramedLoosely               // in lines that not everybody takes for lines
)

// Framing reports how a request was framed. Only a request with chunks, or one of HTTP/1.0, where chunks mean nothing but are
// believed by some, can be framed twice without the library refusing it. Any request can have lines that end in LF alone, which
// the library accepts.
func Framing(r *http.Request) Framed {
	if r.ProtoMajor != 1 {
		return FramedOnce
	}
	head := bytes.TrimLeft(headOf(r.Context()), "\r\n")
	if hasLooseLines(head) {
		return FramedLoosely
	}
	chunked := len(r.TransferEncoding) > 0
	if !chunked && r.ProtoMinor > 0 {
		return FramedOnce
	}
	length, chunks := framingFields(head)
	switch {
	case chunks && (length || r.ProtoMinor == 0):
		return FramedTwice
	case chunked && !chunks: // sent together with the request before it, or encrypted
		return FramedUnknown
	}
	return FramedOnce
}

func headOf(ctx context.Context) []byte {
	if c, ok := ctx.Value(connKey{}).(*headConn); ok {
		return c.head
	}
	return nil
}

// hasLooseLines reports whether a line of a head ends in LF alone.
func hasLooseLines(head []byte) bool {
	for {
		end := bytes.IndexByte(head, '\n')
		switch {
		case end < 0 || end == 1 && head[0] == '\r':
			return false // what follows is the body
		case end == 0 || head[end-1] != '\r':
			return true
		}
		head = head[end+1:]
	}
}

// framingFields reports which of the two fields a head has.
func framingFields(head []byte) (length, chunks bool) {
	for line := range bytes.Lines(head) {
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			break
		}
		name, _, _ := bytes.Cut(line, []byte(":"))
		name = bytes.TrimSpace(name)
		length = length || bytes.EqualFold(name, []byte("Content-Length"))
		chunks = chunks || bytes.EqualFold(name, []byte("Transfer-Encoding"))
	}
	return length, chunks
}
