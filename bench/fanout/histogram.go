package main

import (
	"math/bits"
	"time"
)

// histogram counts durations in buckets that are 1/16 of a power of two wide, so a percentile is at most 6 % off, and mostly
// much less: within a bucket durations are taken to be spread evenly.
type histogram struct {
	counts [64 * histogramSteps]uint64
	total  uint64
}

const histogramSteps = 16

func (h *histogram) add(d int64) {
	h.counts[bucketOf(d)]++
	h.total++
}

func (h *histogram) merge(o *histogram) {
	for i, n := range o.counts {
		h.counts[i] += n
	}
	h.total += o.total
}

// quantile returns what the q-th part of all durations does not exceed.
func (h *histogram) quantile(q float64) time.Duration {
	if h.total == 0 {
		return 0
	}
	want := uint64(q * float64(h.total))
	var seen uint64
	for i, n := range h.counts {
		if seen+n > want {
			from, to := bucketEdge(i-1), bucketEdge(i)
			return time.Duration(from + int64(float64(to-from)*float64(want-seen+1)/float64(n)))
		}
		seen += n
	}
	return time.Duration(bucketEdge(len(h.counts) - 1))
}

func bucketOf(d int64) int {
	v := uint64(max(d, 0))
	if v < histogramSteps {
		return int(v)
	}
	exp := bits.Len64(v) - 5 // the top five bits are kept
	return (exp+1)*histogramSteps + int(v>>exp) - histogramSteps
}

func bucketEdge(i int) int64 {
	if i < histogramSteps {
		return int64(i)
	}
	exp, step := i/histogramSteps-1, i%histogramSteps
	return int64(histogramSteps+step+1)<<exp - 1
}
