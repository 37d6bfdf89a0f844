package wire

import (
	"net"
	"net/netip"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Listen accepts the connections of l, which is closed, and returns a listener with those that the handler does not take. Where l is no TCP
// listener, that is all of them.
func (a *Acceptor) Listen(l net.Listener) net.Listener {
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return Guard(a.Limit.Listen(l))
	}
	// Go's own listener lets nobody else wait for its socket, so the Acceptor has a descriptor of its own for it.
	socket, err := tcp.File()
	if err != nil {
		return Guard(a.Limit.Listen(l))
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		_ = socket.Close()
		return Guard(a.Limit.Listen(l))
	}
	_ = tcp.Close()
	_ = raw.Control(func(fd uintptr) {
		// A connection is not shown to us before its request arrives, or this much time has passed. If it fails, that costs speed only.
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_DEFER_ACCEPT, 1)
		if a.Accepting != nil {
			a.Accepting(int(fd))
		}
	})
	b := &bareListener{
		Acceptor: a, socket: socket, addr: tcp.Addr(), passed: make(chan net.Conn), done: make(chan struct{}), stopped: make(chan struct{}),
	}
	go b.run(raw)
	return b
}

// bareListener is a listener for what the handler does not take.
type bareListener struct {
	*Acceptor
	socket  *os.File
	addr    net.Addr
	passed  chan net.Conn
	done    chan struct{} // closed by Close
	stopped chan struct{} // closed when nobody accepts any more, and the port is free

	closing sync.Once
	err     error // why, if it was not Close; set before done is closed
}

// run accepts connections until the listener is closed, in several goroutines: what holds up one does not keep others from being accepted.
func (b *bareListener) run(raw syscall.RawConn) {
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) + 1 {
		all.Go(func() { (&bareAcceptor{listener: b}).run(raw) })
	}
	all.Wait()
	close(b.stopped)
}

// Accept implements net.Listener.
func (b *bareListener) Accept() (net.Conn, error) {
	select {
	case c := <-b.passed:
		return c, nil
	case <-b.done:
		if b.err != nil {
			return nil, b.err
		}
		return nil, net.ErrClosed
	}
}

// Addr implements net.Listener.
func (b *bareListener) Addr() net.Addr { return b.addr }

// Close stops accepting. Connections that were accepted are still offered to the handler.
func (b *bareListener) Close() error {
	err := net.ErrClosed
	b.closing.Do(func() {
		close(b.done)
		err = b.socket.Close()
	})
	<-b.stopped // not earlier: whoever is accepting has the port open
	return err
}

// fail ends the listener because of an error.
func (b *bareListener) fail(err error) {
	b.closing.Do(func() {
		b.err = err
		close(b.done)
		_ = b.socket.Close()
	})
}

// pause returns false if the listener is closed meanwhile.
func (b *bareListener) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-b.done:
		return false
	}
}

// pass gives a connection to whoever accepts from the listener, together with what was read of it.
func (b *bareListener) pass(c *BareConn, unread []byte) {
	if b.Passing != nil {
		b.Passing(c.fd)
	}
	conn, err := c.netConn()
	if err != nil {
		b.Log.Error("connection could not be passed on", "err", err)
		return
	}
	select {
	case b.passed <- GuardConn(conn, unread, true):
	case <-b.done:
		_ = conn.Close()
	}
}

// bareAcceptor is one goroutine that accepts.
type bareAcceptor struct {
	listener *bareListener
	peer     unix.RawSockaddrAny
	accepted [maxAccepted]BareConn // the first count of them are not looked at yet
	count    int
	request  Request
	in       [MaxHead]byte
}

// maxAccepted is how many connections are accepted before others may accept.
const maxAccepted = 16

