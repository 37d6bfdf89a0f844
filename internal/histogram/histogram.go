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

// Buckets is how many there are. The highest bound is 6.5 s; the last bucket is for what is beyond.
const Buckets = 18

const first = 100 * time.Microsecond // the lowest bound

// Histogram counts durations.
type Histogram struct {
	counts [Buckets]atomic.Uint64
	sum    atomic.Int64
}

// Local is a part of a Histogram that one goroutine owns.
type Local struct {
	counts [Buckets]uint64
	sum    int64
	any    bool
}

// Bucket is where a duration is counted.
func Bucket(d time.Duration) int {
	if d <= first {
		return 0
	}
	return min(bits.Len64(uint64((d-1)/first)), Buckets-1)
}

// Bounds are the upper bounds of all buckets but the last, which has none.
func Bounds() []time.Duration {
	all := make([]time.Duration, Buckets-1)
	for i := range all {
		all[i] = first << i
	}
	return all
}

// Quantile estimates below which duration the part q of what was counted lies, as if what is in a bucket lay evenly between its
// bounds. What is beyond the highest bound is that bound; nothing counted is 0.
func Quantile(counts *[Buckets]int64, q float64) time.Duration {
	total := int64(0)
	for _, n := range counts {
		total += n
	}
	rank, below := q*float64(total), int64(0)
	for i, n := range counts {
		if n == 0 || float64(below+n) < rank {
			below += n
			continue
		}
		if i == Buckets-1 {
			break
		}
		low, high := time.Duration(0), first<<i
		if i > 0 {
			low = high / 2
		}
		return low + time.Duration(float64(high-low)*(rank-float64(below))/float64(n))
	}
	if total == 0 {
		return 0
	}
	return first << (Buckets - 2)
}

// Observe counts a duration.
func (h *Histogram) Observe(d time.Duration) { h.ObserveN(d, 1) }

// ObserveN counts a duration n times.
func (h *Histogram) ObserveN(d time.Duration, n uint64) {
	h.counts[Bucket(d)].Add(n)
	h.sum.Add(int64(d) * int64(n))
}

// Observe counts a duration n times.
func (l *Local) Observe(d time.Duration, n uint64) {
	l.counts[Bucket(d)] += n
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
	s := Snapshot{Sum: time.Duration(h.sum.Load()), Buckets: make(map[float64]uint64, Buckets-1)}
	for i := range h.counts {
		s.Count += h.counts[i].Load()
		if i < Buckets-1 {
			s.Buckets[(first << i).Seconds()] = s.Count
		}
	}
	return s
}
