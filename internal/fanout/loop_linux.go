package fanout

import (
	"runtime"
	"sync/atomic"
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

// loop owns sockets: it alone writes to them and closes them. Others put work into its inbox.
type loop struct {
	// Static after newLoop.
	f      *Fanout
	number int // among all loops
	poller *poller
	done   chan struct{} // closed when run has ended

	inbox inbox

	// Owned by run.
	now        time.Time // of the present round
	table      table
	heartbeats heartbeats
	scheduler  scheduler
	stalls     stalls
	drain      drain
	meter      meter
	nextChores time.Time
	info       unix.TCPInfo
	scratch    [4 << 10]byte
}

// sliceLen is how many subscribers of one group are served before the next group has its slice.
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
	poller, err := newPoller()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &loop{
		f: f, number: number, poller: poller, done: make(chan struct{}), inbox: newInbox(), now: now, heartbeats: newHeartbeats(f.heartbeat, now),
	}, nil
}

func (f *Fanout) stopLoops() {
	for _, l := range f.loops.all {
		l.inbox.add(func(w *work) { w.stop = true })
	}
	for _, l := range f.loops.all {
		<-l.done
	}
}

func (f *Fanout) drainLoops(over time.Duration) {
	for _, l := range f.loops.all {
		l.inbox.add(func(w *work) { w.drain, w.drainFor = true, over })
	}
}

// arrive gives connections to the loop.
func (l *loop) arrive(conns ...*conn) {
	if l.inbox.add(func(w *work) { w.arrivals = append(w.arrivals, conns...) }) {
		return
	}
	for _, c := range conns {
		l.discard(c)
	}
}

// do has the loop run fn between two rounds, and waits for it. It returns false if the loop has ended.
func (l *loop) do(fn func()) bool {
	done := make(chan struct{})
	if !l.inbox.add(func(w *work) { w.tasks = append(w.tasks, func() { fn(); close(done) }) }) {
		return false
	}
	select {
	case <-done:
		return true
	case <-l.done:
		return false
	}
}

// run is the loop.
func (l *loop) run() {
	defer close(l.done)
	defer l.close()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		ready := l.wait(l.timeout(), timer)
		l.inbox.sleeping.Store(false)
		l.now = time.Now()
		if ready {
			if err := l.poller.take(l.handle); err != nil {
				l.f.log.Error("event loop failed", "err", err)
				return
			}
		}
		l.beat() // before arrivals, which enter the wheel at the present tick
		l.chores()
		if !l.takeInbox() {
			return
		}
		l.scheduler.beginWaiting(l.now, l.inbox.forget)
		l.scheduler.round(l.now, l.serve)
		l.meter.report(&l.f.counters, len(l.stalls))
	}
}

// wait returns when there is something to do, and whether the poller has events. Negative means to wait for ever.
func (l *loop) wait(timeout time.Duration, timer *time.Timer) (ready bool) {
	if timeout == 0 {
		select {
		case <-l.poller.ready:
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
	case <-l.inbox.woken:
	case <-l.poller.ready:
		return true
	case <-late:
	}
	return false
}

// timeout is how long the loop may sleep.
func (l *loop) timeout() time.Duration {
	switch {
	case l.scheduler.isBusy() || !l.inbox.mayRest():
		return 0
	case l.table.count == 0:
		return -1
	}
	sleep := l.heartbeats.sleep(l.now)
	if l.hasChores() {
		sleep = min(sleep, max(0, l.nextChores.Sub(l.now)))
	}
	return l.scheduler.sleep(l.now, sleep)
}

// takeInbox does what others left for the loop. It returns false when the loop shall end.
func (l *loop) takeInbox() bool {
	work := l.inbox.take(l.now)
	if work.stop {
		l.discardAll(work.arrivals)
		return false
	}
	for _, c := range work.arrivals {
		l.admit(c)
	}
	for _, m := range work.news {
		l.scheduler.add(m, l.now)
	}
	for _, task := range work.tasks {
		task()
	}
	if work.drain {
		l.beginDrain(work.drainFor)
	}
	return true
}

// serve brings a slice of the group's members up to date. It returns whether more are left.
func (l *loop) serve(m *members) (more bool) {
	final, ended := m.group.isEnded()
	before := l.meter.sent
	var batch Batch
	var delivery Delivery
	var from Cursor
	known := false
	for n := 0; n < sliceLen && !m.isDone(); n++ {
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
				m.adapt(from, &batch, m.next == 1)
				if batch.Delivery != nil {
					delivery = batch.Delivery
				}
			}
			m.again = m.again || batch.More
			l.send(c, &batch)
		}
	}
	sent := l.meter.sent.minus(before)
	l.meter.measure(m, sent.events)
	sent.tell(delivery)
	return !m.isDone()
}

// choresEvery is how often connections that are stalled or draining are looked at.
const choresEvery = 100 * time.Millisecond

func (l *loop) hasChores() bool { return l.drain.begun || len(l.stalls) > 0 }

func (l *loop) chores() {
	if !l.hasChores() || l.now.Before(l.nextChores) {
		return
	}
	l.nextChores = l.now.Add(choresEvery)
	l.cutStalled()
	l.drainSome()
}

// close closes everything the loop owns.
func (l *loop) close() {
	l.discardAll(l.inbox.close().arrivals)
	for c := range l.table.all() {
		l.drop(c)
	}
	l.meter.report(&l.f.counters, len(l.stalls))
	l.poller.close()
}
