package httpkit

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ended asks the kernel whether the other side has closed its end, whatever still waits to be read. It never sleeps, so the
// scheduler need not hear of it; see package nowait.
func ended(fd uintptr) bool {
	const established = 1 // TCP_ESTABLISHED of linux/tcp_states.h
	var state uint8       // the first field of TCP_INFO; no more of it is asked for
	size := uint32(unsafe.Sizeof(state))
	_, _, err := syscall.RawSyscall6(unix.SYS_GETSOCKOPT, fd, unix.IPPROTO_TCP, unix.TCP_INFO,
		uintptr(unsafe.Pointer(&state)), uintptr(unsafe.Pointer(&size)), 0)
	return err == 0 && state != established
}
