package fanout

import (
	"sync"
	"sync/atomic"
	"time"
)

// inbox holds what other goroutines want of a loop, and wakes the loop for it.
//
// No work goes unnoticed: the loop declares itself asleep before it looks into the inbox for the last time, and whoever adds work
// afterwards sees that and wakes it.
type inbox struct {
	woken    chan struct{} // holds one
	sleeping atomic.Bool   // the loop sleeps, or is about to

	// Guarded by mu.
	mu     sync.Mutex
	work   work
	closed bool // no more work is accepted
}

// work is what an inbox holds at one moment.
type work struct {
	arrivals []*conn       // connections that the loop shall own
	news     []*members    // groups whose feed changed
	tasks    []func()      // to run between two rounds
	drain    bool          // begin to drain
	drainFor time.Duration // over so much time
	stop     bool          // end the loop
}

func (w *work) isEmpty() bool {
	return len(w.arrivals)+len(w.news)+len(w.tasks) == 0 && !w.drain && !w.stop
}

func newInbox() inbox { return inbox{woken: make(chan struct{}, 1)} }

// wake makes sure that the loop looks into its inbox soon. It goes through a channel and not through the kernel: the scheduler
// lets a goroutine that was woken so run next, but looks at descriptors only when it has nothing else to do.
func (in *inbox) wake() {
	if in.sleeping.CompareAndSwap(true, false) {
		select {
		case in.woken <- struct{}{}:
		default:
		}
	}
}

// add changes the work and wakes the loop. It returns false, and has changed nothing, if the loop ends.
func (in *inbox) add(change func(*work)) bool {
	in.mu.Lock()
	if in.closed || in.work.stop {
		in.mu.Unlock()
		return false
	}
	change(&in.work)
	in.mu.Unlock()
	in.wake()
	return true
}

// addNews notes that the feed of a group changed. A group that is noted already does not wake the loop again. measured says that the
// moment counts for latencies.
func (in *inbox) addNews(m *members, measured bool) {
	in.mu.Lock()
	fresh := !m.noted
	if fresh {
		m.noted = true
		if measured {
			m.notedAt = time.Now()
		}
		in.work.news = append(in.work.news, m)
	}
	in.mu.Unlock()
	if fresh {
		in.wake()
	}
}

// take empties the inbox. A group that must wait for its next pass stays noted: what is published until then need not wake the loop.
func (in *inbox) take(now time.Time) work {
	in.mu.Lock()
	defer in.mu.Unlock()
	taken := in.work
	in.work = work{stop: taken.stop}
	for _, m := range taken.news {
		m.noted = m.mustWait(now)
		m.addNews(m.notedAt)
	}
	return taken
}

// forget makes the next change of a group's feed wake the loop again. Call it before the feed is asked, or miss a change.
func (in *inbox) forget(m *members) {
	in.mu.Lock()
	defer in.mu.Unlock()
	m.noted = false
}

// mayRest declares the loop asleep. It returns false, and the loop is awake, if there is work.
func (in *inbox) mayRest() bool {
	in.sleeping.Store(true)
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.work.isEmpty() {
		in.sleeping.Store(false)
		return false
	}
	return true
}

// close accepts no more work and returns what is left.
func (in *inbox) close() work {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
	rest := in.work
	in.work = work{}
	return rest
}
