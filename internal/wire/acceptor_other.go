//go:build !linux

package wire

import (
	"errors"
	"net"
)

// Listen returns a listener with the connections of l that the limit allows. Other systems have no bare ones.
func (a *Acceptor) Listen(l net.Listener) net.Listener { return Guard(a.Limit.Listen(l)) }

// Write implements io.Writer.
func (c *BareConn) Write([]byte) (int, error) { return 0, errors.ErrUnsupported }

// Close closes the connection unless it is somebody else's.
func (c *BareConn) Close() {}
