//go:build unix

package httpkit

import (
	"os"
	"syscall"

	"github.com/freshet-io/freshet/internal/wire"
)

const canPeek = true

// peek looks at a socket without taking anything from it: has the other side closed it, or is there nothing to be seen yet?
func peek(fd uintptr) (gone, wait bool) {
	var b [1]byte
	for {
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		switch err {
		case nil:
			return n == 0, false
		case syscall.EINTR:
		case syscall.EAGAIN:
			return false, true
		default:
			return true, false
		}
	}
}

// readNow reads what is there. If there is nothing yet, the reader has to wait.
func readNow(fd uintptr, p []byte) (n int, wait bool, err error) {
	return try("read", wire.ReadNow, fd, p)
}

// writeNow writes what there is room for. If there is none, the writer has to wait.
func writeNow(fd uintptr, p []byte) (n int, wait bool, err error) {
	return try("write", wire.WriteNow, fd, p)
}

func try(name string, call func(int, []byte) (int, syscall.Errno), fd uintptr, p []byte) (n int, wait bool, err error) {
	for {
		n, err := call(int(fd), p)
		switch err {
		case 0:
			return n, false, nil
		case syscall.EINTR:
		case syscall.EAGAIN:
			return 0, true, nil
		default:
			return 0, false, os.NewSyscallError(name, err)
		}
	}
}
