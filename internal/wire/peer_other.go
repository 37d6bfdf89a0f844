//go:build !linux

package wire

// peerOf cannot be told here.
func peerOf(uintptr) Peer { return PeerOpen }
