package httpkit

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"syscall"

	"github.com/freshet-io/freshet/internal/wire"
)

type connKey struct{}

// ConnContext lets ClientGone, SocketOf and Streams find the connection of a request. It is for http.Server.
func ConnContext(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(context.WithValue(ctx, connKey{}, conn), streamsKey{}, &connStreams{conn: conn})
}

// ClientGone reports whether the client of a request has given up. The request's context says so too, but only some time
// later: a process that was stopped for a while finds requests in its sockets whose clients have long gone elsewhere, and
// would act on them first. And it says so of clients that only have nothing more to say, and wait for the answer: those whose
// request says that it is the connection's last. Where the connection cannot be asked, the context alone decides.
func ClientGone(r *http.Request) bool { return IsGone(r.Context(), r.Close) }

// IsGone is ClientGone for a request that was not read by net/http, with the context of its connection.
func IsGone(ctx context.Context, isLast bool) bool {
	raw := SocketOf(ctx)
	if raw == nil {
		return ctx.Err() != nil
	}
	peer := wire.PeerOf(raw)
	return peer == wire.PeerClosed || peer == wire.PeerThrough && !isLast || peer == wire.PeerOpen && ctx.Err() != nil
}

// SocketOf returns the socket of a request's connection, also below TLS, or nil if it cannot be asked.
func SocketOf(ctx context.Context) syscall.RawConn {
	conn, _ := ctx.Value(connKey{}).(net.Conn)
	if encrypted, ok := conn.(interface {
		ConnectionState() tls.ConnectionState
		NetConn() net.Conn
	}); ok {
		conn = encrypted.NetConn()
	}
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}
