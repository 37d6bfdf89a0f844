package wire

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ReadNow reads what is there, at most len(p) bytes. 0 bytes mean that the other side will send no more.
func ReadNow(fd int, p []byte) (int, syscall.Errno) {
	return transfer(unix.SYS_RECVFROM, fd, p, unix.MSG_DONTWAIT)
}

// WriteNow writes what there is room for, perhaps less than p. A connection that is broken is an error and no signal.
func WriteNow(fd int, p []byte) (int, syscall.Errno) {
	return transfer(unix.SYS_SENDTO, fd, p, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
}

func transfer(call uintptr, fd int, p []byte, flags uintptr) (int, syscall.Errno) {
	n, _, err := syscall.RawSyscall6(call, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), flags, 0, 0)
	runtime.KeepAlive(p)
	if err != 0 {
		return 0, err
	}
	return int(n), 0
}
