package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
	"github.com/freshet-io/freshet/internal/httpkit"
	"github.com/freshet-io/freshet/internal/router"
)

// Door is where requests come in.
type Door interface {
	// Enter reports whether a request for the path would reach the publishing API as it is, and which path it would see. If
	// so, Leave must be called when it is answered.
	Enter(path string) (inside string, ok bool)
	Leave()
}

// Desk takes plain publications straight from their connections. A publisher's connection brings one after the other, all alike, and
// what the HTTP library does for each of them costs more than to compare the documents.
//
// A connection is at the desk until something comes that is not a plain publication, or one that is refused before its body
// was read. That and all that follows is the library's, which finds everything as if there were no desk. So the desk need not
// know HTTP, only what most publications look like.
type Desk struct {
	api      *API
	door     Door
	patience Patience

	mu     sync.Mutex
	conns  map[*deskConn]struct{} // Guarded by mu. Those at the desk.
	closed bool                   // Guarded by mu.
	busy   sync.WaitGroup         // publications under way; none begins once it is closed
}

// Patience is how long the server of a listener waits for its clients. It holds at the desk too.
type Patience struct {
	Head time.Duration // for the rest of a request's head
	Idle time.Duration // for the next request
}

// Desk makes a desk for the API behind the door.
func (a *API) Desk(door Door, p Patience) *Desk {
	return &Desk{api: a, door: door, patience: p, conns: map[*deskConn]struct{}{}}
}

// Listen returns l with the desk in front of it. Its connections must not be encrypted above it.
func (d *Desk) Listen(l net.Listener) net.Listener {
	if d.api.opts.Tracer != nil { // to follow publications takes more than the desk knows
		return l
	}
	return &deskListener{l, d}
}

// Close lets what is under way be answered and ends the connections that have brought publications. Those that have brought nothing
// yet, and new ones, are the library's.
func (d *Desk) Close(ctx context.Context) error {
	d.mu.Lock()
	d.closed = true
	for c := range d.conns {
		if c.isPublisher && !c.isBusy {
			_ = c.SetReadDeadline(time.Unix(1, 0))
		}
	}
	d.mu.Unlock()
	done := make(chan struct{})
	go func() { d.busy.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return errors.New("publications did not finish in time")
	}
}

// enter puts a connection at the desk.
func (d *Desk) enter(s httpkit.Socket) net.Conn {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return s
	}
	c := &deskConn{Socket: s, desk: d, isAtDesk: true, ctx: httpkit.ConnContext(context.Background(), s)}
	d.conns[c] = struct{}{}
	return c
}

func (d *Desk) leave(c *deskConn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.conns, c)
}

// begin is called before a publication is taken. There is none any more once the desk is closed.
func (d *Desk) begin(c *deskConn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	c.isBusy = true
	d.busy.Add(1)
	return true
}

// end reports whether the desk was closed meanwhile, perhaps after the last look at it.
func (d *Desk) end(c *deskConn, taken bool) (closed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c.isBusy = false
	c.isPublisher = c.isPublisher || taken
	d.busy.Done()
	return d.closed || c.isClosing
}

// isLast reports whether the publication under way is the connection's last.
func (d *Desk) isLast(c *deskConn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closed || c.isClosing
}

// close reports whether a connection may be closed at once. One that waits for its answer is closed behind that.
func (d *Desk) close(c *deskConn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	c.isClosing = true
	if !c.isBusy {
		delete(d.conns, c)
	}
	return !c.isBusy
}

type deskListener struct {
	net.Listener
	desk *Desk
}

// Accept implements net.Listener.
func (l *deskListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if s, ok := conn.(httpkit.Socket); ok && err == nil {
		return l.desk.enter(s), nil
	}
	return conn, err
}

// deskConn is a connection that begins at the desk. The library reads from it in one goroutine at a time.
type deskConn struct {
	httpkit.Socket
	desk *Desk
	ctx  context.Context

	// Guarded by desk.mu. Only the reader changes the first two, and so may read them without it.
	isPublisher bool // it has brought a publication
	isBusy      bool
	isClosing   bool

	// Only the reader's.
	isAtDesk bool
	over     error   // why nothing more can be read
	buffer   *buffer // what was read at the desk; nil when all of it is passed on
	unread   []byte  // what of it the library has not seen
}

// NetConn is the connection without the desk.
func (c *deskConn) NetConn() net.Conn { return c.Socket }

