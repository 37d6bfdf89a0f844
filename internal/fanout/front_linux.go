package fanout

import (
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/freshet-io/freshet/internal/plain"
)

// Front accepts connections for h in place of net/http and reads the request of those that have plainly come for a stream.
// Everything else, from a slow sender to HTTP/2, is left to the listener that it returns, which net/http must serve with
// the same handler. A stream's connection therefore never gets the buffers, the goroutine and the place in the runtime's
// poller that it would give back a moment later.
//
// It returns l itself where there are no event loops.
func (f *Fanout) Front(l net.Listener, h FrontHandler) net.Listener {
	tcp, ok := l.(*net.TCPListener)
	if !ok || len(f.loops.all) == 0 {
		return l
	}
	// Go's own listener lets nobody else wait for its socket, so the front has a descriptor of its own for it.
	socket, err := tcp.File()
	if err != nil {
		return l
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		_ = socket.Close()
		return l
	}
	_ = tcp.Close()
	_ = raw.Control(func(fd uintptr) {
		// A connection is not shown to us before its request arrives, or this much time has passed. Loops notice by themselves
		// who vanished. Failing, both cost speed only.
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_DEFER_ACCEPT, 1)
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 0)
	})
	fr := &front{
		socket: socket, addr: tcp.Addr(), fanout: f, handler: h,
		rest: make(chan net.Conn), done: make(chan struct{}), stopped: make(chan struct{}), arrivals: make(chan arrival),
	}
	go fr.run(raw)
	return fr
}

// run has desks accept connections until the listener is closed.
func (fr *front) run(raw syscall.RawConn) {
	var desks sync.WaitGroup
	for range runtime.GOMAXPROCS(0) + 1 {
		desks.Go(func() { newDesk(fr).accept(raw) })
	}
	desks.Wait()
	close(fr.arrivals)
	close(fr.stopped)
}

// front is a listener for what the fanout does not take itself.
type front struct {
	// Static after Front.
	socket  *os.File
	addr    net.Addr
	fanout  *Fanout
	handler FrontHandler
	rest    chan net.Conn
	done    chan struct{} // closed by Close

	stopped chan struct{} // closed when no desk accepts any more, and the port is free

	arrivals chan arrival // to goroutines that wait for one; closed when no desk accepts any more
	waiting  atomic.Int32 // those goroutines

	closing sync.Once
	err     error // why, if it was not Close; set before done is closed
}

// Accept returns the next connection that is not simply a stream's.
func (fr *front) Accept() (net.Conn, error) {
	select {
	case c := <-fr.rest:
		return c, nil
	case <-fr.done:
		if fr.err != nil {
			return nil, fr.err
		}
		return nil, net.ErrClosed
	}
}

// Addr implements net.Listener.
func (fr *front) Addr() net.Addr { return fr.addr }

// Close stops accepting. Requests being read are finished.
func (fr *front) Close() error {
	err := net.ErrClosed
	fr.closing.Do(func() {
		close(fr.done)
		err = fr.socket.Close()
	})
	<-fr.stopped // not earlier: a desk that is accepting has the port open
	return err
}

// fail ends the listener because of an error.
func (fr *front) fail(err error) {
	fr.closing.Do(func() {
		fr.err = err
		close(fr.done)
		_ = fr.socket.Close()
	})
}

// pause returns false if the listener is closed meanwhile.
func (fr *front) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-fr.done:
		return false
	}
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

// arrival is a connection that was accepted.
type arrival struct {
	fd     int
	peer   netip.AddrPort
	permit Permit
	text   string // what was read of it
}

// reset closes a connection without a word, and without leaving anything of it to the kernel.
func reset(fd int) {
	_ = unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	unix.Close(fd)
}

// hire gives an arrival to a goroutine that is done with its last one, or to a new one. A goroutine that has served a request
// has grown the stack that the next one needs.
func (fr *front) hire(a arrival) {
	select {
	case fr.arrivals <- a:
	default:
		go fr.work(a)
	}
}

// maxWaiting is how many goroutines wait for arrivals when there are none: enough for a steady stream of them.
const maxWaiting = 16

func (fr *front) work(a arrival) {
	for ok := true; ok; a, ok = fr.next() {
		fr.answer(a)
	}
}

// next waits for an arrival, unless enough others do or the listener is closed.
func (fr *front) next() (a arrival, ok bool) {
	if fr.waiting.Add(1) <= maxWaiting {
		a, ok = <-fr.arrivals
	}
	fr.waiting.Add(-1)
	return a, ok
}

// answer serves a connection's request if it is there and plain, and leaves it to net/http otherwise.
func (fr *front) answer(a arrival) {
	var head plain.Head
	if head.Read(a.text) && isUsual(&head) {
		r := head.Request()
		if r == nil { // net/http would not let the handler say what is wrong
			r = head.RawRequest()
		}
		if fr.handler.Streams(r) {
			r.RemoteAddr = a.peer.String()
			fr.serve(a, r)
			return
		}
	}
	fr.pass(a)
}

// isUsual reports whether a plain request is answered as it is. What is in doubt about its host is left to net/http, which refuses some.
func isUsual(h *plain.Head) bool { return plain.IsHost(h.Host) && !needsChunks(h) }

// serve runs the handler in the way of net/http.
func (fr *front) serve(from arrival, r *http.Request) {
	a := &answer{fd: from.fd, permit: from.permit, addresses: fr.fanout.addresses, header: make(http.Header)}
	defer a.finish()
	defer func() {
		if v := recover(); v != nil {
			fr.fanout.log.Error("subscription panicked", "panic", v, "stack", string(debug.Stack()))
		}
	}()
	fr.handler.ServeHTTP(a, r)
	a.complete = true
}

// pass gives a connection to net/http together with what was read of it.
func (fr *front) pass(a arrival) {
	file := os.NewFile(uintptr(a.fd), "")
	c, err := net.FileConn(file) // with a descriptor of its own
	_ = file.Close()
	tcp, ok := c.(*net.TCPConn)
	if err != nil || !ok {
		fr.fanout.log.Error("connection could not be passed on", "err", err)
		fr.fanout.addresses.release(a.permit)
		return
	}
	// Goroutines have no other way to notice a peer that vanished than the kernel's.
	if raw, err := tcp.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { boundVanishing(int(fd)) })
	}
	select {
	case fr.rest <- &replay{
		limitedConn: limitedConn{TCPConn: tcp, permitHolder: permitHolder{limit: fr.fanout.addresses, permit: a.permit}}, read: a.text,
	}:
	case <-fr.done:
		_ = tcp.Close()
		fr.fanout.addresses.release(a.permit)
	}
}

// replay is a connection some of whose bytes were read already.
type replay struct {
	limitedConn
	read string
}

func (r *replay) Read(p []byte) (int, error) {
	if len(r.read) > 0 {
		n := copy(p, r.read)
		r.read = r.read[n:]
		return n, nil
	}
	return r.TCPConn.Read(p)
}
