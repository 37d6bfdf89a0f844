package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/fanout"
	"github.com/freshet-io/freshet/internal/httpkit"
	"github.com/freshet-io/freshet/internal/settings"
	"github.com/freshet-io/freshet/internal/wire"
)

// Limits of every listener. They bound what a client can hold without having sent a whole request, or without taking the
// answer.
const (
	readHeaderTimeout = 5 * time.Second
	bodyTimeout       = 15 * time.Second
	stallTimeout      = 30 * time.Second
	idleTimeout       = 60 * time.Second
	maxHeaderBytes    = 16 << 10
)

// bounds are what holds off clients that take nothing, or give nothing.
type bounds struct {
	stall      time.Duration // how long they may; the subscriber interface has its own
	body       time.Duration // how long they may take to send one, where the gateway does not know better
	streamRoom int64         // what all of them may hold by HTTP/2, in bytes
}

func (b *bounds) complete(root fs.FS) {
	if b.stall == 0 {
		b.stall = stallTimeout
	}
	if b.body == 0 {
		b.body = bodyTimeout
	}
	if b.streamRoom == 0 {
		b.streamRoom = streamRoom(mayUse(root))
	}
}

// port is one bound listener.
type port struct {
	setting string // the key in the settings, for messages
	name    string // the key in log lines
	net.Listener
}

// ports are all listeners of the process, bound before anything is announced. One that no role asks for is nil.
type ports struct {
	gateway, admin, subscriber *port
}

// bind opens every listener that the roles need. The admin listener always exists: health has to be somewhere.
func bind(ctx context.Context, s *settings.Settings, stall time.Duration) (_ *ports, err error) {
	p := &ports{}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	need := needsOf(s.Roles)
	for _, l := range []struct {
		needed  bool
		at      **port
		name    string
		address string
	}{
		{true, &p.admin, "admin", s.Admin.Listen},
		{need.gatewayListener, &p.gateway, "gateway", s.Gateway.Listen},
		{need.subscriberListener, &p.subscriber, "subscriber", s.Subscriber.Listen},
	} {
		if !l.needed {
			continue
		}
		if *l.at, err = listen(ctx, l.name, l.address, stall); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func listen(ctx context.Context, name, address string, stall time.Duration) (*port, error) {
	open := func() (net.Listener, error) {
		lc := net.ListenConfig{Control: boundStalls(stall)}
		lc.SetMultipathTCP(false) // its sockets would lose the bound
		return lc.Listen(ctx, "tcp", address)
	}
	if name == "subscriber" {
		open = func() (net.Listener, error) { return fanout.Listen(ctx, address, fanout.Options{}) }
	}
	l, err := open()
	if err != nil {
		return nil, listenError(name+".listen", address, err)
	}
	return &port{setting: name + ".listen", name: name, Listener: l}, nil
}

// listenError says what to do about the address in one line.
func listenError(setting, address string, err error) error {
	choose := fmt.Sprintf("set %s to another address", setting)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return freshet.Errorf(freshet.Conflict, "cannot listen on %s: the address is in use; stop what uses it, or %s", address, choose)
	case errors.Is(err, syscall.EACCES):
		return freshet.Errorf(freshet.Invalid, "cannot listen on %s: not permitted for this user; %s, such as a port above 1023", address, choose)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return freshet.Errorf(freshet.Invalid, "cannot listen on %s: this machine has no such address; %s", address, choose)
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return freshet.Errorf(freshet.Invalid, "cannot listen on %s: the host name is unknown; %s", address, choose)
	}
	return freshet.Errorf(freshet.Unavailable, "cannot listen on %s: %v; %s", address, err, choose)
}

func (p *ports) each(do func(*port)) {
	for _, l := range []*port{p.gateway, p.admin, p.subscriber} {
		if l != nil {
			do(l)
		}
	}
}

// close is for ports that were never served; closing a listener twice does no harm.
func (p *ports) close() {
	p.each(func(l *port) { _ = l.Close() })
}

func (p *ports) addresses() Addresses {
	at := func(l *port) string {
		if l == nil {
			return ""
		}
		return l.Addr().String()
	}
	return Addresses{Gateway: at(p.gateway), Admin: at(p.admin), Subscriber: at(p.subscriber)}
}

// attrs are the real addresses, as log attributes.
func (p *ports) attrs() []any {
	var attrs []any
	p.each(func(l *port) { attrs = append(attrs, l.name, l.Addr().String()) })
	return attrs
}

// web is an HTTP server on one port.
type web struct {
	http  *http.Server
	front *wire.Server // stands before it; nil for none
	port  *port
}

// maxUpload is what is read of bodies on one HTTP/2 connection before anybody asks for it.
const maxUpload = 256 << 10

// newWeb makes a server that speaks HTTP/1.1 and HTTP/2, both also without TLS. What clients hold by HTTP/2 is bound by streams and by
// the limits of this listener.
func newWeb(p *port, handler http.Handler, streams *httpkit.Streams, limits httpkit.StreamLimits, log *slog.Logger) *web {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &web{port: p, http: &http.Server{
		Protocols:         &protocols,
		Handler:           streams.Bound(limits, handler),
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ConnContext:       httpkit.ConnContext,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: httpkit.MaxStreams,
			// A stream's own deadline does not help where the connection that it shares with others takes nothing any more.
			WriteByteTimeout:              limits.Stall,
			MaxReceiveBufferPerConnection: maxUpload,
			MaxReceiveBufferPerStream:     maxUpload,
		},
		// What the HTTP library complains about is mostly clients going away.
		ErrorLog: slog.NewLogLogger(log.With("listener", p.name).Handler(), slog.LevelDebug),
	}}
}

// serve returns at once. If serving fails later, the error goes to failed, which must have room for it.
func (w *web) serve(failed chan<- error) {
	go func() {
		if err := w.http.Serve(w.port); !errors.Is(err, http.ErrServerClosed) {
			failed <- fmt.Errorf("the %s listener failed: %w", w.port.name, err)
		}
	}()
}

// drain stops accepting and waits for requests in flight; those that outlive ctx are cut.
func (w *web) drain(ctx context.Context) error {
	shutdown := w.http.Shutdown
	if w.front != nil {
		shutdown = func(ctx context.Context) error { return w.front.Shutdown(ctx, w.http) }
	}
	err := shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		if w.front != nil {
			w.front.Close()
		}
		_ = w.http.Close()
		return fmt.Errorf("requests on the %s listener did not finish in time and were cut", w.port.name)
	}
	return err
}
