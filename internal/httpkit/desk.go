package httpkit

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Desk answers plain requests where they are read. A connection brings one after the other, all alike, and what the HTTP library does
// for each of them costs more than most answers.
//
// A connection is at the desk until something comes that no clerk takes. That and all that follows is the library's, which finds
// everything as if there were no desk. So clerks need not know HTTP, only what most requests look like.
type Desk struct {
	patience Patience
	hire     []func(*DeskConn) Clerk

	closed atomic.Bool
	mu     sync.Mutex
	conns  map[*DeskConn]struct{} // Guarded by mu. All that are open.
}

// Clerk answers the requests of one kind on one connection.
type Clerk interface {
	// Take looks at a request whose beginning was read, and answers it if it is of its kind. Unless it is taken, nothing of the
	// answer may have been written. What was begun for a connection's last request must be brought to its end: a library that shuts
	// down reads no more requests. An error means that the connection is over; io.EOF, that it was answered for the last time.
	Take(read []byte) (Turn, error)
}

// Turn is who answers a request.
type Turn int

// Those who can.
const (
	Declined Turn = iota // another clerk, or the library, with all that follows
	Lent                 // the library, this one alone: exactly one request was read, all of it, and it has no body
	Taken                // the clerk did
)

// Patience is how long the server of a listener waits for its clients. It holds at the desk too.
type Patience struct {
	Head time.Duration // for the rest of a request's head
	Idle time.Duration // for the next request
}

// NewDesk makes a desk with clerks of some kinds, who are asked in turn.
func NewDesk(p Patience, hire ...func(*DeskConn) Clerk) *Desk {
	return &Desk{patience: p, hire: hire, conns: map[*DeskConn]struct{}{}}
}

// Listen returns l with the desk in front of it. Its connections must not be encrypted above it. The server must have DeskState, or
// ConnState above it, as its ConnState and ConnContext as its ConnContext.
func (d *Desk) Listen(l net.Listener) net.Listener { return &deskListener{l, d} }

// Close lets what is under way be answered and ends the connections that were answered here. Those that have brought nothing
// yet, and new ones, are the library's.
func (d *Desk) Close(ctx context.Context) error {
	d.closed.Store(true)
	d.mu.Lock()
	open := slices.Collect(maps.Keys(d.conns))
	d.mu.Unlock()
	for _, c := range open {
		c.letGo()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, c := range open {
			c.await()
		}
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return errors.New("plain requests were not answered in time")
	}
}

// enter puts a connection at the desk.
func (d *Desk) enter(s Socket) net.Conn {
	if d.closed.Load() {
		return s
	}
	ctx := context.WithValue(ConnContext(context.Background(), s), http.LocalAddrContextKey, s.LocalAddr())
	c := &DeskConn{Socket: s, desk: d, ctx: ctx, isAtDesk: true}
	if client, ok := s.(*Client); ok && canPeek {
		c.socket, _ = client.SyscallConn() // without it a connection is read as any other
		c.step, c.push = c.receiveNow, c.sendNow
		c.wait = func() error { return c.socket.Read(c.step) }
	}
	for _, hire := range d.hire {
		c.clerks = append(c.clerks, hire(c))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conns[c] = struct{}{}
	return c
}

func (d *Desk) forget(c *DeskConn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.conns, c)
}

type deskListener struct {
	net.Listener
	desk *Desk
}

// Accept implements net.Listener.
func (l *deskListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if s, ok := conn.(Socket); ok && err == nil {
		return l.desk.enter(s), nil
	}
	return conn, err
}

// DeskConn is a connection that begins at the desk. The library reads from it in one goroutine at a time.
type DeskConn struct {
	Socket
	desk   *Desk
	clerks []Clerk
	ctx    context.Context //nolint:containedctx // the clerks' requests have no other

	working   sync.Mutex  // held while a request is being answered
	isBusy    atomic.Bool // a clerk answers one
	isClosing atomic.Bool // to be closed, behind the request under way if there is one
	isAlone   atomic.Bool // the library has nothing that came behind the request that is lent to it

	// Only the reader changes them, with working held.
	isAtDesk  bool
	hasServed bool

	// Only the reader's.
	socket syscall.RawConn           // nil where there is none to look into
	step   func(socket uintptr) bool // receiveNow
	push   func(socket uintptr) bool // sendNow
	wait   func() error              // for socket to take a step
	failed error                     // of the last step
	read   int                       // in the last step
	unsent []byte                    // of the answer under way
	left   io.Closer                 // by a clerk, for the handler of the request that is lent
	over   error                     // why nothing more can be read
	buffer *deskInput                // what was read at the desk; nil when all of it is passed on
	unread []byte                    // what of it the library has not seen
	rearm  time.Time                 // when the time for writing is set again
}

