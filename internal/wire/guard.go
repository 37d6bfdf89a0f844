package wire

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"
)

// Guard returns l with connections that answer 400 to requests that end in one place or another, depending on who reads
// them, and close behind that. net/http accepts some of them, and a proxy in front of us may have read them otherwise. The http.Server must have
// GuardState as its ConnState. Connections that are no Socket stay as they are; those that are encrypted above the listener need Secure.
func Guard(l net.Listener) net.Listener { return &guardListener{l} }

type guardListener struct{ net.Listener }

// Accept implements net.Listener.
func (l *guardListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil || !canGuard(conn) {
		return conn, err
	}
	return GuardConn(conn, nil, true), nil
}

// Socket is what net/http, and those who ask the kernel about clients, make use of in a TCP connection.
type Socket interface {
	writeCloser
	syscall.Conn
	io.ReaderFrom
}

// writeCloser is a connection that can say that it has said everything.
type writeCloser interface {
	net.Conn
	CloseWrite() error
}

// canGuard reports whether a connection speaks HTTP/1 that can be looked into.
func canGuard(conn net.Conn) bool {
	if encrypted, ok := conn.(*tls.Conn); ok {
		return encrypted.ConnectionState().NegotiatedProtocol != "h2"
	}
	_, ok := conn.(Socket)
	return ok
}

// GuardConn guards one connection that canGuard. unread is what was read of it already; isNew says that no request of it was answered yet.
func GuardConn(conn net.Conn, unread []byte, isNew bool) net.Conn {
	r := requests{unread: unread, canBeHTTP2: isNew}
	if encrypted, ok := conn.(*tls.Conn); ok {
		r.canBeHTTP2 = false
		return &guardedTLS{Conn: encrypted, requests: r}
	}
	return &guardedSocket{Socket: conn.(Socket), requests: r} //nolint:forcetypeassert // it can be guarded
}

// guardedSocket is a connection without TLS.
type guardedSocket struct {
	Socket
	requests requests
}

// NetConn is what it reads from.
func (c *guardedSocket) NetConn() net.Conn { return c.Socket }

// Read implements net.Conn.
func (c *guardedSocket) Read(p []byte) (int, error) { return c.requests.read(c.Socket, p) }

func (c *guardedSocket) hijacked() { c.requests.at = atNothing }

// guardedTLS is a connection with TLS that speaks HTTP/1.
type guardedTLS struct {
	*tls.Conn
	requests requests
}

// Read implements net.Conn.
func (c *guardedTLS) Read(p []byte) (int, error) { return c.requests.read(c.Conn, p) }

func (c *guardedTLS) hijacked() { c.requests.at = atNothing }

// GuardState tells a connection what net/http does with it. It is for http.Server.
func GuardState(conn net.Conn, state http.ConnState) {
	if c, ok := conn.(interface{ hijacked() }); ok && state == http.StateHijacked {
		c.hijacked() // net/http has ended its reads
	}
}

// requests follows the requests of a connection as they are read. What is read ends where a request ends, so net/http has answered
// one before anything but the first byte of the next is looked at. One goroutine reads at a time.
type requests struct {
	canBeHTTP2 bool   // at the beginning
	unread     []byte // what was read, but not passed on

	at       place  // of what is read next
	line     []byte // what was read of one, unless it was read at once
	left     int64  // of a body or chunk
	head     head
	hasBegun bool  // there was a request
	over     error // why nothing more is passed on
}

// place is where in a request something is.
type place int

const (
	atHead place = iota // or at an empty line before it
	atBody              // of a known length
	atChunkSize
	atChunk
	atChunkEnd
	atTrailer
	atNothing // to look at: this is no HTTP/1 any more
)

