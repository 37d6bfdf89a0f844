package fanout

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// loops are the event loops of a Fanout.
type loops struct {
	all        []*loop
	sendBuffer int
	pace       time.Duration // per member
	next       atomic.Uint32 // which loop gets the next connection
}

// loop owns sockets: it alone writes to them and closes them. Others put work into its inbox and wake it.
type loop struct {
	// Static after newLoop.
	f      *Fanout
	number int             // among all loops
	epoll  *os.File        // see wait
	events syscall.RawConn // of epoll
	fd     int             // of epoll, good as long as run runs
	event  int             // an eventfd, to be woken by
	done   chan struct{}

	sleeping atomic.Bool // or about to sleep: whoever adds work must write to event

	// Guarded by mu: the inbox.
	mu       sync.Mutex
	arrivals []*conn
	dirty    []*members // groups with news
	drainIn  time.Duration
	draining bool
	stopping bool
	stopped  bool

	// Owned by run.
	conns   []*conn    // by descriptor
	count   int        // how many there are
	queue   []*members // groups being served, in turn
	paced   []*members // groups with news whose time has not come
	stalled []*conn    // whose sockets are full
	wheel   wheel
	leaving leaving
	now     time.Time
	sent    tally
	info    unix.TCPInfo
	scratch [4 << 10]byte
}

// tally counts locally what would be costly to count together.
type tally struct{ events, bytes uint64 }

// sliceLen is how many subscribers of one group are served before the next group has its turn.
const sliceLen = 256

func (f *Fanout) startLoops(opts Options) error {
	n := opts.Loops
	if n == 0 {
		n = runtime.GOMAXPROCS(0)
	}
	f.loops.sendBuffer, f.loops.pace = orDefault(opts.SendBuffer, defaultSendBuffer), orDefault(opts.Pace, 30*time.Microsecond)
	for range max(n, 0) {
		l, err := newLoop(f, len(f.loops.all))
		if err != nil {
			f.stopLoops()
			return err
		}
		f.loops.all = append(f.loops.all, l)
		go l.run()
	}
	return nil
}

func newLoop(f *Fanout, number int) (*loop, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("event loop: %w", err)
	}
	now := time.Now()
	l := &loop{f: f, number: number, event: -1, done: make(chan struct{}), wheel: newWheel(f.heartbeat, now), now: now}
	if err := l.open(epoll); err != nil {
		unix.Close(epoll)
		return nil, fmt.Errorf("event loop: %w", err)
	}
	return l, nil
}

func (l *loop) open(epoll int) error {
	event, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return err
	}
	if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, event, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(event)}); err != nil {
		unix.Close(event)
		return err
	}
	if err := unix.SetNonblock(epoll, true); err != nil { // which makes os.NewFile register it with the runtime
		unix.Close(event)
		return err
	}
	file := os.NewFile(uintptr(epoll), "epoll")
	if l.events, err = file.SyscallConn(); err != nil {
		unix.Close(event)
		return err
	}
	l.epoll, l.event, l.fd = file, event, epoll
	return nil
}

func (f *Fanout) stopLoops() {
	for _, l := range f.loops.all {
		l.mu.Lock()
		l.stopping = true
		l.mu.Unlock()
		l.wake()
	}
	for _, l := range f.loops.all {
		<-l.done
	}
}

func (f *Fanout) drainLoops(d time.Duration) {
	for _, l := range f.loops.all {
		l.mu.Lock()
		l.draining, l.drainIn = true, d
		l.mu.Unlock()
		l.wake()
	}
}

// wake makes sure that the loop looks into its inbox soon.
func (l *loop) wake() {
	if l.sleeping.CompareAndSwap(true, false) {
		var one [8]byte
		binary.NativeEndian.PutUint64(one[:], 1)
		_, _ = unix.Write(l.event, one[:]) // fails only when it is woken already
	}
}

// run is the loop.
func (l *loop) run() {
	defer close(l.done)
	defer l.shut()
	events := make([]unix.EpollEvent, 256)
	for {
		n, err := l.wait(events, l.timeout())
		l.sleeping.Store(false)
		if err != nil {
			l.f.log.Error("event loop failed", "err", err)
			return
		}
		l.now = time.Now()
		for i := range n {
			l.handle(&events[i])
		}
		l.tick() // before arrivals, which enter the wheel at the present tick
		if !l.takeInbox() {
			return
		}
		l.enqueuePaced()
		l.serveQueue()
		l.report()
	}
}

// wait returns what the kernel has to say, waiting for it at most so long; negative means for ever. The epoll descriptor is
// itself registered with the runtime's poller, so waiting parks a goroutine. A blocking epoll_wait would keep the
// processor from everybody else until the runtime's monitor takes it away, 10 ms later.
func (l *loop) wait(events []unix.EpollEvent, timeout time.Duration) (n int, err error) {
	var deadline time.Time
	if timeout > 0 {
		deadline = time.Now().Add(timeout)
	}
	if timeout != 0 {
		if err := l.epoll.SetReadDeadline(deadline); err != nil {
			return 0, err
		}
	}
	var failed error
	err = l.events.Read(func(fd uintptr) bool {
		n, failed = unix.EpollWait(int(fd), events, 0)
		return n > 0 || timeout == 0 || failed != nil
	})
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(failed, unix.EINTR):
		return 0, nil
	case failed != nil:
		return 0, failed
	}
	return n, err
}

