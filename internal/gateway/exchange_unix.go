//go:build unix

package gateway

import (
	"io"
	"os"
	"syscall"

	"github.com/freshet-io/freshet/internal/wire"
)

// exchange sends the request and waits for the answer, in one go: whatever the system is asked on the way, the lock and the
// deadline of the connection are looked at once.
func (c *straightConn) exchange(p []byte) (int, error) {
	c.into, c.read, c.failed = p, 0, nil
	err := c.raw.Read(c.step)
	c.into = nil
	switch {
	case err != nil:
		return 0, err
	case c.failed != nil:
		return 0, c.failed
	case len(c.request) > 0: // the system had no room for all of it
		return c.exchangeSlowly(p)
	case c.read == 0:
		return 0, io.EOF
	}
	return c.read, nil
}

// takeStep does what can be done without waiting, and reports whether the exchange is over.
func (c *straightConn) takeStep(fd uintptr) bool {
	if len(c.request) > 0 && !c.sendNow(int(fd)) {
		return true
	}
	n, err := readNow(int(fd), c.into)
	switch err {
	case 0:
		c.read = n
	case syscall.EAGAIN:
		return false
	default:
		c.failed = os.NewSyscallError("read", err)
	}
	return true
}

// sendNow sends the request if the upstream is silent, and reports whether all of it was sent.
func (c *straightConn) sendNow(fd int) bool {
	var b [1]byte
	if _, err := readNow(fd, b[:]); err != syscall.EAGAIN {
		c.failed = errUnasked
		return false
	}
	n, err := wire.WriteNow(fd, c.request)
	c.request = c.request[n:]
	if err != 0 && err != syscall.EAGAIN && err != syscall.EINTR {
		c.failed = os.NewSyscallError("write", err)
	}
	return err == 0 && len(c.request) == 0
}

func readNow(fd int, p []byte) (int, syscall.Errno) {
	for {
		if n, err := wire.ReadNow(fd, p); err != syscall.EINTR {
			return n, err
		}
	}
}