// read reads from a connection for net/http.
func (r *requests) read(conn writeCloser, p []byte) (int, error) {
	if r.over != nil {
		return 0, r.over
	}
	n, err := r.fill(conn, p)
	if r.at == atNothing {
		return n, err
	}
	taken, refusal := r.follow(p[:n])
	if taken < n {
		r.unread = append(bytes.Clone(p[taken:n]), r.unread...)
		err = nil // it comes again, behind that
	}
	switch {
	case refusal != "":
		refuse(conn, refusal)
		// net/http says nothing to a connection that cannot be read, but complains about heads that end.
		r.over = &net.OpError{Op: "read", Net: "tcp", Err: io.EOF}
		return 0, r.over
	case taken == 0 && r.over != nil:
		return 0, r.over
	case r.over != nil:
		err = nil
	}
	return taken, err
}

// fill reads what is there, without empty lines before a request (RFC 9112, 2.2). net/http may ask for a single byte, to see whether the client is still there,
// and stop waiting for it; so the second half of such a line is waited for, and the first half is not lost.
func (r *requests) fill(conn net.Conn, p []byte) (int, error) {
	n, err := r.take(conn, p)
	for n > 0 && err == nil && r.isBetween() && p[0] == '\r' {
		if n == 1 {
			second := make([]byte, 1)
			if m, err := r.take(conn, second); m == 0 {
				r.unread = append(r.unread, '\r')
				return 0, err
			}
			r.unread = append(second, r.unread...)
			if second[0] != '\n' {
				return n, nil
			}
			r.unread, n = r.unread[1:], 0
		} else if p[1] != '\n' {
			return n, nil
		} else {
			n = copy(p, p[2:n])
		}
		if n == 0 {
			n, err = r.take(conn, p)
		}
	}
	return n, err
}

// take reads from what was read before, and then from the connection.
func (r *requests) take(conn net.Conn, p []byte) (int, error) {
	if len(r.unread) == 0 {
		return conn.Read(p)
	}
	n := copy(p, r.unread)
	if r.unread = r.unread[n:]; len(r.unread) == 0 {
		r.unread = nil
	}
	return n, nil
}

// isBetween reports whether nothing of the next request was read.
func (r *requests) isBetween() bool {
	return r.at == atHead && len(r.line) == 0 && r.head.lines == 0
}

// follow returns how much of what was read can be passed on, or why the request must be refused. It stops behind a request, and where
// r.over says that nothing more can be passed on.
func (r *requests) follow(p []byte) (taken int, refusal string) {
	for taken < len(p) && r.over == nil && refusal == "" {
		var n int
		n, refusal = r.step(p[taken:])
		if taken += n; r.isBetween() {
			break
		}
	}
	return taken, refusal
}

// step takes a line, or a part of what is none, from the beginning of what was read.
func (r *requests) step(p []byte) (taken int, refusal string) {
	switch {
	case r.at == atNothing:
		return len(p), ""
	case r.at == atBody || r.at == atChunk:
		return r.skip(p), ""
	case r.isBetween() && (p[0] == '\r' || p[0] == '\n'):
		return 1, "" // net/http knows whether it minds
	}
	end := bytes.IndexByte(p, '\n') + 1
	if end == 0 {
		r.keep(p)
		return len(p), ""
	}
	line := p[:end]
	if len(r.line) > 0 {
		r.keep(line)
		line, r.line = r.line, r.line[:0]
	}
	line, hasCR := bytes.CutSuffix(line, emptyLine)
	switch {
	case r.at == atHead && !hasCR:
		return 0, "The lines of a request end in CR and LF, not in LF alone"
	case r.at == atHead:
		return end, r.takeHead(line)
	case r.at == atTrailer && !hasCR: // which net/http accepts
		r.over = io.EOF
		return end - 1, ""
	case r.at == atTrailer && len(line) == 0:
		r.begin()
	case r.at != atTrailer:
		r.takeChunk(line, hasCR)
	}
	return end, ""
}

// skip takes what belongs to a body or chunk.
func (r *requests) skip(p []byte) int {
	n := min(int64(len(p)), r.left)
	r.left -= n
	switch {
	case r.left > 0:
	case r.at == atBody:
		r.begin()
	default:
		r.at = atChunkEnd
	}
	return int(n)
}

// begin expects the next request.
func (r *requests) begin() {
	r.at, r.line, r.head, r.hasBegun = atHead, r.line[:0], head{}, true
}

