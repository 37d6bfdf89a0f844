package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"time"
)

// Secure returns l with TLS. It takes the place of http.Server.ServeTLS, whose connections nobody can look into: a Guard or a Server may stand
// above it. A handshake may take as long as patience.
func Secure(l net.Listener, config *tls.Config, patience time.Duration, log *slog.Logger) net.Listener {
	s := &secureListener{Listener: l, config: config, patience: patience, log: log, accepted: make(chan accepted)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	go s.run()
	return s
}

type secureListener struct {
	net.Listener
	config   *tls.Config
	patience time.Duration
	log      *slog.Logger
	accepted chan accepted
	ctx      context.Context //nolint:containedctx // ends with the listener, and all handshakes with it
	cancel   context.CancelFunc
}

// Accept implements net.Listener. It returns connections in the order in which their handshakes end.
func (l *secureListener) Accept() (net.Conn, error) {
	select {
	case a := <-l.accepted:
		return a.conn, a.err
	case <-l.ctx.Done():
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *secureListener) Close() error {
	l.cancel()
	return l.Listener.Close()
}

// run accepts connections until the listener is closed. Who calls Accept decides about errors, and how soon to try again.
func (l *secureListener) run() {
	for l.ctx.Err() == nil {
		conn, err := l.Listener.Accept()
		if err != nil {
			l.pass(accepted{err: err})
			continue
		}
		go l.shake(tls.Server(conn, l.config))
	}
}

// pass reports whether somebody has taken it.
func (l *secureListener) pass(a accepted) bool {
	select {
	case l.accepted <- a:
		return true
	case <-l.ctx.Done():
		return false
	}
}

// shake hands a connection on that is encrypted.
func (l *secureListener) shake(conn *tls.Conn) {
	ctx, cancel := context.WithTimeout(l.ctx, l.patience)
	defer cancel()
	if err := conn.HandshakeContext(ctx); err != nil {
		l.log.Debug("handshake failed", "client", conn.RemoteAddr(), "err", err)
		if plain, ok := errors.AsType[tls.RecordHeaderError](err); ok && plain.Conn != nil && looksLikeHTTP(plain.RecordHeader) {
			_ = plain.Conn.SetWriteDeadline(time.Now().Add(l.patience))
			_, _ = io.WriteString(plain.Conn, "HTTP/1.0 400 Bad Request\r\n\r\nThis is HTTPS. Write https:// instead of http://.\n")
		}
		_ = conn.Close()
		return
	}
	if !l.pass(accepted{conn: conn}) {
		_ = conn.Close()
	}
}

// looksLikeHTTP reports whether somebody began with a request instead of a handshake.
func looksLikeHTTP(began [5]byte) bool {
	switch string(began[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "PATCH", "DELET", "OPTIO":
		return true
	}
	return false
}
