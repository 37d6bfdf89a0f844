//go:build unix

package server

import "golang.org/x/sys/unix"

// maxOpenFiles is the limit in force. Go has already raised it to what the system permits.
func maxOpenFiles() (uint64, bool) {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return 0, false
	}
	return uint64(l.Cur), true //nolint:unconvert // signed on FreeBSD
}

// makeRoomForFiles has the kernel make its table of open files large enough for so many at once. Linux doubles it whenever it is
// full, and a process with threads then waits several milliseconds, with everybody who wants to open a file: five times while ten
// thousand subscribers arrive. Failing, that is the cost.
func makeRoomForFiles(n uint64) {
	if fd, err := unix.FcntlInt(uintptr(unix.Stderr), unix.F_DUPFD_CLOEXEC, int(n)-1); err == nil {
		_ = unix.Close(fd)
	}
}