func (r *requests) keep(part []byte) {
	if r.line = append(r.line, part...); len(r.line) > maxGuardLine {
		r.over = io.EOF
	}
}

// takeChunk takes the line before a chunk, or behind it. What is malformed is passed on, since net/http says so better, but nothing
// behind it.
func (r *requests) takeChunk(line []byte, hasCR bool) {
	if r.at == atChunkEnd {
		r.at = atChunkSize
		if len(line) > 0 || !hasCR {
			r.over = io.EOF
		}
		return
	}
	digits, _, _ := bytes.Cut(bytes.TrimRight(line, " \t"), []byte(";"))
	size, err := strconv.ParseUint(string(digits), 16, 62)
	if r.left = int64(size); err != nil || !hasCR { //nolint:gosec // of 62 bits
		r.over = io.EOF
	}
	r.at = atChunk
	if size == 0 {
		r.at = atTrailer
	}
}

// takeHead takes a line of a head, and at its end says where the body ends, or why the request must be refused.
func (r *requests) takeHead(line []byte) (refusal string) {
	if len(line) > 0 {
		r.head.take(line)
		return ""
	}
	h := r.head
	switch {
	case h.isHTTP2 && h.lines == 1:
		if r.at = atNothing; r.hasBegun || !r.canBeHTTP2 {
			return "HTTP/2 begins with the connection"
		}
	case h.hasLength && h.hasCoding:
		return "A request has either Content-Length or Transfer-Encoding, not both"
	case h.hasCoding && h.isHTTP10:
		return "A request of HTTP/1.0 has no Transfer-Encoding"
	case h.isFolded:
		return "Content-Length and Transfer-Encoding have one line each"
	case h.isMalformed:
		r.begin()
		r.over = io.EOF // net/http refuses it
	case h.hasCoding:
		r.at = atChunkSize
	case h.length > 0:
		r.at, r.left = atBody, h.length
	default:
		r.begin()
	}
	return ""
}

// head is what the lines of a head say about the framing.
type head struct {
	lines                int
	isHTTP10, isHTTP2    bool
	hasLength, hasCoding bool
	length               int64
	isFraming            bool // the last line is about the framing
	isFolded             bool // one about the framing goes on in the next
	isMalformed          bool // net/http accepts nothing like this
}

func (h *head) take(line []byte) {
	if h.lines++; h.lines == 1 {
		h.isHTTP10 = bytes.HasSuffix(line, []byte("HTTP/1.0"))
		h.isHTTP2 = string(line) == "PRI * HTTP/2.0"
		return
	}
	if line[0] == ' ' || line[0] == '\t' {
		h.isFolded = h.isFolded || h.isFraming
		return
	}
	name, value, _ := bytes.Cut(line, []byte(":"))
	name, value = bytes.TrimSpace(name), bytes.Trim(value, " \t")
	h.isFraming = true
	switch {
	case bytes.EqualFold(name, []byte("Content-Length")):
		n, err := strconv.ParseUint(string(value), 10, 63)
		length := int64(n) //nolint:gosec // of 63 bits
		h.isMalformed = h.isMalformed || err != nil || h.hasLength && length != h.length
		h.hasLength, h.length = true, length
	case bytes.EqualFold(name, []byte("Transfer-Encoding")):
		h.isMalformed = h.isMalformed || h.hasCoding || !bytes.EqualFold(value, []byte("chunked"))
		h.hasCoding = true
	default:
		h.isFraming = false
	}
}

// What is still read of a connection behind a refusal, and for how long: closing on a client that sends may cost it the answer.
const (
	lingerBytes = 256 << 10
	lingerTime  = 500 * time.Millisecond
)

// refuse answers a request before net/http sees it.
func refuse(conn writeCloser, message string) {
	text, _ := json.Marshal(struct {
		Message string `json:"message"`
	}{message}) // a string can be encoded
	_ = conn.SetDeadline(time.Now().Add(lingerTime))
	_, err := fmt.Fprintf(conn, "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nCache-Control: no-store\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		len(text), text)
	if err == nil && conn.CloseWrite() == nil {
		_, _ = io.CopyN(io.Discard, conn, lingerBytes)
	}
}
