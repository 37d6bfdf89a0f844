package fanout

import (
	"fmt"
	"net"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

func (l *loop) id(c *conn) string {
	return fmt.Sprintf("%s-%d-%d-%d", l.f.node, l.number, c.fd, c.serial)
}

// loopConns asks no kernel: a loop with a hundred thousand streams must not stand still for long.
func (f *Fanout) loopConns(match func(*Group) bool) []Conn {
	var all []Conn
	for _, l := range f.loops.all {
		l.do(func() {
			known := make(map[*Group]bool)
			for c := range l.table.all() {
				g := c.members.group
				wanted, asked := known[g]
				if !asked {
					wanted = match(g)
					known[g] = wanted
				}
				if wanted {
					all = append(all, Conn{
						ID: l.id(c), Group: g, Since: time.Unix(int64(c.since), 0), Cursor: c.cursor, Behind: c.stall != nil, Loop: true,
					})
				}
			}
		})
	}
	return all
}

// describeSome is how many sockets the kernel is asked about before the loop goes on with its work.
const describeSome = 64

func (f *Fanout) describeLoops(conns []Conn) {
	for len(conns) > 0 {
		some := conns[:min(len(conns), describeSome)]
		conns = conns[len(some):]
		for _, l := range f.loops.all {
			l.do(func() {
				for i := range some {
					if c := l.find(some[i].ID); c != nil {
						l.describe(c, &some[i])
					}
				}
			})
		}
	}
}

// find returns the stream with the identifier. A descriptor that was used again has another serial.
func (l *loop) find(id string) *conn {
	var number, fd int
	var serial uint32
	if n, _ := fmt.Sscanf(id, l.f.node+"-%d-%d-%d", &number, &fd, &serial); n != 3 || number != l.number {
		return nil
	}
	if c := l.table.find(fd, serial); c != nil && l.id(c) == id {
		return c
	}
	return nil
}

func (l *loop) describe(c *conn, out *Conn) {
	if sa, err := unix.Getpeername(int(c.fd)); err == nil {
		switch sa := sa.(type) {
		case *unix.SockaddrInet4:
			out.Remote = net.JoinHostPort(net.IP(sa.Addr[:]).String(), strconv.Itoa(sa.Port))
		case *unix.SockaddrInet6:
			out.Remote = net.JoinHostPort(net.IP(sa.Addr[:]).String(), strconv.Itoa(sa.Port))
		}
	}
	if info, ok := l.peerInfo(c); ok {
		out.Bytes = info.Bytes_sent - info.Bytes_retrans
	}
}

func (f *Fanout) cutLoop(id string, final []byte) (found bool) {
	for _, l := range f.loops.all {
		l.do(func() {
			c := l.find(id)
			switch {
			case c == nil:
				return
			case c.stall != nil:
				l.abort(c) // it cannot be told anything before it took what it was sent
			default:
				l.finish(c, final)
			}
			found = true
		})
	}
	return found
}