// NetConn is the connection without the desk.
func (c *DeskConn) NetConn() net.Conn { return c.Socket }

// Context is for requests that are answered at the desk. It does not end when their clients go away.
func (c *DeskConn) Context() context.Context { return c.ctx }

// Client is who a clerk has to look after while it waits; see Unwatch. It is nil where nobody can.
func (c *DeskConn) Client() *Client {
	client, ok := c.Socket.(*Client)
	if !ok || !canPeek {
		return nil
	}
	client.mu.Lock()
	defer client.mu.Unlock()
	client.unwatched, client.dismissed = true, true // the library is not there
	return client
}

// IsLast reports whether the request under way is the connection's last, which its answer should say.
func (c *DeskConn) IsLast() bool { return c.isClosing.Load() || c.desk.closed.Load() }

// Answer sends the answer to the request under way. Who never reads its answers shall not hold us up; and the next request has
// its time from now on.
func (c *DeskConn) Answer(b []byte) error {
	now := time.Now()
	if now.After(c.rearm) {
		c.rearm = now.Add(c.desk.patience.Idle / 2)
		_ = c.SetWriteDeadline(now.Add(c.desk.patience.Idle))
	}
	_ = c.SetReadDeadline(now.Add(c.desk.patience.Idle))
	return c.send(b)
}

// send writes all of b, which is short and mostly fits into the socket at once.
func (c *DeskConn) send(b []byte) error {
	if c.socket == nil {
		_, err := c.Write(b)
		return err
	}
	c.unsent, c.failed = b, nil
	err := c.socket.Write(c.push)
	c.unsent = nil
	return cmp.Or(err, c.failed)
}

// sendNow writes what there is room for, and reports whether that was all.
func (c *DeskConn) sendNow(socket uintptr) bool {
	for len(c.unsent) > 0 {
		n, wait, err := writeNow(socket, c.unsent)
		if wait {
			return false
		}
		if c.failed = err; err != nil {
			break
		}
		c.unsent = c.unsent[n:]
	}
	return true
}

// Leave leaves something for the library's handler of the request that is lent to it. It is closed if nobody wants it.
func (c *DeskConn) Leave(what io.Closer) { c.left = what }

// Left takes what a clerk has left for a request.
func Left(ctx context.Context) io.Closer {
	for conn := ctx.Value(connKey{}); ; {
		switch c := conn.(type) {
		case *DeskConn:
			left := c.left
			if left != nil { // otherwise the handlers of HTTP/2 would all write here; nothing is ever left for them
				c.left = nil
			}
			return left
		case interface{ NetConn() net.Conn }:
			conn = c.NetConn()
		default:
			return nil
		}
	}
}

// deskInput is where requests are read. Most publications are shorter, and so take a single read.
type deskInput [16 << 10]byte

var deskInputs = sync.Pool{New: func() any { return new(deskInput) }}

// Read answers plain requests until something else comes, which it passes on.
func (c *DeskConn) Read(p []byte) (int, error) {
	if c.isAtDesk && c.over == nil {
		c.serve()
	}
	switch {
	case c.over != nil:
		return 0, c.over // the library looks twice at a new connection
	case c.buffer == nil:
		return c.readOn(p)
	}
	n := copy(p, c.unread)
	if c.unread = c.unread[n:]; len(c.unread) == 0 {
		c.drop()
	}
	return n, nil
}

// readOn reads for the library. If that only looks whether the client is there, it takes nothing of the next request, so that the
// connection can come back.
func (c *DeskConn) readOn(p []byte) (int, error) {
	isLook := len(p) == 1 && c.isAlone.Load()
	if client, ok := c.Socket.(*Client); ok && isLook && canPeek {
		return 0, client.look()
	}
	if c.isClosing.Load() && !isLook {
		return 0, io.EOF
	}
	n, err := c.Socket.Read(p)
	if n > 0 {
		c.isAlone.Store(false)
	}
	return n, err
}

