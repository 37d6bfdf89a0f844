package fanout

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/freshet-io/freshet/internal/histogram"
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
	f       *Fanout
	number  int             // among all loops
	epoll   *os.File        // see listen
	events  syscall.RawConn // of epoll
	fd      int             // of epoll, good as long as run runs
	done    chan struct{}
	woken   chan struct{} // holds one; there is work in the inbox
	ready   chan struct{} // holds one; the kernel has something to say
	polled  chan struct{} // answers ready: it was heard
	stopped chan struct{} // closed when run has ended

	sleeping atomic.Bool // or about to sleep: whoever adds work must say so to woken

	// Guarded by mu: the inbox.
	mu       sync.Mutex
	arrivals []*conn
	dirty    []*members // groups with news
	tasks    []func()   // for operators
	drainIn  time.Duration
	draining bool
	stopping bool
	shut     bool

	// Owned by run.
	conns   []*conn    // by descriptor
	count   int        // how many there are
	serial  uint32     // of the last one that came
	queue   []*members // groups being served, in turn
	paced   []*members // groups with news whose time has not come
	stalled []*conn    // whose sockets are full
	wheel   wheel
	leaving leaving
	now     time.Time
	sent    tally
	touched []*members // with something to report
	behind  int64      // how many were stalled at the last report
	lag     histogram.Local
	fanOut  histogram.Local
	info    unix.TCPInfo
	scratch [4 << 10]byte

	nextChores time.Time
}

// tally counts locally what would be costly to count together.
type tally struct{ events, bytes, beats uint64 }

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
	l := &loop{
		f: f, number: number, wheel: newWheel(f.heartbeat, now), now: now,
		done: make(chan struct{}), woken: make(chan struct{}, 1), ready: make(chan struct{}, 1), polled: make(chan struct{}, 1),
		stopped: make(chan struct{}),
	}
	if err := l.open(epoll); err != nil {
		unix.Close(epoll)
		return nil, fmt.Errorf("event loop: %w", err)
	}
	return l, nil
}

func (l *loop) open(epoll int) error {
	if err := unix.SetNonblock(epoll, true); err != nil { // which makes os.NewFile register it with the runtime
		return err
	}
	file := os.NewFile(uintptr(epoll), "epoll")
	events, err := file.SyscallConn()
	if err != nil {
		return err
	}
	l.epoll, l.events, l.fd = file, events, epoll
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

// wake makes sure that the loop looks into its inbox soon. It goes through a channel and not through the kernel: the scheduler
// lets a goroutine that was woken so run next, but looks at descriptors only when it has nothing else to do.
func (l *loop) wake() {
	if l.sleeping.CompareAndSwap(true, false) {
		select {
		case l.woken <- struct{}{}:
		default:
		}
	}
}

// run is the loop.
func (l *loop) run() {
	defer close(l.done)
	defer l.close()
	go l.listen()
	events := make([]unix.EpollEvent, 256)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		said := l.wait(l.timeout(), timer)
		l.sleeping.Store(false)
		l.now = time.Now()
		if said {
			if err := l.hear(events); err != nil {
				l.f.log.Error("event loop failed", "err", err)
				return
			}
		}
		l.beat() // before arrivals, which enter the wheel at the present tick
		l.chores()
		if !l.takeInbox() {
			return
		}
		l.enqueuePaced()
		l.serveQueue()
		l.report()
	}
}

// wait returns when there is something to do, and whether the kernel has something to say. Negative means to wait for ever.
func (l *loop) wait(timeout time.Duration, timer *time.Timer) (said bool) {
	if timeout == 0 {
		select {
		case <-l.ready:
			return true
		default:
			return false
		}
	}
	var late <-chan time.Time
	if timeout > 0 {
		timer.Reset(timeout)
		late = timer.C
	}
	select {
	case <-l.woken:
	case <-l.ready:
		return true
	case <-late:
	}
	return false
}

// listen waits for the kernel in a goroutine of its own. The epoll descriptor is itself registered with the runtime's poller; a
// blocking epoll_wait would keep the processor from everybody else until the runtime's monitor takes it away, 10 ms later.
func (l *loop) listen() {
	defer l.epoll.Close()
	for {
		// Asked and not waited for first: what came before Read was called does not wake it.
		if err := l.events.Read(func(fd uintptr) bool { return isReadable(int(fd)) || l.hasStopped() }); err != nil || l.hasStopped() {
			return
		}
		l.ready <- struct{}{}
		select {
		case <-l.polled:
		case <-l.stopped:
			return
		}
	}
}

