package wire

import (
	"log/slog"
	"net/netip"
)

// Acceptor accepts connections in front of net/http, or of a [Server], and offers those that begin with a request of the common kind to a
// handler as bare descriptors. A connection that the handler takes never gets the goroutine, the buffers and the place in the runtime's
// poller that a net.Conn has. All others come out of the listener that [Acceptor.Listen] returned, with every byte that was read, guarded as by [Guard].
type Acceptor struct {
	// Static once it listens.
	Handler BareHandler
	Limit   *AddressLimit // of each address; nil is none
	Log     *slog.Logger

	// Accepting is given the listening descriptor before it is used: what is set there, the connections inherit. Passing is given the descriptor
	// of each connection that gets a net.Conn. Nil is nobody.
	Accepting, Passing func(fd int)
}

// BareHandler takes connections that it serves by itself.
type BareHandler interface {
	// ServeBare looks at the first request of a connection, which is whole, has no body and has nothing behind it. If it detaches or moves the
	// connection, that is its own. It runs in a goroutine that accepts, so it must not wait for anything. What it is given is good until it returns.
	ServeBare(c *BareConn, r *Request)
}

// BareConn is a connection that is only a descriptor.
type BareConn struct {
	Peer netip.AddrPort

	fd     int // -1 once it is somebody else's
	permit Permit
	limit  *AddressLimit
}

// Detach gives the descriptor away, together with the permit of its address. Whoever gets it closes the one and releases the other.
func (c *BareConn) Detach() (fd int, permit Permit) {
	fd, permit = c.fd, c.permit
	c.fd, c.permit = -1, 0
	return fd, permit
}

// Move moves the connection to a place where it stays, for another goroutine to serve it.
func (c *BareConn) Move() *BareConn {
	moved := &BareConn{Peer: c.Peer, limit: c.limit}
	moved.fd, moved.permit = c.Detach()
	return moved
}
