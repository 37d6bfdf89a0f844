package fanout

import (
	"errors"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// pieceLen is how much is written before the write deadline moves on. A subscriber that takes less than this within the
// write timeout counts as one that takes nothing.
const pieceLen = 4 << 10

// headRest is how long the part of a header is that is the same for all streams. Whatever HTTP version or encryption a stream has,
// its header counts as if an event loop wrote it.
const headRest = len("HTTP/1.1 200 OK\r\n" + "Connection: close\r\nDate: " + http.TimeFormat + "\r\n\r\n")

// portable is a stream served by its own goroutine.
type portable struct {
	f    *Fanout
	g    *Group
	w    http.ResponseWriter
	ctrl *http.ResponseController
	beat *time.Timer

	// Readers that can be looked at are, while something is being written to them.
	peer    *peer // nil: it cannot be asked
	looking sync.Mutex
	look    *time.Timer
	writing bool // guarded by looking, as is what peer knows

	until atomic.Int64 // when it must have written what it was sent, in Unix nanoseconds; 0: it need not end
	observed
}

func (f *Fanout) servePortable(w http.ResponseWriter, r *http.Request, s Stream) {
	maps.Copy(w.Header(), s.Header.fields)
	w.WriteHeader(http.StatusOK)
	p := &portable{f: f, g: s.Group, w: w, ctrl: http.NewResponseController(w), beat: time.NewTimer(f.beatIn())}
	p.since, p.remote, p.cut = time.Now(), r.RemoteAddr, make(chan []byte, 1)
	defer p.beat.Stop()
	defer f.list(p)()
	p.g.enter(p)
	defer p.g.exit(p)
	f.counters.goroutines.Add(1)
	defer f.counters.goroutines.Add(-1)
	if f.socket != nil && r.ProtoMajor == 1 { // with HTTP/2, bytes that are taken may be those of another stream
		p.peer = newPeer(f.socket(r.Context()))
	}
	if p.peer != nil {
		defer p.peer.leave()
	}
	p.setDeadline()
	if !p.ok(p.ctrl.Flush()) { // the client shall see the header now, whatever comes
		return
	}
	p.count(Batch{}, len(s.Header.lines)+headRest)
	if p.write(Batch{Bytes: s.Prefix}) && p.write(s.First) {
		p.run(r, s.First.Next)
	}
}

func (p *portable) run(r *http.Request, cursor Cursor) {
	draining, drainAt := p.f.draining, (<-chan time.Time)(nil)
	var news time.Time // when that came which the next write will bring; zero: nothing that is measured
	for before := p.g.change(); ; {
		change := p.g.change()
		if change != before && news.IsZero() {
			news = before.since()
		}
		before = change
		if final, ended := p.g.isEnded(); ended {
			p.finish(final)
			return
		}
		var perhapsMore <-chan struct{}
		batch := p.g.feed.Since(cursor)
		cursor = batch.Next
		p.cursor.Store(uint64(cursor))
		if len(batch.Bytes) > 0 {
			if !p.writeMeasured(batch, news) {
				return
			}
			perhapsMore = always // not at once: who is slower than its topic must hear what follows, too
		}
		news = time.Time{} // it was told, or told this reader nothing
		select {
		case <-perhapsMore:
		case <-change.told:
		case <-p.g.ended:
		case <-p.beat.C:
			if p.hasVanished() || !p.write(Batch{Bytes: p.g.heartbeat}) {
				return
			}
			p.f.counters.beats.Add(1)
		case final := <-p.cut:
			p.finish(final)
			return
		case <-r.Context().Done():
			return
		case <-p.f.closed:
			return
		case <-draining:
			draining = nil
			timer := time.NewTimer(upTo(time.Until(p.f.drainTo)))
			defer timer.Stop()
			drainAt = timer.C
		case <-drainAt:
			p.finish(farewell(p.g.compressed))
			return
		}
	}
}

// always is ready.
var always = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// finish writes the last frame, for which there is as much time as for what came before.
func (p *portable) finish(final []byte) {
	p.until.Store(time.Now().Add(endTimeout).UnixNano())
	p.write(Batch{Bytes: final})
}

// writeMeasured writes a batch and counts how long it took since the change that it tells of.
func (p *portable) writeMeasured(b Batch, news time.Time) bool {
	if !p.write(b) {
		return false
	}
	if b.Delivery != nil {
		b.Delivery.Wrote(int64(b.Events), int64(len(b.Bytes)))
	}
	if news.IsZero() || b.Events == 0 {
		return true
	}
	took := time.Since(news)
	p.f.counters.lag.ObserveN(took, uint64(b.Events))
	if p.g.Sent != nil {
		p.g.Sent(Sent{Prompt: int64(b.Events), Lag: took})
	}
	return true
}

// write sends b in pieces, so that only a subscriber that takes nothing runs into the deadline.
func (p *portable) write(b Batch) bool {
	if p.peer != nil && len(b.Bytes) > 0 {
		p.beginLooking()
		defer p.endLooking()
	}
	for rest := b.Bytes; len(rest) > 0; {
		piece := rest[:min(len(rest), pieceLen)]
		rest = rest[len(piece):]
		p.setDeadline()
		_, err := p.w.Write(piece)
		if err == nil && len(rest) == 0 {
			err = p.ctrl.Flush()
		}
		if !p.ok(err) {
			return false
		}
	}
	if p.f.heartbeat >= p.f.writeTimeout {
		_ = p.ctrl.SetWriteDeadline(time.Time{}) // HTTP/2 ends a stream whose deadline passes also when nothing is written
	}
	p.count(b, 0)
	p.beat.Reset(p.f.beatIn())
	return true
}

// lookEvery is how often a full socket is looked at, as a part of the time it may stay full.
const lookEvery = 32

func (p *portable) beginLooking() {
	p.looking.Lock()
	defer p.looking.Unlock()
	p.writing = true
	if p.look == nil {
		p.look = time.AfterFunc(p.f.writeTimeout/lookEvery, p.lookAfter)
		return
	}
	p.look.Reset(p.f.writeTimeout / lookEvery)
}

func (p *portable) endLooking() {
	p.looking.Lock()
	defer p.looking.Unlock()
	p.writing = false
	p.look.Stop()
}

// lookAfter sees whether the reader takes anything of what is being written. A write says so only when a third of the socket's buffer
// is free, which a slow reader may need minutes for.
func (p *portable) lookAfter() {
	p.looking.Lock()
	defer p.looking.Unlock()
	if !p.writing {
		return
	}
	switch took, vanished := p.peer.look(); {
	case vanished:
		_ = p.ctrl.SetWriteDeadline(time.Now())
	case took:
		p.setDeadline()
	}
	p.look.Reset(p.f.writeTimeout / lookEvery)
}

// hasVanished reports whether the reader left bytes of ours unanswered for too long.
func (p *portable) hasVanished() bool {
	if p.peer == nil {
		return false
	}
	p.looking.Lock()
	defer p.looking.Unlock()
	_, vanished := p.peer.look()
	return vanished
}

// WriteBody writes the body of a response that is no stream, in pieces as a stream is written: a client that takes nothing of it holds
// nobody for ever. It returns how many bytes were taken.
func (f *Fanout) WriteBody(w http.ResponseWriter, b []byte) (n int) {
	w.Header().Set("Content-Length", strconv.Itoa(len(b))) // flushing would otherwise make it chunks
	ctrl := http.NewResponseController(w)
	for n < len(b) {
		_ = ctrl.SetWriteDeadline(time.Now().Add(f.writeTimeout))
		m, err := w.Write(b[n:min(n+pieceLen, len(b))])
		if n += m; err != nil {
			return n
		}
	}
	if ctrl.Flush() == nil {
		_ = ctrl.SetWriteDeadline(time.Time{}) // it is the connection's, on which more may be asked
	}
	return n
}

// count counts a batch that was sent, and so many bytes of the header.
func (p *portable) count(b Batch, head int) {
	n := head + len(b.Bytes)
	p.f.counters.events.Add(uint64(b.Events))
	p.f.counters.bytes.Add(uint64(n))
	p.bytes.Add(uint64(n))
	if p.g.Sent != nil && n > 0 {
		p.g.Sent(Sent{Events: int64(b.Events), Bytes: int64(n), Full: int64(head + b.full())})
	}
}

// ok reports whether a write went well, and counts readers that took nothing.
func (p *portable) ok(err error) bool {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		p.f.counters.timeout.Add(1)
	}
	return err == nil
}

