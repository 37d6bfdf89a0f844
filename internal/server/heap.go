package server

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// A small heap is collected all the time: with a few megabytes in use, every few megabytes of garbage start another round,
// and forwarding makes a hundred megabytes in a second. While the gateway is busy the heap may therefore grow to
// comfortableHeap first. Afterwards it is collected once and as usual again, so that no garbage stays with idle streams.
const (
	comfortableHeap = 64 << 20
	usualPercent    = 100
	maxPercent      = 1600
	heapEvery       = time.Second
	busyRate        = 1000 // forwarded requests in heapEvery
)

// tuneHeap adapts the collector until ctx ends. It leaves a process alone whose operator chose a value (GOGC).
func tuneHeap(ctx context.Context, forwarded func() int64) {
	if previous := debug.SetGCPercent(usualPercent); previous != usualPercent {
		debug.SetGCPercent(previous)
		return
	}
	tick := time.NewTicker(heapEvery)
	defer tick.Stop()
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	before, busy := forwarded(), false
	for {
		select {
		case <-ctx.Done():
			debug.SetGCPercent(usualPercent)
			return
		case <-tick.C:
		}
		now := forwarded()
		switch {
		case now-before >= busyRate:
			busy = true
			metrics.Read(live)
			debug.SetGCPercent(gcPercent(live[0].Value.Uint64()))
		case busy:
			busy = false
			debug.SetGCPercent(usualPercent)
			runtime.GC()
		}
		before = now
	}
}

// gcPercent is how much garbage, in percent of what is live, may gather before the next collection.
func gcPercent(live uint64) int {
	if live == 0 {
		return maxPercent
	}
	return int(min(max(comfortableHeap*100/live, usualPercent), maxPercent))
}
