package fanout

import (
	"golang.org/x/sys/unix"

	"github.com/freshet-io/freshet/internal/wire"
)

// conn is one subscriber. There may be a hundred thousand of them, so it holds nothing that can be looked up, and its fields are in an
// order that leaves no gaps.
type conn struct {
	members *members // nil once it is gone
	stall   *stall   // while the socket is full
	cursor  Cursor
	fd      int32
	index   int32       // in members.conns
	written uint32      // the tick of the last write
	since   uint32      // the second it came, for whoever asks
	serial  uint32      // tells it from others that had the descriptor
	permit  wire.Permit // of Fanout.addresses
}

// admit makes an arrival a member of its group.
func (l *loop) admit(c *conn) {
	l.table.add(c, l.now)
	l.heartbeats.wrote(c)
	l.heartbeats.schedule(c)
	c.members.add(c)
	if err := l.poller.add(c.fd); err != 0 {
		l.f.log.Error("connection not accepted by the event loop", "err", err)
		c.stall = nil // not yet among the stalls
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

// handle takes what the kernel reports about a socket.
func (l *loop) handle(fd int32, events uint32) {
	c := l.table.byFD[fd]
	if c == nil {
		return // dropped earlier in the same batch
	}
	if events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		l.drop(c)
		return
	}
	if events&unix.EPOLLIN != 0 && !l.discardInput(c) {
		return
	}
	if events&unix.EPOLLOUT != 0 && c.stall != nil {
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
		before := l.meter.sent
		l.send(c, &batch)
		l.meter.sent.minus(before).tell(batch.Delivery)
		if !batch.More || c.members == nil || c.stall != nil {
			return
		}
	}
}

// send writes a batch to a subscriber whose socket is not known to be full.
func (l *loop) send(c *conn, b *Batch) {
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
	l.meter.sent.events += uint64(b.Events)
	l.meter.account(c.members, b.Events, n, b.full())
}

// finish sends the last frame, which is no event that counts, and closes.
func (l *loop) finish(c *conn, final []byte) {
	n, ok := l.write(c, final)
	if !ok {
		return
	}
	l.meter.account(c.members, 0, n, len(final))
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
	n, err := wire.WriteNow(int(c.fd), b)
	if err != 0 && err != unix.EAGAIN && err != unix.EINTR {
		l.drop(c)
		return 0, false
	}
	if n > 0 {
		l.heartbeats.wrote(c)
		l.meter.sent.bytes += uint64(n)
	}
	return n, true
}

// drop closes a subscriber's socket and forgets it.
func (l *loop) drop(c *conn) {
	if c.stall != nil {
		l.stalls.remove(c)
	}
	l.table.remove(c)
	c.members.remove(c)
	l.discard(c)
}

// discard closes a connection that the loop does not serve yet, or no more. Closing also takes it off epoll: no other descriptor
// refers to it.
func (l *loop) discard(c *conn) {
	unix.Close(int(c.fd))
	l.f.addresses.Release(c.permit)
	g := c.members.group
	c.members, c.fd = nil, -1
	l.f.left(g)
}

func (l *loop) discardAll(conns []*conn) {
	for _, c := range conns {
		l.discard(c)
	}
}
