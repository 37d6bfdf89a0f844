package fanout

import (
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/freshet-io/freshet/internal/nowait"
)

// conn is one subscriber. There may be a hundred thousand of them, so it holds nothing that can be looked up.
type conn struct {
	members *members // nil once it is gone
	stall   *stall   // while the socket is full
	cursor  Cursor
	fd      int32
	index   int32  // in members.conns
	written uint32 // the tick of the last write
	since   uint32 // the second it came, for whoever asks
	serial  uint32 // tells it from others that had the descriptor
	ticket  Ticket // of Fanout.gate
}

// stall is what is known about a subscriber whose socket is full.
type stall struct {
	rest  []byte    // what was begun and must be finished first; shared with others, never changed
	until time.Time // when it is cut unless it takes bytes
	fixed bool      // until does not move any more
	index int       // in loop.stalled

	looked time.Time // when the kernel was last asked about the reader
	acked  uint64    // bytes the reader's machine had taken by then
	final  bool      // rest is the last it gets
}

// hurry limits the time that a stream which must end may still take to finish what it was sent.
func (s *stall) hurry(now time.Time) {
	if !s.fixed {
		s.fixed = true
		s.until = now.Add(endTimeout)
	}
}

// admit makes an arrival a member of its group.
func (l *loop) admit(c *conn) {
	fd := int(c.fd)
	for fd >= len(l.conns) {
		l.conns = append(l.conns, nil)
	}
	l.conns[fd] = c
	l.count++
	l.serial++
	c.since, c.serial = uint32(l.now.Unix()), l.serial
	l.wheel.add(c)
	c.members.add(c)
	if err := l.follow(c, unix.EPOLL_CTL_ADD, wantInput); err != 0 {
		l.f.log.Error("connection not accepted by the event loop", "err", err)
		c.stall = nil // in no book yet
		l.drop(c)
		return
	}
	if s := c.stall; s != nil {
		l.addStall(c, s.rest)
		if _, ended := c.members.group.isEnded(); ended { // before it came, so that no pass will tell it
			c.stall.hurry(l.now)
		}
		return
	}
	l.update(c)
}

// What the kernel tells of a socket, each time that it becomes true. Room is of interest only once there was none: every socket has
// room when it comes, and hearing that of each in a crowd would cost as much as taking it in.
const (
	wantInput = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET
	wantRoom  = unix.EPOLLOUT
)

// follow tells the kernel what to tell of a socket. It never sleeps, so the scheduler need not hear of it.
func (l *loop) follow(c *conn, op int, what uint32) syscall.Errno {
	event := unix.EpollEvent{Events: what, Fd: c.fd}
	_, _, err := syscall.RawSyscall6(unix.SYS_EPOLL_CTL, uintptr(l.fd), uintptr(op), uintptr(c.fd), uintptr(unsafe.Pointer(&event)), 0, 0)
	return err
}

// handle takes what the kernel has to say about a socket.
func (l *loop) handle(e *unix.EpollEvent) {
	c := l.conns[e.Fd]
	if c == nil {
		return // dropped earlier in the same batch
	}
	if e.Events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		l.drop(c)
		return
	}
	if e.Events&unix.EPOLLIN != 0 && !l.discardInput(c) {
		return
	}
	if e.Events&unix.EPOLLOUT != 0 && c.stall != nil {
		l.resume(c)
	}
}

// discardInput reads what a subscriber should not have sent. What is beyond the limit stays in the kernel, where it slows only
// its sender.
func (l *loop) discardInput(c *conn) bool {
	for range 4 {
		n, err := unix.Read(int(c.fd), l.scratch[:])
		switch {
		case err == unix.EAGAIN || err == unix.EINTR:
			return true
		case n <= 0:
			l.drop(c)
			return false
		}
	}
	return true
}

// update sends whatever the subscriber misses.
func (l *loop) update(c *conn) {
	if final, ended := c.members.group.isEnded(); ended {
		l.finish(c, final)
		return
	}
	for {
		batch := c.members.group.feed.Since(c.cursor)
		before := l.sent
		l.send(c, batch)
		if batch.Delivery != nil {
			batch.Delivery.Wrote(int64(l.sent.events-before.events), int64(l.sent.bytes-before.bytes))
		}
		if !batch.More || c.members == nil || c.stall != nil {
			return
		}
	}
}

