// Package histogram counts durations in buckets whose bounds double. It deliberately knows nothing of how they are shown.
//
// A Histogram is safe for concurrent use. A Local belongs to one goroutine, which adds it to a Histogram now and then: that way
// what happens half a million times a second costs no atomic operation.
package histogram

import (
	"math/bits"
	"sync/atomic"
	"time"
)

const (
	first   = 100 * time.Microsecond // the lowest bound
	buckets = 18                     // the highest bound is first << 16, 6.5 s; the last bucket is for what is beyond
)

// Histogram counts durations.
type Histogram struct {
	counts [buckets]atomic.Uint64
	sum    atomic.Int64
}

// Local is a part of a Histogram that one goroutine owns.
type Local struct {
	counts [buckets]uint64
	sum    int64
	any    bool
}

func bucket(d time.Duration) int {
	if d <= first {
		return 0
	}
	return min(bits.Len64(uint64((d-1)/first)), buckets-1)
}

// Observe counts a duration.
func (h *Histogram) Observe(d time.Duration) {
	h.counts[bucket(d)].Add(1)
	h.sum.Add(int64(d))
}

// Observe counts a duration n times.
func (l *Local) Observe(d time.Duration, n uint64) {
	l.counts[bucket(d)] += n
	l.sum += int64(d) * int64(n)
	l.any = true
}

// MoveTo adds everything to h and begins anew.
func (l *Local) MoveTo(h *Histogram) {
	if !l.any {
		return
	}
	for i, n := range l.counts {
		if n > 0 {
			h.counts[i].Add(n)
		}
	}
	h.sum.Add(l.sum)
	*l = Local{}
}

// Snapshot is what a Histogram counted.
type Snapshot struct {
	Count   uint64
	Sum     time.Duration
	Buckets map[float64]uint64 // by upper bound in seconds: how many were at or below it
}

// Snapshot returns what was counted so far.
func (h *Histogram) Snapshot() Snapshot {
	s := Snapshot{Sum: time.Duration(h.sum.Load()), Buckets: make(map[float64]uint64, buckets-1)}
	for i := range h.counts {
		s.Count += h.counts[i].Load()
		if i < buckets-1 {
			s.Buckets[(first << i).Seconds()] = s.Count
		}
	}
	return s
}
