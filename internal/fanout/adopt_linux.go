package fanout

import (
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/freshet-io/freshet/internal/wire"
)

// adopt hands a plain HTTP/1.1 connection to an event loop.
func (f *Fanout) adopt(w http.ResponseWriter, r *http.Request, s Stream) bool {
	if len(f.loops.all) == 0 || r.ProtoMajor != 1 || r.TLS != nil || needsChunks(r.Header) {
		return false
	}
	var fd int
	var permit Permit
	if a, ok := w.(*answer); ok {
		fd, permit = a.take(), a.permit
	} else {
		var hijacked bool
		if fd, permit, hijacked = f.hijack(w, r); !hijacked {
			return false
		}
	}
	if fd < 0 {
		f.left(s.Group)
		return true
	}
	if c, l := f.begin(fd, permit, s); c != nil {
		l.arrive(c)
	}
	return true
}

// begin chooses a loop for a connection and writes the beginning of the answer. The connection is nil if it is broken already.
func (f *Fanout) begin(fd int, permit Permit, s Stream) (*conn, *loop) {
	l := f.loops.all[f.loops.next.Add(1)%uint32(len(f.loops.all))]
	c := &conn{members: &s.Group.members[l.number], cursor: s.First.Next, fd: int32(fd), permit: permit}
	if !f.greet(c, s) {
		l.discard(c)
		return nil, nil
	}
	return c, l
}

// hijack takes the connection from net/http: its descriptor is duplicated and Go's own connection closed, so that its
// goroutine, buffers and place in the runtime's poller are free again. A negative descriptor means that it is lost.
func (f *Fanout) hijack(w http.ResponseWriter, r *http.Request) (fd int, permit Permit, ok bool) {
	// Asked before hijacking, because there is no way back from that.
	if local, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); local == nil {
		return -1, 0, false
	}
	nc, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return -1, 0, false
	}
	fd, err = takeOver(nc)
	if err == nil {
		permit = takePermit(nc) // it stays with the socket
	}
	nc.Close()
	if err != nil {
		f.log.Error("connection could not be taken over", "err", err)
		return -1, 0, true
	}
	tune(fd, f.loops.sendBuffer)
	return fd, permit, true
}

// takePermit takes the permit of a connection, or of the one below it.
func takePermit(nc net.Conn) Permit {
	for {
		switch c := nc.(type) {
		case interface{ takePermit() Permit }:
			return c.takePermit()
		case interface{ NetConn() net.Conn }:
			nc = c.NetConn()
		default:
			return 0
		}
	}
}

// needsChunks reports whether the answer must come in chunks. An event loop sends frames as they are and ends the answer by
// closing. Varnish, when the header of such an answer comes together with the first bytes of its body, keeps those back until
// more arrive: the first document would wait for the next heartbeat.
func needsChunks(fields interface{ Get(name string) string }) bool {
	return fields.Get("X-Varnish") != ""
}

// takeOver returns a descriptor of its own for the socket.
func takeOver(nc net.Conn) (fd int, err error) {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return -1, net.UnknownNetworkError(nc.LocalAddr().Network())
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return -1, err
	}
	if ctrlErr := raw.Control(func(old uintptr) { fd, err = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0) }); ctrlErr != nil {
		return -1, ctrlErr
	}
	return fd, err
}

// tune bounds what the kernel keeps for a socket that a loop owns. Who vanished the loop finds out by itself. Failures cost
// bounds, not the connection.
func tune(fd, sendBuffer int) {
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, sendBuffer)
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 0)
}

// boundListener tunes a listening socket; those it accepts take after it.
func boundListener(sendBuffer int) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(listener uintptr) {
			fd := int(listener)
			_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, sendBuffer)
			_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_MAXSEG, segment)
			// An event leaves at once, and not when the one before it was acknowledged.
			_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
			boundVanishing(fd)
		})
	}
}

// boundVanishing has the kernel notice a peer that vanished. Goroutines have no other way where they cannot look; see peer.
func boundVanishing(fd int) {
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(vanishTimeout.Milliseconds()))
}

// greet writes the beginning of the answer. It runs in the goroutine that read the request, so that a crowd that arrives at once does not hold
// up those who are being served. It returns false if the connection is broken.
func (f *Fanout) greet(c *conn, s Stream) bool {
	buf := greetings.Get().(*[]byte)
	defer greetings.Put(buf)
	head := append((*buf)[:0], "HTTP/1.1 200 OK\r\n"...)
	head = append(head, s.Header.lines...)
	head = append(head, "Connection: close\r\nDate: "...)
	head = appendDate(head)
	head = append(head, "\r\n\r\n"...)
	head = append(head, s.Prefix...)
	*buf = head
	n, err := sendParts(int(c.fd), head, s.First.Bytes)
	if err != 0 && err != unix.EAGAIN {
		return false
	}
	f.counters.bytes.Add(uint64(n))
	f.counters.events.Add(uint64(s.First.Events))
	if s.Group.Sent != nil {
		s.Group.Sent(Sent{Events: int64(s.First.Events), Bytes: int64(n), Full: int64(len(head) + s.First.full())})
	}
	if n < len(head)+len(s.First.Bytes) {
		c.stall = &stall{rest: remainder(head, s.First.Bytes, n)}
	}
	return true
}

// greetings are buffers for beginnings of answers. What does not go out at once is copied.
var greetings = sync.Pool{New: func() any { b := make([]byte, 0, 8<<10); return &b }}

// dateNow is the present second as HTTP writes it; making it anew for everybody in a crowd would cost more than all the rest of
// a header.
var dateNow atomic.Pointer[dateText]

type dateText struct {
	second int64
	text   string
}

func appendDate(b []byte) []byte {
	now := time.Now()
	d := dateNow.Load()
	if d == nil || d.second != now.Unix() {
		d = &dateText{now.Unix(), now.UTC().Format(http.TimeFormat)}
		dateNow.Store(d)
	}
	return append(b, d.text...)
}

// sendParts writes two pieces as far as the socket takes them.
func sendParts(fd int, head, body []byte) (int, syscall.Errno) {
	// Small beginnings go out in one piece; for long ones a second call costs less than copying.
	if len(body) > 0 && len(body) <= 4<<10 {
		return wire.WriteNow(fd, append(head, body...))
	}
	n, err := wire.WriteNow(fd, head)
	if err != 0 || n < len(head) || len(body) == 0 {
		return n, err
	}
	m, err := wire.WriteNow(fd, body)
	return n + m, err
}

// remainder is what is left of both pieces after n bytes. The second one is shared, so it is not copied unless it must be.
func remainder(head, body []byte, n int) []byte {
	if n >= len(head) {
		return body[n-len(head):]
	}
	return append(append([]byte(nil), head[n:]...), body...)
}
