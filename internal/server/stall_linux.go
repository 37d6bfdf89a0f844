package server

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// boundStalls has the kernel give up on peers that take nothing of what they are sent. Sockets take after the listener that
// accepts them. A deadline for a whole answer would not do: streams pass through the gateway.
func boundStalls(stall time.Duration) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) {
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(stall.Milliseconds())) // without it, they stay longer
		})
	}
}
