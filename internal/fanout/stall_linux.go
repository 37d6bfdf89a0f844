package fanout

import (
	"time"

	"golang.org/x/sys/unix"
)

// stall is what is known about a subscriber whose socket is full.
type stall struct {
	rest  []byte    // what was begun and must be finished first; shared with others, never changed
	until time.Time // when it is cut unless it takes bytes
	fixed bool      // until does not move any more
	final bool      // rest is the last it gets
	index int       // in stalls

	looked time.Time // when the kernel was last asked about the reader
	acked  uint64    // bytes the reader's machine had taken by then
}

// hurry limits the time that a stream which must end may still take to finish what it was sent.
func (s *stall) hurry(now time.Time) {
	if !s.fixed {
		s.fixed = true
		s.until = now.Add(endTimeout)
	}
}

// extend gives a reader that took something as much time again, unless it must end.
func (s *stall) extend(now time.Time, timeout time.Duration) {
	if !s.fixed {
		s.until = now.Add(timeout)
	}
}

// stalls are the connections whose sockets are full. A connection is among them exactly as long as it has a stall.
type stalls []*conn

func (s *stalls) add(c *conn, rest []byte, until time.Time) {
	c.stall = &stall{rest: rest, until: until, index: len(*s)}
	*s = append(*s, c)
}

func (s *stalls) remove(c *conn) {
	all := *s
	last := len(all) - 1
	all[c.stall.index] = all[last]
	all[c.stall.index].stall.index = c.stall.index
	all[last] = nil
	*s = all[:last]
	c.stall = nil
}

// addStall notes that a socket is full. If it has room again by now, the kernel says so at once.
func (l *loop) addStall(c *conn, rest []byte) {
	if err := l.poller.addRoom(c.fd); err != 0 {
		l.f.log.Error("the event loop cannot wait for a full socket", "err", err) // the write timeout ends it
	}
	l.stalls.add(c, rest, l.now.Add(l.f.writeTimeout))
}

// resume goes on where a full socket stopped.
func (l *loop) resume(c *conn) {
	s := c.stall
	if len(s.rest) > 0 {
		n, ok := l.write(c, s.rest)
		if !ok {
			return
		}
		l.meter.account(c.members, 0, n, 0) // what it would have been was counted when it was begun
		s.rest = s.rest[n:]
		if n > 0 {
			s.extend(l.now, l.f.writeTimeout)
		}
		if len(s.rest) > 0 {
			return
		}
	}
	if s.final {
		l.drop(c)
		return
	}
	l.stalls.remove(c)
	if _, ended := c.members.group.isEnded(); s.fixed && !ended { // it was told to leave
		l.finish(c, farewell(c.members.group.compressed))
		return
	}
	l.update(c)
}

// cutStalled closes subscribers that took nothing for too long.
func (l *loop) cutStalled() {
	for i := len(l.stalls) - 1; i >= 0; i-- {
		c := l.stalls[i]
		if l.lookAfter(c); c.members == nil {
			continue // vanished; the last one took its place, and was looked at
		}
		if l.now.After(c.stall.until) {
			if !c.stall.fixed {
				l.f.counters.timeout.Add(1)
			}
			l.abort(c)
		}
	}
}

// lookAfter sees whether the reader of a full socket takes anything. The socket itself says so only when a third of its
// buffer is free, which a slow reader may need minutes for.
func (l *loop) lookAfter(c *conn) {
	s := c.stall
	if l.now.Sub(s.looked) < l.f.writeTimeout/lookEvery {
		return
	}
	s.looked = l.now
	info, ok := l.peerInfo(c)
	switch {
	case !ok:
	case hasVanished(info):
		l.abort(c)
	case info.Bytes_acked != s.acked:
		s.acked = info.Bytes_acked
		s.extend(l.now, l.f.writeTimeout)
	}
}

// abort drops a subscriber that takes nothing. An ordinary close would leave what it was sent with the kernel, which would go on
// offering it for minutes.
func (l *loop) abort(c *conn) {
	_ = unix.SetsockoptLinger(int(c.fd), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	l.drop(c)
}
