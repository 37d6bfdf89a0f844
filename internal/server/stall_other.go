//go:build !linux

package server

import (
	"syscall"
	"time"
)

// boundStalls leaves it to the system how long it bears with peers that take nothing.
func boundStalls(time.Duration) func(network, address string, c syscall.RawConn) error { return nil }
