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
