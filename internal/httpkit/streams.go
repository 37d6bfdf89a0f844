package httpkit

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// MaxStreams is how many requests a client may have under way on one HTTP/2 connection.
const MaxStreams = 100

const (
	// streamCost is what a stream holds without what its client sent and what it is sent: a goroutine with its stack, the library's
	// and our own state.
	streamCost = 16 << 10

	// fieldCost is what a header field holds besides its text.
	fieldCost = 64

	// maxWriteCost bounds what one write is counted as, so that a single long answer fits whatever is left.
	maxWriteCost = 1 << 20

	// maxConnRoom is what the streams of one connection may hold in all: MaxStreams with ordinary answers, or some with long ones.
	maxConnRoom = 32 << 20

	// hogStreams is how many streams of a connection may wait for their client when there is no room left for another one.
	hogStreams = 10
)

// Pieces are what the deadline of a write is for. A client counts as one that takes nothing if it takes less than a piece in that
// time; so who is slow gets short ones, and who is not does not pay for them.
const (
	shortPiece = 4 << 10
	longPiece  = 16 << 10
)

// Streams bounds what clients of HTTP/2 hold of the process. To open a stream costs a client a few bytes, and to take nothing of its
// answer costs nothing: without bounds, one client can make the process hold as much as it likes. What does not fit is refused and
// not kept waiting, since whatever waits takes room. It is safe for concurrent use.
type Streams struct {
	room    int64 // Static after NewStreams. In bytes.
	held    atomic.Int64
	refused atomic.Uint64
	cut     atomic.Uint64
}

// NewStreams returns bounds for all listeners of a process, which together may hold so many bytes.
func NewStreams(room int64) *Streams { return &Streams{room: room} }

// StreamStats is what became of streams.
type StreamStats struct {
	Held    int64  // bytes, as they are counted
	Refused uint64 // streams for which there was no room, or for whose address
	Cut     uint64 // streams whose clients took nothing
}

// Stats returns how much is held, and what became of streams so far.
func (s *Streams) Stats() StreamStats {
	return StreamStats{Held: s.held.Load(), Refused: s.refused.Load(), Cut: s.cut.Load()}
}

// StreamLimits are those of one listener.
type StreamLimits struct {
	Stall time.Duration // how long a client may take nothing of what it is sent

	// Enter counts in a stream of an address besides the first one of its connection. It may be nil.
	Enter func(netip.Addr) (leave func(), ok bool)
}

// Bound returns a handler that keeps the streams of HTTP/2 within bounds, and lets others pass. The server must have ConnContext as its
// ConnContext.
func (s *Streams) Bound(l StreamLimits, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			next.ServeHTTP(w, r)
			return
		}
		c := streamsOf(r.Context())
		if !c.enter(l.Enter, r.RemoteAddr) {
			s.refuse(w)
			return
		}
		defer c.leave()
		cost := costOf(r)
		if !s.hold(c, cost) {
			c.closeIfHog()
			s.refuse(w)
			return
		}
		defer s.release(c, cost)
		sw := &streamWriter{ResponseWriter: w, streams: s, conn: c, stall: l.Stall, piece: shortPiece}
		next.ServeHTTP(sw, r)
		sw.finish()
	})
}

// refuse answers a stream for which there is no room, without a body: nothing of that waits for the client.
func (s *Streams) refuse(w http.ResponseWriter) {
	s.refused.Add(1)
	w.Header().Set("Retry-After", "1")
	w.WriteHeader(http.StatusServiceUnavailable)
}

// hold reports whether there is room for so many bytes, which it takes.
func (s *Streams) hold(c *connStreams, n int64) bool {
	if c.held.Add(n) > min(maxConnRoom, s.room) {
		c.held.Add(-n)
		return false
	}
	if s.held.Add(n) > s.room {
		s.release(c, n)
		return false
	}
	return true
}

func (s *Streams) release(c *connStreams, n int64) {
	c.held.Add(-n)
	s.held.Add(-n)
}

// costOf is what a request holds as long as it is under way.
func costOf(r *http.Request) int64 {
	n := streamCost + len(r.RequestURI) + len(r.Host)
	for name, values := range r.Header {
		for _, v := range values {
			n += len(name) + len(v) + fieldCost
		}
	}
	return int64(n)
}