func (a *bareAcceptor) run(raw syscall.RawConn) {
	var pause time.Duration
	var failed syscall.Errno
	some := func(listener uintptr) bool {
		var any bool
		any, failed = a.acceptSome(int(listener))
		return any || failed != 0
	}
	for {
		err := raw.Read(some) // one goroutine at a time
		a.serveAll()
		switch {
		case err != nil:
			a.listener.fail(err) // closed
			return
		case failed == 0:
			pause = 0
		case isShortage(failed):
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			a.listener.Log.Error("connections wait: the process is short of file descriptors or memory", "err", failed)
			if !a.listener.pause(pause) {
				return
			}
		default:
			a.listener.fail(failed)
			return
		}
	}
}

// acceptSome returns whether there were any.
func (a *bareAcceptor) acceptSome(listener int) (any bool, err syscall.Errno) {
	for a.count < maxAccepted {
		size := uint32(unsafe.Sizeof(a.peer))
		fd, _, errno := syscall.RawSyscall6(unix.SYS_ACCEPT4, uintptr(listener), uintptr(unsafe.Pointer(&a.peer)),
			uintptr(unsafe.Pointer(&size)), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0, 0)
		switch errno {
		case 0:
			any = true
			a.admit(int(fd))
		case unix.EAGAIN:
			return any, 0
		case unix.EINTR, unix.ECONNABORTED, unix.EPROTO, unix.ENETDOWN, unix.EHOSTDOWN, unix.EHOSTUNREACH, unix.ENETUNREACH:
			any = true // errors of that one connection
		default:
			return any, errno
		}
	}
	return any, 0
}

// admit adds a connection to those that were accepted, if its address may have one more.
func (a *bareAcceptor) admit(fd int) {
	c := BareConn{Peer: addressOf(&a.peer), fd: fd, limit: a.listener.Limit}
	var ok bool
	if c.permit, ok = c.limit.Acquire(c.Peer.Addr()); !ok {
		c.reset()
		return
	}
	a.accepted[a.count] = c
	a.count++
}

func (a *bareAcceptor) serveAll() {
	for i := range a.count {
		a.serve(&a.accepted[i])
	}
	isFull := a.count == maxAccepted
	clear(a.accepted[:a.count])
	a.count = 0
	if isFull {
		runtime.Gosched() // there are more, and others want to be served meanwhile
	}
}

// serve offers a connection to the handler, and passes it on if that does not take it.
func (a *bareAcceptor) serve(c *BareConn) {
	n, errno := ReadNow(c.fd, a.in[:])
	switch {
	case errno == unix.EAGAIN || errno == unix.EINTR:
		n = 0 // whoever serves it will wait
	case errno != 0 || n == 0: // gone before it said anything
		c.Close()
		return
	}
	text := string(a.in[:n])
	if a.request.Parse(text) && a.request.Length == 0 {
		a.offer(c)
	}
	if c.fd >= 0 {
		go a.listener.pass(c.Move(), []byte(text))
	}
}

// offer asks the handler. A mistake in it must not end the goroutine.
func (a *bareAcceptor) offer(c *BareConn) {
	defer func() {
		if v := recover(); v != nil {
			a.listener.Log.Error("handler panicked", "panic", v, "stack", string(debug.Stack()))
		}
	}()
	a.listener.Handler.ServeBare(c, &a.request)
}

// isShortage reports errors that pass.
func isShortage(err syscall.Errno) bool {
	switch err {
	case unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM:
		return true
	}
	return false
}

// addressOf reads the peer's address.
func addressOf(sa *unix.RawSockaddrAny) netip.AddrPort {
	switch sa.Addr.Family {
	case unix.AF_INET:
		in := (*unix.RawSockaddrInet4)(unsafe.Pointer(sa))
		return netip.AddrPortFrom(netip.AddrFrom4(in.Addr), ntohs(in.Port))
	case unix.AF_INET6:
		in := (*unix.RawSockaddrInet6)(unsafe.Pointer(sa))
		return netip.AddrPortFrom(netip.AddrFrom16(in.Addr).Unmap(), ntohs(in.Port))
	}
	return netip.AddrPort{}
}

func ntohs(v uint16) uint16 {
	b := (*[2]byte)(unsafe.Pointer(&v))
	return uint16(b[0])<<8 | uint16(b[1])
}
