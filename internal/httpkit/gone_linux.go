package httpkit

import "golang.org/x/sys/unix"

// ended asks the kernel whether the other side has closed its end, whatever still waits to be read.
func ended(fd uintptr) bool {
	const established = 1 // TCP_ESTABLISHED of linux/tcp_states.h
	info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	return err == nil && info.State != established
}