func (l *loop) hasStopped() bool {
	select {
	case <-l.stopped:
		return true
	default:
		return false
	}
}

func isReadable(fd int) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return n > 0 || err != nil && err != unix.EINTR
}

// hear takes everything that the kernel has to say.
func (l *loop) hear(events []unix.EpollEvent) error {
	defer func() { l.polled <- struct{}{} }()
	for {
		n, err := unix.EpollWait(l.fd, events, 0)
		if err != nil && err != unix.EINTR {
			return err
		}
		for i := range max(n, 0) {
			l.handle(&events[i])
		}
		if n < len(events) && err == nil {
			return nil
		}
	}
}

// timeout is how long the loop may sleep. It promises to be woken before it looks for work a last time, so that no work can
// come unnoticed.
func (l *loop) timeout() time.Duration {
	if len(l.queue) > 0 {
		return 0
	}
	l.sleeping.Store(true)
	l.mu.Lock()
	busy := len(l.arrivals)+len(l.dirty)+len(l.tasks) > 0 || l.stopping || l.draining != l.leaving.begun
	l.mu.Unlock()
	switch {
	case busy:
		l.sleeping.Store(false)
		return 0
	case l.count == 0:
		return -1
	}
	sleep := l.wheel.sleep(l.now)
	if l.hasChores() {
		sleep = min(sleep, max(0, l.nextChores.Sub(l.now)))
	}
	for _, m := range l.paced {
		sleep = min(sleep, max(0, m.notBefore.Sub(l.now)))
	}
	return sleep
}

// takeInbox does what others left for the loop. It returns false when the loop shall end.
func (l *loop) takeInbox() bool {
	l.mu.Lock()
	arrivals, dirty, tasks := l.arrivals, l.dirty, l.tasks
	l.arrivals, l.dirty, l.tasks = nil, nil, nil
	for _, m := range dirty {
		// A group that must wait for its next pass stays queued: what is published until then need not wake the loop.
		m.queued = !m.serving && m.notBefore.After(l.now)
		if m.news.IsZero() {
			m.news = m.since
		}
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
	for _, task := range tasks {
		task()
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
		m.beginPass(l.now)
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
		m.endPass(time.Now())
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
	before := l.sent
	var batch Batch
	var delivery Delivery
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
				m.adapt(from, batch)
				if batch.Delivery != nil {
					delivery = batch.Delivery
				}
			}
			m.again = m.again || batch.More
			l.send(c, batch)
		}
	}
	l.measure(m, l.sent.events-before.events)
	if delivery != nil {
		delivery.Wrote(int64(l.sent.events-before.events), int64(l.sent.bytes-before.bytes))
	}
	return m.next < len(m.conns)
}

// measure counts how long those who were just served had to wait, and at the end of a pass how long it took in all.
func (l *loop) measure(m *members, events uint64) {
	if m.bringing.IsZero() {
		return
	}
	took := time.Since(m.bringing)
	if events > 0 {
		l.lag.Observe(took, events)
		if m.group.Sent != nil {
			m.sent.Prompt, m.sent.Lag = int64(events), took // a group has its turn once a round
		}
	}
	if m.next >= len(m.conns) {
		l.fanOut.Observe(took, 1)
	}
}

// report adds the loop's own counts to the common ones.
func (l *loop) report() {
	if l.sent != (tally{}) {
		l.f.counters.events.Add(l.sent.events)
		l.f.counters.bytes.Add(l.sent.bytes)
		l.f.counters.beats.Add(l.sent.beats)
		l.sent = tally{}
		l.lag.MoveTo(&l.f.counters.lag)
		l.fanOut.MoveTo(&l.f.counters.fanOut)
	}
	if n := int64(len(l.stalled)); n != l.behind {
		l.f.counters.behind.Add(n - l.behind)
		l.behind = n
	}
	for i, m := range l.touched {
		m.group.Sent(m.sent)
		m.sent = Sent{}
		l.touched[i] = nil
	}
	l.touched = l.touched[:0]
}

// account counts what a member was sent. It is told at the end of the loop's round, once for all members of a group.
func (l *loop) account(m *members, events, bytes, full int) {
	if m.group.Sent == nil {
		return
	}
	if m.sent == (Sent{}) {
		l.touched = append(l.touched, m)
	}
	m.sent.Events += int64(events)
	m.sent.Bytes += int64(bytes)
	m.sent.Full += int64(full)
}

// close closes everything the loop owns.
func (l *loop) close() {
	l.mu.Lock()
	l.shut = true
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
	close(l.stopped)
	_ = l.epoll.SetReadDeadline(time.Now()) // so that listen notices
}