// setDeadline gives the next write its time. Not every ResponseWriter has deadlines; without them the connection's own
// limits must do.
func (p *portable) setDeadline() {
	_ = p.ctrl.SetWriteDeadline(time.Now().Add(p.f.writeTimeout))
	if p.mustEnd() { // asked after it was set, or an earlier deadline could be overwritten
		p.hurry()
	}
}

func (p *portable) mustEnd() bool {
	select {
	case <-p.g.ended:
		return true
	case <-p.f.closed:
		return true
	case <-p.f.draining:
		if !time.Now().Before(p.f.drainTo) {
			return true
		}
	default:
	}
	return p.until.Load() != 0
}

// hurry limits the time that a stream which must end may still take to finish what it was sent.
func (p *portable) hurry() {
	p.until.CompareAndSwap(0, time.Now().Add(endTimeout).UnixNano())
	_ = p.ctrl.SetWriteDeadline(time.Unix(0, p.until.Load()))
}

// endTimeout is how long a subscriber is waited for to take what it was sent when its stream must end. Streams end within a second, in
// which the word must spread that they do, and loops look at those they wait for only now and then.
const endTimeout = 700 * time.Millisecond

// beatIn is when the next heartbeat is due after a write: a little early and never at the same time for everybody, so
// that connections made together do not beat together.
func (f *Fanout) beatIn() time.Duration {
	return f.heartbeat - upTo(f.heartbeat/10)
}

func upTo(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return rand.N(d)
}
