package wire

import (
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// peerOf asks the kernel whether the other side has closed its end, whatever still waits to be read. It never sleeps, so the
// scheduler need not hear of it; see ReadNow.
func peerOf(fd uintptr) Peer {
	const established, closeWait = 1, 8 // TCP_ESTABLISHED and TCP_CLOSE_WAIT of linux/tcp_states.h
	var info unix.TCPInfo
	if err := tcpInfo(fd, &info, unsafe.Sizeof(info.State)); err != 0 || info.State == established { // no more of it is asked for at first
		return PeerOpen
	}
	if err := tcpInfo(fd, &info, unsafe.Sizeof(info)); err == 0 && info.State == closeWait && time.Duration(info.Last_data_recv)*time.Millisecond < throughWithin {
		return PeerThrough
	}
	return PeerClosed
}

func tcpInfo(fd uintptr, info *unix.TCPInfo, length uintptr) syscall.Errno {
	size := uint32(length)
	_, _, err := syscall.RawSyscall6(unix.SYS_GETSOCKOPT, fd, unix.IPPROTO_TCP, unix.TCP_INFO,
		uintptr(unsafe.Pointer(info)), uintptr(unsafe.Pointer(&size)), 0)
	return err
}
