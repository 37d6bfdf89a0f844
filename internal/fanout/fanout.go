package fanout

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/freshet-io/freshet/internal/histogram"
	"github.com/freshet-io/freshet/internal/sse"
	"github.com/freshet-io/freshet/internal/wire"
)

// Cursor is a place in a feed. 0 is before everything: a reader there has seen nothing.
type Cursor uint64

// Feed is a sequence of frames that many subscribers share.
type Feed interface {
	// Since returns what brings a reader from cursor to the newest frame, or closer to it. An empty batch whose Next is
	// another cursor moves the reader without a word. Nobody changes the bytes afterwards. It is called often and must be quick.
	Since(cursor Cursor) Batch

	// Watch calls changed whenever Since may have something new. changed does not block.
	Watch(changed func()) (stop func())
}

// Batch is one or more frames in one piece.
type Batch struct {
	Bytes  []byte
	Events int    // those that count: errors do not
	Full   int    // how many bytes it would be had every event carried the whole document; 0: as many as it is
	Next   Cursor // where the reader is once it has the bytes
	More   bool   // there is another batch at Next
	Merged bool   // the reader was so far behind that several events became one

	Delivery Delivery // of the newest event that somebody follows; nil: nobody does
}

// Delivery follows events to sockets. Its methods do not block and may be called from any goroutine.
type Delivery interface {
	Wrote(events, bytes int64)
}

// full is Full, or the bytes themselves where nothing was left out.
func (b *Batch) full() int {
	if b.Full == 0 {
		return len(b.Bytes)
	}
	return b.Full
}

// Options are the limits of a Fanout. Zero values mean the defaults.
type Options struct {
	Log *slog.Logger

	// Node names this process in the identifiers of connections, unlike any other. Empty: a name is made up.
	Node string

	// Heartbeat is how often a silent stream is given a comment; 10 s by default.
	Heartbeat time.Duration

	// WriteTimeout is how long a subscriber may take no bytes while some are waiting for it; 30 s by default.
	WriteTimeout time.Duration

	// SendBuffer bounds what the kernel holds for one subscriber, in bytes; 96 KiB by default. Linux doubles it for its
	// own bookkeeping.
	SendBuffer int

	// Pace is the least time between two writes to the same subscriber, per member of its group on its loop, within bounds: a
	// subscriber of a large group may wait up to 3 ms for more to come, and one of a few dozen does not wait. 30 µs by default;
	// negative: nobody waits.
	Pace time.Duration

	// Socket returns the socket of a request's connection, or nil if it cannot be asked. With it, goroutines tell readers of HTTP/1.1
	// that are slow from those that take nothing, as event loops do; without it, those that need long for a little are cut as well.
	Socket func(ctx context.Context) syscall.RawConn

	// DrainRate is how many streams a second end when the Fanout drains, or more if the time would not do otherwise; 500 by default.
	DrainRate int

	// AddressLimit bounds the connections of each address that Listen accepts. Nil bounds nobody.
	AddressLimit *wire.AddressLimit

	// Unmeasured leaves out how long things take, and Lag and FanOut of the Stats with it. It is there for whoever wants to know
	// what measuring costs.
	Unmeasured bool

	// Loops is the number of event loops, one per processor by default. Negative: none, goroutines for everybody.
	Loops int
}

// Fanout owns every open stream.
type Fanout struct {
	// Static after New.
	log          *slog.Logger
	heartbeat    time.Duration
	writeTimeout time.Duration
	loops        loops
	node         string
	addresses    *wire.AddressLimit
	socket       func(ctx context.Context) syscall.RawConn
	unmeasured   bool
	drainRate    int

	counters counters

	// Guarded by mu.
	mu       sync.Mutex
	drainTo  time.Time     // set before draining is closed
	draining chan struct{} // closed when Drain begins
	closed   chan struct{} // closed when Close begins
	serving  sync.WaitGroup

	portables map[uint64]*portable // streams with goroutines
	serial    uint64               // of the last of them
}

type counters struct {
	open    atomic.Int64
	events  atomic.Uint64
	bytes   atomic.Uint64
	timeout atomic.Uint64
	beats   atomic.Uint64
	behind  atomic.Int64 // members with a full socket

	goroutines atomic.Int64

	fanOut, lag histogram.Histogram
}

// Sent is what members of a group were sent: events, bytes in all, and what the bytes would have been had every event carried
// the whole document. Headers and heartbeats count the same in both. Prompt of the events went to members that keep up, Lag
// after the change that they tell of.
type Sent struct {
	Events, Bytes, Full int64

	Prompt int64
	Lag    time.Duration
}

// Stats counts what a Fanout did since it began.
type Stats struct {
	Open     int64  // streams now
	Events   uint64 // events handed to the kernel
	Bytes    uint64
	TimedOut uint64 // streams cut because they took no bytes

	Goroutines int64  // of Open, those that have one
	Behind     int64  // of Open, those whose socket is full; event loops only
	Heartbeats uint64 // sent

	FanOut histogram.Snapshot // from a change to the last member of its group on a loop
	Lag    histogram.Snapshot // from a change to each member, for those that keep up, however they are served
}

// NewNode makes up a name for a process.
func NewNode() string { return fmt.Sprintf("%08x", rand.Uint32()) }

