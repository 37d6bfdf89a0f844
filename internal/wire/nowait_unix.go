//go:build unix && !linux

package wire

import (
	"errors"
	"syscall"
)

// ReadNow reads what is there, at most len(p) bytes. 0 bytes mean that the other side will send no more.
func ReadNow(fd int, p []byte) (int, syscall.Errno) { return outcome(syscall.Read(fd, p)) }

// WriteNow writes what there is room for, perhaps less than p.
func WriteNow(fd int, p []byte) (int, syscall.Errno) { return outcome(syscall.Write(fd, p)) }

// outcome of a call on a socket that does not block, as all those are that package net opens.
func outcome(n int, err error) (int, syscall.Errno) {
	if err == nil {
		return n, 0
	}
	code, ok := errors.AsType[syscall.Errno](err)
	if !ok {
		code = syscall.EIO
	}
	return 0, code
}
