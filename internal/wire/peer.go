package wire

import (
	"syscall"
	"time"
)

// Peer is what the other side's end of a connection is like.
type Peer int

// What there is.
const (
	PeerOpen    Peer = iota // or nobody can tell
	PeerThrough             // closed, right after it said something
	PeerClosed
)

// throughWithin is how soon after its last word a client closes its end that has nothing more to say. Few give up so soon.
const throughWithin = 200 * time.Millisecond

// PeerOf asks the kernel about the other side of a connection.
func PeerOf(socket syscall.RawConn) Peer {
	p := PeerOpen
	if err := socket.Control(func(fd uintptr) { p = peerOf(fd) }); err != nil {
		return PeerClosed // by ourselves
	}
	return p
}