// New starts a Fanout. Close it after use.
func New(opts Options) (*Fanout, error) {
	f := &Fanout{
		log:          opts.Log,
		heartbeat:    orDefault(opts.Heartbeat, 10*time.Second),
		writeTimeout: orDefault(opts.WriteTimeout, 30*time.Second),
		draining:     make(chan struct{}),
		closed:       make(chan struct{}),
		addresses:    opts.AddressLimit,
		socket:       opts.Socket,
		unmeasured:   opts.Unmeasured,
		drainRate:    orDefault(opts.DrainRate, 500),
		node:         cmp.Or(opts.Node, NewNode()),
	}
	if f.log == nil {
		f.log = slog.New(slog.DiscardHandler)
	}
	if err := f.startLoops(opts); err != nil {
		return nil, err
	}
	return f, nil
}

func orDefault[T int | time.Duration](v, standard T) T {
	if v == 0 {
		return standard
	}
	return v
}

// Stream is one subscriber about to be served.
type Stream struct {
	Group *Group

	// Header is the response's header; the status is always 200. Prefix, which belongs to this stream alone, and First, whose
	// bytes others may share, go out before the feed's frames, in the group's encoding. The feed goes on at First.Next.
	Header *Header
	Prefix []byte
	First  Batch
}

// Header is the header of many responses.
type Header struct {
	fields http.Header
	lines  []byte // as they go over the wire, without an empty line at the end
}

// NewHeader prepares a header. Nobody may change fields afterwards.
func NewHeader(fields http.Header) *Header {
	var lines bytes.Buffer
	_ = fields.Write(&lines) // a Buffer cannot fail
	return &Header{fields, lines.Bytes()}
}

// Serve sends the stream until the client goes away, the group ends, or the Fanout drains. It may return long before
// that, when the connection was handed to an event loop. The group learns of the end in any case, exactly once.
func (f *Fanout) Serve(w http.ResponseWriter, r *http.Request, s Stream) {
	f.counters.open.Add(1)
	if f.adopt(w, r, s) {
		return
	}
	defer f.left(s.Group)
	if !f.mayServe() {
		return
	}
	defer f.serving.Done()
	f.servePortable(w, r, s)
}

// NeedsChunks reports whether the response to a request with these fields must come in chunks, so that only net/http can serve it. An event
// loop sends frames as they are and ends the response by closing. Varnish, when the header of such a response comes together with the first
// bytes of its body, keeps those back until more arrive: the first document would wait for the next heartbeat.
func NeedsChunks(fields interface{ Get(name string) string }) bool {
	return fields.Get("X-Varnish") != ""
}

// mayServe reports whether a goroutine may serve; Close waits for those that do.
func (f *Fanout) mayServe() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.closed:
		return false
	default:
		f.serving.Add(1)
		return true
	}
}

// left is called once for every stream that Serve was given.
func (f *Fanout) left(g *Group) {
	f.counters.open.Add(-1)
	g.left()
}

// Stats returns the counters.
func (f *Fanout) Stats() Stats {
	c := &f.counters
	return Stats{
		Open: c.open.Load(), Events: c.events.Load(), Bytes: c.bytes.Load(), TimedOut: c.timeout.Load(),
		Goroutines: c.goroutines.Load(), Behind: c.behind.Load(), Heartbeats: c.beats.Load(),
		FanOut: c.fanOut.Snapshot(), Lag: c.lag.Snapshot(),
	}
}

// Drain ends every stream, a number of them each second, each with its own advice when to come back, so that clients do not
// return all at once. It returns when all are gone or ctx is done. Refuse new streams before.
func (f *Fanout) Drain(ctx context.Context) error {
	f.mu.Lock()
	select {
	case <-f.draining:
	default:
		drain := f.DrainTime(ctx, f.counters.open.Load())
		f.drainTo = time.Now().Add(drain)
		close(f.draining)
		f.drainLoops(drain)
	}
	late := time.NewTimer(time.Until(f.drainTo))
	f.mu.Unlock()
	defer late.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for f.counters.open.Load() > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-late.C:
			f.mu.Lock()
			f.hurryAll()
			f.mu.Unlock()
		case <-tick.C:
		}
	}
	return nil
}

// hurryAll limits the time that streams with goroutines may take for what they are writing. The caller holds mu.
func (f *Fanout) hurryAll() {
	for _, p := range f.portables {
		p.hurry()
	}
}

// DrainTime is over how much time the end of so many streams is spread: as much as their number takes at the rate of a drain,
// but no more than ctx leaves. Thousands must not come back at once; whoever stops a server with a handful of streams does not wait.
func (f *Fanout) DrainTime(ctx context.Context, streams int64) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok || streams*int64(drainAtOnce) < int64(f.drainRate) {
		return 0
	}
	// A little less than there is: the last ones must still get their bytes out.
	left := max(0, time.Until(deadline)) * 9 / 10
	return min(left, time.Duration(streams)*time.Second/time.Duration(f.drainRate))
}

// drainAtOnce is the part of a second whose worth of streams ends without any spread: event loops look no more often.
const drainAtOnce = 10

// Close cuts every stream and ends the loops.
func (f *Fanout) Close() error {
	f.mu.Lock()
	select {
	case <-f.closed:
	default:
		close(f.closed)
		f.hurryAll()
	}
	f.mu.Unlock()
	f.stopLoops()
	f.serving.Wait()
	return nil
}

// farewell is the last frame of a stream that ends because this node goes away: nothing went wrong, so it is no
// error, only advice to come back at a moment of its own.
func farewell(compressed bool) []byte {
	wait := time.Second + rand.N(4*time.Second)
	frame := sse.AppendRetry(nil, wait)
	if compressed {
		return sse.AppendSegment(nil, frame)
	}
	return frame
}
