package httpkit

import (
	"context"
	"crypto/tls"
	"net"
	"syscall"
)

type connKey struct{}

// ConnContext lets ClientGone find the connection of a request. It is for http.Server.
func ConnContext(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// ClientGone reports whether the client of a request has given up. The request's context says so too, but only some time
// later: a process that was stopped for a while finds requests in its sockets whose clients have long gone elsewhere, and
// would act on them first. Where the connection cannot be asked, the context alone decides.
func ClientGone(ctx context.Context) bool {
	if ctx.Err() != nil {
		return true
	}
	conn, _ := ctx.Value(connKey{}).(net.Conn)
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn()
	}
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	gone := false
	if err := raw.Control(func(fd uintptr) { gone = ended(fd) }); err != nil {
		return true // closed by ourselves
	}
	return gone
}