// send writes a batch to a subscriber whose socket is not known to be full.
func (l *loop) send(c *conn, b Batch) {
	if len(b.Bytes) == 0 {
		c.cursor = b.Next
		return
	}
	n, ok := l.write(c, b.Bytes)
	switch {
	case !ok:
		return
	case n == 0:
		// Nothing of it went out, so when the socket takes bytes again the feed may know a shorter way.
		l.addStall(c, nil)
		return
	case n < len(b.Bytes):
		l.addStall(c, b.Bytes[n:])
	}
	c.cursor = b.Next
	l.sent.events += uint64(b.Events)
	l.account(c.members, b.Events, n, b.full())
}

// resume goes on where a full socket stopped.
func (l *loop) resume(c *conn) {
	s := c.stall
	if len(s.rest) > 0 {
		n, ok := l.write(c, s.rest)
		if !ok {
			return
		}
		l.account(c.members, 0, n, 0) // what it would have been was counted when it was begun
		s.rest = s.rest[n:]
		if n > 0 && !s.fixed {
			s.until = l.now.Add(l.f.writeTimeout)
		}
		if len(s.rest) > 0 {
			return
		}
	}
	if s.final {
		l.drop(c)
		return
	}
	l.removeStall(c)
	if _, ended := c.members.group.isEnded(); s.fixed && !ended { // it was its turn to leave
		l.finish(c, farewell(c.members.group.compressed))
		return
	}
	l.update(c)
}

// finish sends the last frame, which is no event that counts, and closes.
func (l *loop) finish(c *conn, final []byte) {
	n, ok := l.write(c, final)
	if !ok {
		return
	}
	l.account(c.members, 0, n, len(final))
	if n == len(final) {
		l.drop(c)
		return
	}
	l.addStall(c, final[n:])
	c.stall.final = true
	c.stall.hurry(l.now)
}

// write hands bytes to the kernel, as many as it takes. It drops the subscriber and returns false if the connection is broken.
func (l *loop) write(c *conn, b []byte) (n int, ok bool) {
	n, err := nowait.Write(int(c.fd), b)
	if err != 0 && err != unix.EAGAIN && err != unix.EINTR {
		l.drop(c)
		return 0, false
	}
	if n > 0 {
		c.written = l.wheel.tick
		l.sent.bytes += uint64(n)
	}
	return n, true
}

// addStall notes that a socket is full. If it has room again by now, the kernel says so at once.
func (l *loop) addStall(c *conn, rest []byte) {
	if err := l.follow(c, unix.EPOLL_CTL_MOD, wantInput|wantRoom); err != 0 {
		l.f.log.Error("the event loop cannot wait for a full socket", "err", err) // the write timeout ends it
	}
	c.stall = &stall{rest: rest, until: l.now.Add(l.f.writeTimeout), index: len(l.stalled)}
	l.stalled = append(l.stalled, c)
}

func (l *loop) removeStall(c *conn) {
	last := len(l.stalled) - 1
	l.stalled[c.stall.index] = l.stalled[last]
	l.stalled[c.stall.index].stall.index = c.stall.index
	l.stalled[last] = nil
	l.stalled = l.stalled[:last]
	c.stall = nil
}

// drop closes a subscriber's socket and forgets it.
func (l *loop) drop(c *conn) {
	if c.stall != nil {
		l.removeStall(c)
	}
	l.conns[c.fd] = nil
	l.count--
	m := c.members
	m.remove(c)
	l.discard(c)
}

// abort drops a subscriber that takes nothing. A plain close would leave what it was sent with the kernel, which would go on
// offering it for minutes.
func (l *loop) abort(c *conn) {
	_ = unix.SetsockoptLinger(int(c.fd), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	l.drop(c)
}

// discard closes a connection that is in none of the loop's books. Closing also takes it off epoll: no other descriptor
// refers to it.
func (l *loop) discard(c *conn) {
	unix.Close(int(c.fd))
	l.f.gate.leave(c.ticket)
	g := c.members.group
	c.members, c.fd = nil, -1
	l.f.left(g)
}