// Close implements net.Conn. A connection whose request is under way is closed behind it: the library closes it again when it can
// read no more.
func (c *DeskConn) Close() error {
	c.isClosing.Store(true)
	if c.isBusy.Load() {
		return nil
	}
	c.desk.forget(c)
	return c.Socket.Close()
}

// serve answers requests until the connection is over or the library's.
func (c *DeskConn) serve() {
	for !c.isClosing.Load() {
		n, err := c.receive()
		turn := Taken
		if err == nil {
			turn, err = c.take(c.buffer[:n])
		}
		if err == nil && turn != Taken {
			c.unread = c.buffer[:n]
			return
		}
		c.drop()
		if err == nil && c.desk.closed.Load() {
			err = io.EOF
		}
		if c.over = err; err != nil {
			return
		}
	}
	c.over = io.EOF
}

// receive waits for a request, without a buffer as long as there is none: most connections wait most of the time.
func (c *DeskConn) receive() (int, error) {
	client, ok := c.Socket.(*Client)
	if !ok || c.socket == nil {
		c.buffer = deskInputs.Get().(*deskInput)
		return c.Socket.Read(c.buffer[:])
	}
	c.read, c.failed = 0, nil
	if err := client.whileReading(c.wait); err != nil {
		return 0, err
	}
	if c.read == 0 && c.failed == nil {
		return 0, io.EOF
	}
	return c.read, c.failed
}

// receiveNow reads what is there, and reports whether there was anything.
func (c *DeskConn) receiveNow(socket uintptr) bool {
	c.buffer = deskInputs.Get().(*deskInput)
	var wait bool
	if c.read, wait, c.failed = readNow(socket, c.buffer[:]); wait {
		c.drop()
	}
	return !wait
}

// drop gives the buffer away.
func (c *DeskConn) drop() {
	if c.buffer != nil {
		deskInputs.Put(c.buffer)
		c.buffer = nil
	}
}

// take has a request answered that can be, and leaves others to the library. None is answered any more once the desk is closed.
func (c *DeskConn) take(read []byte) (turn Turn, err error) {
	c.working.Lock()
	defer c.working.Unlock()
	if turn, err = c.ask(read); turn == Taken || err != nil {
		c.hasServed = true
		return turn, err
	}
	c.isAtDesk = false
	c.isAlone.Store(turn == Lent)
	if c.hasServed {
		_ = c.SetReadDeadline(time.Now().Add(c.desk.patience.Head))
		_ = c.SetWriteDeadline(time.Time{})
		c.rearm = time.Time{}
	}
	return turn, nil
}

// ask asks the clerks in turn.
func (c *DeskConn) ask(read []byte) (turn Turn, err error) {
	c.isBusy.Store(true)
	defer c.isBusy.Store(false) // then serve looks whether it is closing
	for _, k := range c.clerks {
		if turn != Declined || c.IsLast() {
			break
		}
		turn, err = k.Take(read)
	}
	return turn, err
}

// DeskState tells a connection when the library is done with a request. It is for http.Server.
func DeskState(conn net.Conn, state http.ConnState) {
	c, ok := conn.(*DeskConn)
	if !ok || state == http.StateNew || state == http.StateActive {
		return
	}
	if c.left != nil {
		_ = c.left.Close()
		c.left = nil
	}
	if c.isAlone.Swap(false) && state == http.StateIdle && c.buffer == nil && !c.desk.closed.Load() {
		c.working.Lock()
		defer c.working.Unlock()
		c.isAtDesk = true
	}
}

// letGo ends a connection that was answered here and waits for nothing.
func (c *DeskConn) letGo() {
	if !c.working.TryLock() {
		return // it sees by itself that the desk is closed
	}
	defer c.working.Unlock()
	if c.isAtDesk && c.hasServed {
		_ = c.SetReadDeadline(time.Unix(1, 0))
	}
}

// await returns when the request under way is answered.
func (c *DeskConn) await() {
	c.working.Lock()
	defer c.working.Unlock()
}