// timeout is how long the loop may sleep. It promises to be woken before it looks for work a last time, so that no work can
// come unnoticed.
func (l *loop) timeout() time.Duration {
	if len(l.queue) > 0 {
		return 0
	}
	l.sleeping.Store(true)
	l.mu.Lock()
	busy := len(l.arrivals)+len(l.dirty) > 0 || l.stopping || l.draining != l.leaving.begun
	l.mu.Unlock()
	switch {
	case busy:
		l.sleeping.Store(false)
		return 0
	case l.count == 0:
		return -1
	}
	sleep := l.wheel.sleep(l.now)
	for _, m := range l.paced {
		sleep = min(sleep, max(0, m.notBefore.Sub(l.now)))
	}
	return sleep
}

// takeInbox does what others left for the loop. It returns false when the loop shall end.
func (l *loop) takeInbox() bool {
	l.mu.Lock()
	arrivals, dirty := l.arrivals, l.dirty
	l.arrivals, l.dirty = nil, nil
	for _, m := range dirty {
		// A group that must wait for its next pass stays queued: what is published until then need not wake the loop.
		m.queued = !m.serving && m.notBefore.After(l.now)
	}
	draining, drainIn, stopping := l.draining, l.drainIn, l.stopping
	l.mu.Unlock()
	if stopping {
		for _, c := range arrivals {
			l.discard(c)
		}
		return false
	}
	for _, c := range arrivals {
		l.admit(c)
	}
	for _, m := range dirty {
		l.enqueue(m)
	}
	if draining && !l.leaving.begun {
		l.beginLeaving(drainIn)
	}
	return true
}

// enqueue begins another pass over a group, or lets the pass under way be followed by another. Passes over a large group keep a
// distance: what is published meanwhile leaves in one write, which is what makes a crowd cheap.
func (l *loop) enqueue(m *members) {
	switch {
	case m.serving:
		m.again = true
	case m.paced:
	case m.notBefore.After(l.now):
		m.paced = true
		l.paced = append(l.paced, m)
	default:
		m.serving, m.next = true, 0
		m.notBefore = l.now.Add(m.pace())
		l.queue = append(l.queue, m)
	}
}

// enqueuePaced begins the passes whose time has come.
func (l *loop) enqueuePaced() {
	waiting := l.paced
	l.paced = l.paced[:0]
	for _, m := range waiting {
		if m.notBefore.After(l.now) {
			l.paced = append(l.paced, m)
			continue
		}
		m.paced = false
		l.mu.Lock()
		m.queued = false // before the feed is asked: what comes later must wake the loop again
		l.mu.Unlock()
		l.enqueue(m)
	}
	clear(waiting[len(l.paced):])
}

// serveQueue gives each waiting group a slice of the loop's time.
func (l *loop) serveQueue() {
	for n := len(l.queue); n > 0; n-- {
		m := l.queue[0]
		l.queue[0] = nil
		l.queue = l.queue[1:]
		if l.serve(m) {
			l.queue = append(l.queue, m)
			continue
		}
		m.serving = false
		if m.again {
			m.again = false
			l.enqueue(m)
		}
	}
	if len(l.queue) == 0 {
		l.queue = nil // its memory may have moved far
	}
}

// serve brings a slice of the group's members up to date. It returns whether more are left.
func (l *loop) serve(m *members) bool {
	final, ended := m.group.isEnded()
	var batch Batch
	var from Cursor
	known := false
	for n := 0; n < sliceLen && m.next < len(m.conns); n++ {
		c := m.conns[m.next]
		m.next++
		switch {
		case c.stall != nil:
			if ended {
				c.stall.hurry(l.now)
			}
		case ended:
			l.finish(c, final)
		default:
			// Most members are at the same place, so the feed is asked once for all of them.
			if !known || c.cursor != from {
				batch, from, known = m.group.feed.Since(c.cursor), c.cursor, true
				m.adapt(batch)
			}
			l.send(c, batch)
		}
	}
	return m.next < len(m.conns)
}

// report adds the loop's own counts to the common ones.
func (l *loop) report() {
	if l.sent != (tally{}) {
		l.f.counters.events.Add(l.sent.events)
		l.f.counters.bytes.Add(l.sent.bytes)
		l.sent = tally{}
	}
}

// shut closes everything the loop owns.
func (l *loop) shut() {
	l.mu.Lock()
	l.stopped = true
	arrivals := l.arrivals
	l.arrivals = nil
	l.mu.Unlock()
	for _, c := range arrivals {
		l.discard(c)
	}
	for _, c := range l.conns {
		if c != nil {
			l.drop(c)
		}
	}
	l.report()
	unix.Close(l.event)
	l.epoll.Close()
}
