//go:build unix

package gateway

import (
	"errors"
	"syscall"
)

// nothingToRead asks the socket, which never blocks. A byte that is there is lost: the connection is of no more use then.
func nothingToRead(fd uintptr) bool {
	var b [1]byte
	for {
		_, err := syscall.Read(int(fd), b[:])
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		return errors.Is(err, syscall.EAGAIN)
	}
}
