package fanout

import (
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// vanishTimeout is how long a peer that owes us an acknowledgement may be silent. Every subscriber is looked at once in a
// heartbeat's time, so with one every 10 s a peer that vanished is noticed within 30 s.
//
// TCP_USER_TIMEOUT would be simpler, but it also ends connections whose reader is alive and merely slow: Linux counts the
// time in which the window had no room for all that is next in line, however much of it goes through bit by bit.
const vanishTimeout = 20 * time.Second

// segment bounds what goes into one packet, where the path would allow more. On the loopback interface it allows 64 KiB, and
// a receiver does not open a closed window before it has room for a packet: one that reads 1 KB/s would seem dead for a minute.
const segment = 1440

// peerInfo asks the kernel about the other end. The result is good until the next call.
func (l *loop) peerInfo(c *conn) (*unix.TCPInfo, bool) {
	return &l.info, tcpInfo(uintptr(c.fd), &l.info)
}

func tcpInfo(fd uintptr, info *unix.TCPInfo) bool {
	size := uint32(unsafe.Sizeof(*info))
	_, _, err := syscall.RawSyscall6(unix.SYS_GETSOCKOPT, fd, unix.IPPROTO_TCP, unix.TCP_INFO,
		uintptr(unsafe.Pointer(info)), uintptr(unsafe.Pointer(&size)), 0)
	return err == 0
}

// hasVanished reports whether the peer left bytes or probes of ours unanswered for too long.
func hasVanished(info *unix.TCPInfo) bool {
	return (info.Unacked > 0 || info.Notsent_bytes > 0) && time.Duration(info.Last_ack_recv)*time.Millisecond >= vanishTimeout
}

// owes reports whether the peer has yet to acknowledge something. It is asked about every subscriber in every heartbeat's time,
// and costs a fifth of peerInfo.
func owes(fd int32) bool {
	var n int32
	_, _, err := syscall.RawSyscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCOUTQ, uintptr(unsafe.Pointer(&n)))
	return err != 0 || n > 0
}

// dropVanished returns whether the subscriber was dropped.
func (l *loop) dropVanished(c *conn) bool {
	if !owes(c.fd) {
		return false
	}
	if info, ok := l.peerInfo(c); ok && hasVanished(info) {
		l.abort(c)
		return true
	}
	return false
}

// A peer is the other end of a connection that a goroutine serves, and that only this stream uses. Whoever serves it must look, as
// loops do: the kernel no longer ends the connection of one that vanished.
type peer struct {
	socket syscall.RawConn
	acked  uint64 // bytes that it had taken when it was last looked at
}

// newPeer returns nil if the socket cannot be asked. Then the kernel ends connections, also those of slow readers.
func newPeer(socket syscall.RawConn) *peer {
	if socket == nil {
		return nil
	}
	var err error
	ctrlErr := socket.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 0) })
	if ctrlErr != nil || err != nil {
		return nil
	}
	return &peer{socket: socket}
}

// leave has the kernel look after the connection again, for as long as it still tries to get rid of what was written.
func (p *peer) leave() {
	_ = p.socket.Control(func(fd uintptr) { setVanishTimeout(int(fd)) }) // closed already
}

// look reports whether the peer took anything since the last time, and whether it vanished.
func (p *peer) look() (took, vanished bool) {
	var info unix.TCPInfo
	ok := false
	if err := p.socket.Control(func(fd uintptr) { ok = tcpInfo(fd, &info) }); err != nil || !ok {
		return false, false
	}
	took = info.Bytes_acked != p.acked
	p.acked = info.Bytes_acked
	return took, hasVanished(&info)
}
