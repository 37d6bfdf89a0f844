package wire

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Server stands in front of net/http. It serves each connection until a request comes that no handler wants; from then on the connection is net/http's,
// which finds every byte as if there were no Server.
type Server struct {
	// Static once it listens.
	Handlers    []Handler     // asked in turn
	HeadTimeout time.Duration // for the rest of a request's head, and for a connection's first request
	IdleTimeout time.Duration // for the next request, and for a client to take something of a response
	Header      http.Header   // what every response says unless its handler says otherwise
	Log         *slog.Logger

	// ConnContext makes the context of a connection's requests. Nil: they have no values but the local address.
	ConnContext func(ctx context.Context, conn net.Conn) context.Context
	// Opened is told of connections that are accepted, with 1, and that end, with -1, whoever serves them. Nil is nobody.
	Opened func(delta int)

	isClosing atomic.Bool

	mu        sync.Mutex
	listeners []*listener           // Guarded by mu.
	conns     map[net.Conn]struct{} // Guarded by mu. Those that net/http does not shut down in order.
	empty     chan struct{}         // Guarded by mu. Closed when there are none any more; nil unless somebody waits for that.
}

// Handler answers requests of some kind.
type Handler interface {
	// ServeWire looks at a request, and answers it if it is of its kind. One that passes must not have read from the body or written anything, nor done
	// anything that may not be done twice. It runs in the connection's goroutine. What it is given is good until it returns.
	ServeWire(x *Exchange) Outcome
}

// Outcome is what a handler has done with a request.
type Outcome int

// What there is.
const (
	Pass Outcome = iota // nothing: it is for the next handler, or for net/http with all that follows
	Done                // answered it
)

// Listen returns a listener for net/http with the connections that are not served here. The http.Server must have ConnState as its ConnState.
func (s *Server) Listen(l net.Listener) net.Listener {
	front := &listener{Listener: l, server: s, stop: sync.OnceValue(l.Close), passed: make(chan accepted), done: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners = append(s.listeners, front)
	go front.run()
	return front
}

// ConnState is for the http.Server that serves the connections that were passed.
func (s *Server) ConnState(conn net.Conn, state http.ConnState) {
	GuardState(conn, state)
	if state == http.StateClosed || state == http.StateHijacked {
		s.ended(conn)
	}
}

// Shutdown stops accepting, lets what is under way be answered and ends connections that wait for their next request; those that have brought none yet
// have their time for it. Then it shuts down net/http's server, which had to take what was passed until then. When ctx ends before that, its error is
// returned, and Close ends the rest.
func (s *Server) Shutdown(ctx context.Context, fallback *http.Server) error {
	s.isClosing.Store(true)
	fallback.SetKeepAlivesEnabled(false)
	empty := make(chan struct{})
	s.mu.Lock()
	for _, l := range s.listeners {
		_ = l.stop()
	}
	for c := range s.conns {
		if c, ok := c.(*conn); ok {
			c.endIfIdle()
		}
	}
	s.empty = empty
	s.signal()
	s.mu.Unlock()
	select {
	case <-empty:
		return fallback.Shutdown(ctx)
	case <-ctx.Done():
		return errors.Join(ctx.Err(), fallback.Shutdown(ctx))
	}
}

// Close closes the listeners, and the connections that are not net/http's.
func (s *Server) Close() {
	s.isClosing.Store(true)
	s.mu.Lock()
	open, listeners := slices.Collect(maps.Keys(s.conns)), slices.Clone(s.listeners)
	s.mu.Unlock()
	for _, l := range listeners {
		_ = l.Close()
	}
	for _, c := range open {
		_ = c.Close()
	}
}

// signal tells who waits that there are no connections. The caller holds mu.
func (s *Server) signal() {
	if s.empty != nil && len(s.conns) == 0 {
		close(s.empty)
		s.empty = nil
	}
}

// enter keeps a connection in mind until it ended.
func (s *Server) enter(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns == nil {
		s.conns = map[net.Conn]struct{}{}
	}
	s.conns[c] = struct{}{}
}

// leave forgets a connection.
func (s *Server) leave(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	s.signal()
}

func (s *Server) ended(c net.Conn) {
	s.leave(c)
	if s.Opened != nil {
		s.Opened(-1)
	}
}

// pass gives a connection to net/http. A server that shuts down would not answer a request that it has not read yet; so that waits for it.
func (s *Server) pass(c net.Conn, l *listener) {
	if s.isClosing.Load() {
		s.enter(c)
	}
	if !l.pass(accepted{conn: c}) {
		_ = c.Close()
		s.ended(c)
	}
}

// listener gives net/http what is passed.
type listener struct {
	net.Listener
	server *Server
	passed chan accepted

	stop    func() error // lets nobody else in
	closing sync.Once
	done    chan struct{} // closed by Close
}

// accepted is what Accept returns.
type accepted struct {
	conn net.Conn
	err  error
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case a := <-l.passed:
		return a.conn, a.err
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. What the Server has under way is served on.
func (l *listener) Close() error {
	l.closing.Do(func() { close(l.done) })
	return l.stop()
}

// run accepts connections until the listener is closed. Who calls Accept decides about errors, and how soon to try again.
func (l *listener) run() {
	for {
		conn, err := l.Listener.Accept()
		if err == nil {
			l.server.serve(conn, l)
			continue
		}
		if l.server.isClosing.Load() || !l.pass(accepted{err: err}) {
			return
		}
	}
}

// pass reports whether net/http has taken it.
func (l *listener) pass(a accepted) bool {
	select {
	case l.passed <- a:
		return true
	case <-l.done:
		return false
	}
}
