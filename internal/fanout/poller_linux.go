package fanout

import (
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// poller is the set of sockets that the kernel watches for a loop. It owns the epoll descriptor and a goroutine that waits for it.
//
// The goroutine and the loop alternate: once the goroutine has said ready, it does nothing until the loop has called take.
type poller struct {
	// Static after newPoller.
	file   *os.File        // the epoll descriptor, registered with the runtime's own poller
	raw    syscall.RawConn // of file
	fd     int             // of file; valid until close
	ready  chan struct{}   // holds one: there are events
	taken  chan struct{}   // holds one: the loop has taken them
	closed chan struct{}

	events [256]unix.EpollEvent // Owned by the loop.
}

func newPoller() (*poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("event loop: %w", err)
	}
	p := &poller{fd: fd, ready: make(chan struct{}, 1), taken: make(chan struct{}, 1), closed: make(chan struct{})}
	if err := p.open(); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("event loop: %w", err)
	}
	go p.wait()
	return p, nil
}

func (p *poller) open() (err error) {
	if err := unix.SetNonblock(p.fd, true); err != nil { // which makes os.NewFile register it with the runtime
		return err
	}
	p.file = os.NewFile(uintptr(p.fd), "epoll")
	p.raw, err = p.file.SyscallConn()
	return err
}

// The events that the kernel reports about a socket, each time that they become true. Room is of interest only once there was none:
// every new socket has room, and hearing that of each of them would cost as much as taking it in.
const (
	wantInput = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET
	wantRoom  = unix.EPOLLOUT
)

// add begins to watch a socket for input and for its end. Closing the socket ends that.
func (p *poller) add(fd int32) syscall.Errno { return p.control(unix.EPOLL_CTL_ADD, fd, wantInput) }

// addRoom watches a socket for room to write, too. If it has room already, the kernel reports so at once.
func (p *poller) addRoom(fd int32) syscall.Errno {
	return p.control(unix.EPOLL_CTL_MOD, fd, wantInput|wantRoom)
}

// control never sleeps, so the scheduler need not hear of it.
func (p *poller) control(op int, fd int32, events uint32) syscall.Errno {
	event := unix.EpollEvent{Events: events, Fd: fd}
	_, _, err := syscall.RawSyscall6(unix.SYS_EPOLL_CTL, uintptr(p.fd), uintptr(op), uintptr(fd), uintptr(unsafe.Pointer(&event)), 0, 0)
	return err
}

// take hands every event that there is to handle. Call it after ready, and only then.
func (p *poller) take(handle func(fd int32, events uint32)) error {
	defer func() { p.taken <- struct{}{} }()
	for {
		n, err := unix.EpollWait(p.fd, p.events[:], 0)
		if err != nil && err != unix.EINTR {
			return err
		}
		for i := range max(n, 0) {
			handle(p.events[i].Fd, p.events[i].Events)
		}
		if n < len(p.events) && err == nil {
			return nil
		}
	}
}

// wait waits for events in a goroutine of its own, through the runtime's poller. A blocking epoll_wait would keep a processor from
// everybody else until the runtime's monitor takes it away, 10 ms later.
func (p *poller) wait() {
	defer p.file.Close()
	for {
		// The descriptor is asked before it is waited for: an event from before Read was called does not wake it.
		if err := p.raw.Read(func(fd uintptr) bool { return isReadable(int(fd)) || p.isClosed() }); err != nil || p.isClosed() {
			return
		}
		p.ready <- struct{}{}
		select {
		case <-p.taken:
		case <-p.closed:
			return
		}
	}
}

// close ends the goroutine, which closes the descriptor. The loop must not use the poller afterwards.
func (p *poller) close() {
	close(p.closed)
	_ = p.file.SetReadDeadline(time.Now()) // wakes the goroutine
}

func (p *poller) isClosed() bool {
	select {
	case <-p.closed:
		return true
	default:
		return false
	}
}

func isReadable(fd int) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return n > 0 || err != nil && err != unix.EINTR
}