// connStreams is what is known of the streams of one connection.
type connStreams struct {
	conn    net.Conn
	held    atomic.Int64
	waiting atomic.Int32 // streams that are being written to

	mu     sync.Mutex
	open   int      // Guarded by mu.
	leaves []func() // Guarded by mu. Of all that are open but one: that is the connection's own.
}

type streamsKey struct{}

// streamsOf returns what is known, or something to begin with where the server has another ConnContext.
func streamsOf(ctx context.Context) *connStreams {
	if c, ok := ctx.Value(streamsKey{}).(*connStreams); ok {
		return c
	}
	return new(connStreams)
}

// enter counts a stream in.
func (c *connStreams) enter(enter func(netip.Addr) (func(), bool), remote string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open > 0 && enter != nil {
		address, _ := parseAddress(remote)
		leave, ok := enter(address)
		if !ok {
			return false
		}
		c.leaves = append(c.leaves, leave)
	}
	c.open++
	return true
}

// leave counts a stream out. Which one of them is the connection's own does not matter.
func (c *connStreams) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
	if n := len(c.leaves); n > 0 {
		c.leaves[n-1]()
		c.leaves = c.leaves[:n-1]
	}
}

// closeIfHog closes a connection that caused a shortage, which makes room for others.
func (c *connStreams) closeIfHog() {
	if c.waiting.Load() >= hogStreams && c.conn != nil {
		_ = c.conn.Close()
	}
}

// streamWriter writes to one stream. It cuts the stream if its client takes nothing for too long.
type streamWriter struct {
	http.ResponseWriter
	streams *Streams
	conn    *connStreams
	stall   time.Duration

	// Owned by the handler.
	piece int
	watch *time.Timer
	dirty bool // something was written that may still be in the library's buffer

	mu      sync.Mutex
	writing bool // Guarded by mu.
}

var errNoRoom = errors.New("there is no room for an answer that waits to be taken")

// Write implements http.ResponseWriter. What is written counts as held until the client has taken it.
func (w *streamWriter) Write(p []byte) (n int, err error) {
	cost := int64(min(len(p), maxWriteCost))
	if !w.streams.hold(w.conn, cost) {
		w.streams.refused.Add(1)
		w.conn.closeIfHog()
		w.reset()
		return 0, errNoRoom
	}
	defer w.streams.release(w.conn, cost)
	w.dirty = true
	for {
		piece := p[n:min(n+w.piece, len(p))]
		m, err := w.writePiece(piece)
		if n += m; err != nil || n == len(p) {
			return n, err
		}
	}
}

// writePiece writes a piece, and decides how long the next one is.
func (w *streamWriter) writePiece(piece []byte) (n int, err error) {
	begun := time.Now()
	w.watched(func() { n, err = w.ResponseWriter.Write(piece) })
	w.piece = longPiece
	if time.Since(begun) > w.stall/lookBack {
		w.piece = shortPiece
	}
	return n, err
}

// lookBack is what part of the time that a piece may take makes its client a slow one.
const lookBack = 16

// FlushError implements what http.ResponseController asks for.
func (w *streamWriter) FlushError() (err error) {
	w.dirty = false
	w.watched(func() { err = http.NewResponseController(w.ResponseWriter).Flush() })
	return err
}

// Flush implements http.Flusher.
func (w *streamWriter) Flush() { _ = w.FlushError() }

// Unwrap is for http.ResponseController.
func (w *streamWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// finish has the last bytes written while somebody watches. The library would do that when the handler has returned.
func (w *streamWriter) finish() {
	if w.dirty {
		w.Flush()
	}
}

// watched does something that ends when the client takes what it is sent, or has taken nothing for too long.
func (w *streamWriter) watched(do func()) {
	w.begin()
	defer w.end()
	do()
}

func (w *streamWriter) begin() {
	w.conn.waiting.Add(1)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writing = true
	if w.watch == nil {
		w.watch = time.AfterFunc(w.stall, w.cutOff)
		return
	}
	w.watch.Reset(w.stall)
}

// end waits for a cut that has begun: what it needs is somebody else's when the handler has returned.
func (w *streamWriter) end() {
	w.watch.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writing = false
	w.conn.waiting.Add(-1)
}

func (w *streamWriter) cutOff() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.writing {
		w.streams.cut.Add(1)
		w.reset()
	}
}

// reset ends the stream, and with that whatever waits for it.
func (w *streamWriter) reset() {
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Unix(1, 0))
}