type buffer [16 << 10]byte // most publications are shorter, and so take a single read

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// Read takes plain publications until something else comes, which it passes on.
func (c *deskConn) Read(p []byte) (int, error) {
	if c.isAtDesk && c.over == nil {
		c.serve()
	}
	switch {
	case c.over != nil:
		return 0, c.over // the library looks twice at a new connection
	case c.buffer == nil:
		return c.Socket.Read(p)
	}
	n := copy(p, c.unread)
	if c.unread = c.unread[n:]; len(c.unread) == 0 {
		buffers.Put(c.buffer)
		c.buffer = nil
	}
	return n, nil
}

// Close implements net.Conn.
func (c *deskConn) Close() error {
	if c.desk.close(c) {
		return c.Socket.Close()
	}
	return nil // the library closes it again when it can read no more
}

// serve takes publications until the connection is over or the library's.
func (c *deskConn) serve() {
	c.buffer = buffers.Get().(*buffer)
	for {
		n, err := c.Socket.Read(c.buffer[:])
		taken := err == nil
		if taken {
			taken, err = c.take(c.buffer[:n])
		}
		switch {
		case err != nil:
			c.over = err
			buffers.Put(c.buffer)
			return
		case !taken:
			c.unread = c.buffer[:n]
			c.handOver()
			return
		}
	}
}

// handOver leaves the connection to the library.
func (c *deskConn) handOver() {
	c.isAtDesk = false
	c.desk.leave(c)
	if c.isPublisher {
		_ = c.SetReadDeadline(time.Now().Add(c.desk.patience.Head))
		_ = c.SetWriteDeadline(time.Time{})
	}
}

// take answers a request whose beginning was read if it is a plain publication, and otherwise leaves everything as it was. An error
// means that the connection is over; io.EOF, that it was answered for the last time.
func (c *deskConn) take(read []byte) (taken bool, err error) {
	req, ok := readPlain(read)
	if !ok {
		return false, nil
	}
	inside, ok := c.desk.door.Enter(req.path)
	if !ok {
		return false, nil
	}
	defer c.desk.door.Leave()
	if !c.desk.begin(c) {
		return false, nil
	}
	defer func() {
		if closed := c.desk.end(c, taken); closed && taken && err == nil {
			err = io.EOF
		}
	}()
	return c.answer(req, inside, read[req.headLen:])
}

func (c *deskConn) answer(req plain, inside string, begun []byte) (taken bool, err error) {
	grant, budget, ok := c.desk.api.admit(c.ctx, req, inside)
	if !ok {
		return false, nil
	}
	body, err := c.readBody(begun, req.length)
	if err != nil {
		return true, c.refuse(inside, budget, httpkit.BodyError(err), true)
	}
	out, err := c.desk.api.tryHand(c.ctx, grant, router.Publication{Form: router.Whole, Body: body})
	// The next request has time from now on; and who never reads its answers shall not hold us up.
	_ = c.SetDeadline(time.Now().Add(c.desk.patience.Idle))
	if err != nil {
		return true, c.refuse(inside, budget, err, c.desk.isLast(c))
	}
	return true, c.accept(out, budget, c.desk.isLast(c))
}

// admit asks everything that a publication's head can be refused for. To say why is left to the library.
func (a *API) admit(ctx context.Context, req plain, inside string) (grant *catalog.Grant, b httpkit.Budget, ok bool) {
	id, ok := topicOf(inside)
	if !ok || int64(req.length) > a.opts.MaxBody {
		return nil, b, false
	}
	grant, err := a.catalog.MayPublish(ctx, id, req.key)
	if err != nil || grant.Topic.Publisher.Type != freshet.HTTPPost {
		return nil, b, false
	}
	// Who has nothing left is counted again by the library, which changes nothing.
	b, err = a.take(ctx, grant)
	return grant, b, err == nil
}

// tryHand gives a publication to the router. One bad publication cannot end the process.
func (a *API) tryHand(ctx context.Context, grant *catalog.Grant, p router.Publication) (out router.Outcome, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the publication panicked: %v\n%s", v, debug.Stack())
		}
	}()
	return a.hand(ctx, grant, p)
}

// readBody reads what is missing of a body.
func (c *deskConn) readBody(begun []byte, length int) ([]byte, error) {
	body := make([]byte, length)
	n := copy(body, begun)
	if n == length {
		return body, nil
	}
	_ = c.SetReadDeadline(time.Now().Add(c.desk.api.opts.BodyTimeout))
	_, err := io.ReadFull(c.Socket, body[n:])
	return body, err
}
