package jetstream

import (
	"sync/atomic"
	"time"
)

// faults is what this node knows of its own ignorance: when its link or the majority last failed, and whether news may have got lost
// since documents were last compared with the streams.
type faults struct {
	began time.Time
	last  atomic.Int64  // when there last was a fault, in nanoseconds since began; clocks that are set do not matter
	lost  atomic.Bool   // something may have been missed: compare everything
	wake  chan struct{} // holds one: compare now
}

func newFaults() *faults { return &faults{began: time.Now(), wake: make(chan struct{}, 1)} }

// note says that there is a fault: the link was lost or is new, or no majority answered.
func (f *faults) note() { f.last.Store(int64(time.Since(f.began))) }

// since is how long ago the last fault was, or the start.
func (f *faults) since() time.Duration { return time.Since(f.began) - time.Duration(f.last.Load()) }

// suspect says that news may have got lost, as far as a part can tell from a request that failed.
func (f *faults) suspect() { f.lost.Store(true) }

// missed says that news may have got lost, and has everything compared now.
func (f *faults) missed() {
	f.lost.Store(true)
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// hasLost reports whether news may have got lost since takeLost.
func (f *faults) hasLost() bool { return f.lost.Load() }

// takeLost is hasLost for whoever compares everything now.
func (f *faults) takeLost() bool { return f.lost.Swap(false) }
