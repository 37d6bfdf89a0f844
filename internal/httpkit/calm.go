package httpkit

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// Calm returns l with connections that spare the system what the HTTP library asks of it for every request, and what is needed
// for few. The library moves a connection's deadline several times with every request; here only one that comes true is
// looked at again. And it looks for clients that go away with a goroutine of its own, which a handler can make needless
// with Unwatch.
func Calm(l net.Listener) net.Listener { return &calmListener{l} }

type calmListener struct{ net.Listener }

// Accept implements net.Listener.
func (l *calmListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if s, ok := conn.(Socket); ok && err == nil {
		return &Client{Socket: s}, nil
	}
	return conn, err
}

// Client is the calm connection of a client.
type Client struct {
	Socket

	mu        sync.Mutex
	wanted    time.Time // Guarded by mu. The deadline of reads.
	armed     time.Time // Guarded by mu. The one that the socket has; never later than wanted while somebody reads.
	reading   bool      // Guarded by mu.
	unwatched bool      // Guarded by mu. The handler looks after the client itself.
	dismissed bool      // Guarded by mu. The library does not look after it any more, as long as this request lasts.
	limited   bool      // Guarded by mu. Writes have a deadline.
}

// SetDeadline implements net.Conn.
func (c *Client) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline implements net.Conn.
func (c *Client) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wanted = t
	if c.reading {
		return c.arm(t)
	}
	return nil
}

// SetWriteDeadline implements net.Conn. The library takes away after every request what it does not set before.
func (c *Client) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.IsZero() && !c.limited {
		return nil
	}
	c.limited = !t.IsZero()
	return c.Socket.SetWriteDeadline(t)
}

// arm sets the socket's deadline. The caller holds mu.
func (c *Client) arm(t time.Time) error {
	c.armed = t
	return c.Socket.SetReadDeadline(t)
}

// Read implements net.Conn.
func (c *Client) Read(p []byte) (int, error) {
	if len(p) == 1 && c.dismiss() {
		return 0, nil
	}
	if err := c.begin(); err != nil {
		return 0, err
	}
	defer c.end()
	for {
		n, err := c.Socket.Read(p)
		if n > 0 || err == nil || !errors.Is(err, os.ErrDeadlineExceeded) || !c.extend() {
			return n, err
		}
	}
}

// look waits for the client to go away, as the library does that reads a single byte, but leaves everything where it is.
func (c *Client) look() error {
	if c.dismiss() {
		return nil
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	err = c.whileReading(func() error {
		return raw.Read(func(fd uintptr) bool {
			gone, _ := peek(fd)
			return gone
		})
	})
	return cmp.Or(err, io.EOF)
}

// whileReading waits for the socket in another way than Read, with the same deadlines.
func (c *Client) whileReading(wait func() error) error {
	if err := c.begin(); err != nil {
		return err
	}
	defer c.end()
	for {
		err := wait()
		if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) || !c.extend() {
			return err
		}
	}
}

func (c *Client) begin() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading = true
	if !c.wanted.IsZero() && (c.armed.IsZero() || c.wanted.Before(c.armed)) {
		return c.arm(c.wanted)
	}
	return nil
}

func (c *Client) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading = false
}

// extend reports whether the deadline that came true was not the last one wanted, which it sets.
func (c *Client) extend() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.armed.Equal(c.wanted) && c.arm(c.wanted) == nil
}

// dismiss reports whether the library's look for a client that goes away is needless. It is the only one who reads a single byte, and
// takes none for an answer.
func (c *Client) dismiss() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dismissed = c.unwatched
	return c.dismissed
}

// Unwatch says that a handler looks after its client itself: as soon as it waits for longer than a moment, it calls Watch. The
// request's context may not be cancelled when its client goes away. The result is nil for connections that are not calm; Done
// must be called on others before the handler returns.
func Unwatch(ctx context.Context) *Client {
	c := clientOf(ctx)
	if c == nil || !canPeek {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unwatched, c.dismissed = true, false
	return c
}

// clientOf finds the calm connection below that of a request.
func clientOf(ctx context.Context) *Client {
	conn := ctx.Value(connKey{})
	for {
		switch c := conn.(type) {
		case *Client:
			return c
		case interface{ NetConn() net.Conn }:
			conn = c.NetConn()
		default:
			return nil
		}
	}
}

// Done says that the handler is done.
func (c *Client) Done() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unwatched = false
}

// Watch looks after the client until stop is called: the context that it returns is cancelled when the client goes away.
func (c *Client) Watch(ctx context.Context) (watched context.Context, stop func()) {
	if c == nil || !c.takeOver() {
		return ctx, func() {}
	}
	watched, cancel := context.WithCancel(ctx)
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		if c.awaitEnd() {
			cancel()
		}
	}()
	return watched, func() {
		c.mu.Lock()
		_ = c.arm(time.Unix(1, 0)) // lets awaitEnd return; who reads next finds that it is not wanted
		c.mu.Unlock()
		<-looked
		cancel()
	}
}

// takeOver reports whether the client must be looked after: the library does not do it, and will not.
func (c *Client) takeOver() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unwatched = false
	return c.dismissed && c.arm(time.Time{}) == nil
}

// awaitEnd waits until the client goes away, and reports whether it did. A client that sends its next request is there.
func (c *Client) awaitEnd() bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	var gone, wait bool
	err = raw.Read(func(fd uintptr) bool {
		gone, wait = peek(fd)
		return !wait
	})
	return err == nil && gone
}
