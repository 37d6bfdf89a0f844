package fanout

import (
	"runtime"
	"runtime/debug"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/freshet-io/freshet/internal/plain"
	"github.com/freshet-io/freshet/internal/wire"
)

// desk accepts connections and begins their streams on the spot, where the handler can: a connection then costs neither a goroutine
// nor a hand-over before a loop has it. Whatever is not plain or would take time goes to goroutines, together with what was read of
// it. A front has several desks, so that what holds up one, such as a topic whose document is just being compared, does not keep
// others from being accepted.
type desk struct {
	// Static after newDesk.
	front   *front
	handler DeskHandler // nil: nothing is begun here

	// Owned by accept.
	peer  unix.RawSockaddrAny
	crowd []arrival // accepted and not yet looked at
	buf   [maxHead]byte
	head  plain.Head
	begun [][]*conn // by loop, to be handed over together
}

// maxCrowd is how many connections a desk accepts before others have a turn.
const maxCrowd = 16

func newDesk(fr *front) *desk {
	d := &desk{front: fr, crowd: make([]arrival, 0, maxCrowd), begun: make([][]*conn, len(fr.fanout.loops.all))}
	d.handler, _ = fr.handler.(DeskHandler)
	return d
}

// accept takes connections as they come, until the listener is closed.
func (d *desk) accept(raw syscall.RawConn) {
	var pause time.Duration
	var failed syscall.Errno
	some := func(listener uintptr) bool {
		var any bool
		any, failed = d.acceptSome(int(listener))
		return any || failed != 0
	}
	for {
		err := raw.Read(some) // one desk at a time
		d.takeIn()
		switch {
		case err != nil:
			d.front.fail(err) // closed
			return
		case failed == 0:
			pause = 0
		case isShortage(failed):
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			d.front.fanout.log.Error("connections wait: the process is short of file descriptors or memory", "err", failed)
			if !d.front.pause(pause) {
				return
			}
		default:
			d.front.fail(failed)
			return
		}
	}
}

// acceptSome returns whether there were any.
func (d *desk) acceptSome(listener int) (any bool, err syscall.Errno) {
	for len(d.crowd) < maxCrowd {
		size := uint32(unsafe.Sizeof(d.peer))
		fd, _, errno := syscall.RawSyscall6(unix.SYS_ACCEPT4, uintptr(listener), uintptr(unsafe.Pointer(&d.peer)),
			uintptr(unsafe.Pointer(&size)), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0, 0)
		switch errno {
		case 0:
			any = true
			from := addressOf(&d.peer)
			if permit, ok := d.front.fanout.addresses.acquire(from.Addr()); ok {
				d.crowd = append(d.crowd, arrival{fd: int(fd), peer: from, permit: permit})
			} else {
				reset(int(fd))
			}
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

// takeIn serves those who were accepted, or finds somebody who will.
func (d *desk) takeIn() {
	for _, a := range d.crowd {
		if d.receive(&a) && !d.begin(&a) {
			d.front.hire(a)
		}
	}
	full := len(d.crowd) == maxCrowd
	clear(d.crowd)
	d.crowd = d.crowd[:0]
	for i, conns := range d.begun {
		if len(conns) > 0 {
			d.front.fanout.loops.all[i].arrive(conns...)
			clear(conns)
			d.begun[i] = conns[:0]
		}
	}
	if full {
		runtime.Gosched() // there are more, and streams want to be served meanwhile
	}
}

// receive reads what a connection has said so far. It returns false if it is gone.
func (d *desk) receive(a *arrival) bool {
	n, errno := wire.ReadNow(a.fd, d.buf[:])
	switch {
	case errno == unix.EAGAIN || errno == unix.EINTR:
		n = 0 // whoever answers it will wait
	case errno != 0 || n == 0: // gone before it said anything
		unix.Close(a.fd)
		d.front.fanout.addresses.release(a.permit)
		return false
	}
	a.text = string(d.buf[:n])
	return true
}

// begin begins the stream that a connection asks for, if that takes no time.
func (d *desk) begin(a *arrival) bool {
	if d.handler == nil || !d.head.Read(a.text) || !d.head.Clean || !isUsual(&d.head) {
		return false
	}
	s, ok := d.ask()
	if !ok {
		return false
	}
	f := d.front.fanout
	f.counters.open.Add(1)
	if c, l := f.begin(a.fd, a.permit, s); c != nil {
		d.begun[l.number] = append(d.begun[l.number], c)
	}
	return true
}

// ask asks the handler for a stream. A mistake in it must not end the desk.
func (d *desk) ask() (s Stream, ok bool) {
	defer func() {
		if v := recover(); v != nil {
			d.front.fanout.log.Error("subscription panicked", "panic", v, "stack", string(debug.Stack()))
			ok = false
		}
	}()
	return d.handler.BeginNow(&d.head)
}
