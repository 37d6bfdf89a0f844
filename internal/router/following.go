package router

import (
	"sync"
	"time"
)

// watch is the subscription of this node to a topic's documents in the grid. It begins with the first use and ends for good.
type watch struct {
	once sync.Once
	err  error  // why there is none; set once
	stop func() // set once
}

// start begins the watch unless it began before. It reports whether it did so now.
func (w *watch) start(begin func() (stop func(), err error)) (started bool, err error) {
	w.once.Do(func() {
		started = true
		w.stop, w.err = begin()
	})
	return started, w.err
}

// end ends the watch. Who comes later gets the reason.
func (w *watch) end(reason error) {
	w.once.Do(func() { w.err = reason })
	if w.stop != nil {
		w.stop()
	}
}

// usage counts who needs a topic to be followed here. It is guarded by Router.mu.
type usage struct {
	users int
	last  time.Time // when one of them was done
}

func (u *usage) acquire() { u.users++ }

func (u *usage) release(now time.Time) {
	u.users--
	u.last = now
}

// isIdle reports whether nobody has needed the topic for so long.
func (u *usage) isIdle(now time.Time, linger time.Duration) bool {
	return u.users == 0 && now.Sub(u.last) >= linger
}
