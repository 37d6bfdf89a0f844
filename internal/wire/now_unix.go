//go:build unix

package wire

import (
	"os"
	"syscall"
)

// canReadNow says that sockets can be read and written in calls that never sleep.
const canReadNow = true

// readNow reads what is there. If there is nothing yet, the reader has to wait.
func readNow(fd uintptr, p []byte) (n int, wait bool, err error) { return try("read", ReadNow, fd, p) }

// writeNow writes what there is room for. If there is none, the writer has to wait.
func writeNow(fd uintptr, p []byte) (n int, wait bool, err error) {
	return try("write", WriteNow, fd, p)
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
