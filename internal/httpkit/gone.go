package httpkit

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"syscall"
	"time"
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
func ClientGone(r *http.Request) bool { return isGone(r.Context(), r.Close) }

// ConnGone is ClientGone for a request at the desk. None of them is its connection's last, so whoever closes it has given up.
func ConnGone(ctx context.Context) bool { return isGone(ctx, false) }

func isGone(ctx context.Context, isLast bool) bool {
	raw := SocketOf(ctx)
	if raw == nil {
		return ctx.Err() != nil
	}
	end := endOpen
	if err := raw.Control(func(fd uintptr) { end = endOf(fd) }); err != nil {
		return true // closed by ourselves
	}
	return end == endClosed || end == endThrough && !isLast || end == endOpen && ctx.Err() != nil
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

// end is what the other side's end of a connection is like.
type end int

const (
	endOpen    end = iota
	endThrough     // closed, right after it said something
	endClosed
)

// throughWithin is how soon after its last word a client closes its end that has nothing more to say. Few give up so soon.
const throughWithin = 200 * time.Millisecond
