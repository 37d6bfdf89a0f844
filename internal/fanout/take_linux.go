package fanout

import (
	"net"
	"net/http"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/freshet-io/freshet/internal/wire"
)

// Listen has h asked for every connection of l, and returns a listener for net/http with those that it does not take. A connection that is
// taken never gets the buffers, the goroutine and the place in the runtime's poller that it would give back a moment later. Without event
// loops nobody is asked.
func (f *Fanout) Listen(l net.Listener, h wire.BareHandler) net.Listener {
	if len(f.loops.all) == 0 {
		return wire.Guard(f.addresses.Listen(l))
	}
	a := &wire.Acceptor{
		Handler: h, Limit: f.addresses, Log: f.log,
		Accepting: dropVanishTimeout, // loops notice by themselves who vanished
		Passing:   setVanishTimeout,
	}
	return a.Listen(l)
}

// Take has an event loop serve a stream on a connection that has no net.Conn, from now on and until the client goes away, the group ends, or
// the Fanout drains. The group learns of the end in any case, exactly once. It does not block.
func (f *Fanout) Take(c *wire.BareConn, s Stream) {
	f.counters.open.Add(1)
	fd, permit := c.Detach()
	f.begin(fd, permit, s)
}

// adopt hands an HTTP/1.1 connection of net/http to an event loop.
func (f *Fanout) adopt(w http.ResponseWriter, r *http.Request, s Stream) bool {
	if len(f.loops.all) == 0 || r.ProtoMajor != 1 || r.TLS != nil || NeedsChunks(r.Header) {
		return false
	}
	fd, permit, hijacked := f.hijack(w, r)
	switch {
	case !hijacked:
		return false
	case fd < 0:
		f.left(s.Group)
	default:
		f.begin(fd, permit, s)
	}
	return true
}

// begin writes the beginning of the response and gives the connection to a loop, unless it is broken already.
func (f *Fanout) begin(fd int, permit wire.Permit, s Stream) {
	l := f.loops.all[f.loops.next.Add(1)%uint32(len(f.loops.all))]
	c := &conn{members: &s.Group.members[l.number], cursor: s.First.Next, fd: int32(fd), permit: permit}
	if !f.greet(c, s) {
		l.discard(c)
		return
	}
	l.arrive(c)
}

// hijack takes the connection from net/http: its descriptor is duplicated and Go's own connection closed, so that its
// goroutine, buffers and place in the runtime's poller are free again. A negative descriptor means that it is lost.
func (f *Fanout) hijack(w http.ResponseWriter, r *http.Request) (fd int, permit wire.Permit, ok bool) {
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
		permit = wire.TakePermit(nc) // it stays with the socket
	}
	nc.Close()
	if err != nil {
		f.log.Error("connection could not be taken over", "err", err)
		return -1, 0, true
	}
	tune(fd, f.loops.sendBuffer)
	return fd, permit, true
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
	dropVanishTimeout(fd)
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
			setVanishTimeout(fd)
		})
	}
}

// setVanishTimeout has the kernel notice a peer that vanished. Goroutines have no other way where they cannot look; see peer.
func setVanishTimeout(fd int) {
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(vanishTimeout.Milliseconds()))
}

func dropVanishTimeout(fd int) {
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 0)
}

// greet writes the beginning of the response. It runs in the goroutine that read the request, so that many who arrive at once do not hold
// up those who are being served. It returns false if the connection is broken.
func (f *Fanout) greet(c *conn, s Stream) bool {
	buf := greetings.Get().(*[]byte)
	defer greetings.Put(buf)
	head := append((*buf)[:0], "HTTP/1.1 200 OK\r\n"...)
	head = append(head, s.Header.lines...)
	head = append(head, "Connection: close\r\n"...)
	head = wire.AppendDate(head)
	head = append(head, "\r\n"...)
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

// greetings are buffers for beginnings of responses. What does not go out at once is copied.
var greetings = sync.Pool{New: func() any { b := make([]byte, 0, 8<<10); return &b }}

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
