//go:build unix

package gateway

import (
	"errors"
	"io"
	"os"
	"syscall"
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
	if errors.Is(err, syscall.EAGAIN) {
		return false
	}
	c.read, c.failed = n, os.NewSyscallError("read", err)
	return true
}

// sendNow sends the request if the upstream is silent, and reports whether all of it was sent.
func (c *straightConn) sendNow(fd int) bool {
	var b [1]byte
	if _, err := readNow(fd, b[:]); !errors.Is(err, syscall.EAGAIN) {
		c.failed = errUnasked
		return false
	}
	n, err := syscall.Write(fd, c.request)
	if n > 0 {
		c.request = c.request[n:]
	}
	if err != nil && !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EINTR) {
		c.failed = os.NewSyscallError("write", err)
	}
	return err == nil && len(c.request) == 0
}

func readNow(fd int, p []byte) (int, error) {
	for {
		n, err := syscall.Read(fd, p)
		if !errors.Is(err, syscall.EINTR) {
			return max(n, 0), err
		}
	}
}
