package server

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// A small heap is collected all the time: with a few megabytes in use, every few megabytes of publications start another
// round. Letting it grow to comfortableHeap first costs memory that nobody misses and saves a tenth of the processor under
// load. A large heap is collected as usual.
const (
	comfortableHeap = 64 << 20
	usualPercent    = 100
	maxPercent      = 800
	heapEvery       = 5 * time.Second
)

// tuneHeap adapts the collector until ctx ends. It leaves a process alone whose operator chose a value (GOGC).
func tuneHeap(ctx context.Context) {
	if previous := debug.SetGCPercent(usualPercent); previous != usualPercent {
		debug.SetGCPercent(previous)
		return
	}
	defer debug.SetGCPercent(usualPercent)
	tick := time.NewTicker(heapEvery)
	defer tick.Stop()
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	for {
		metrics.Read(live)
		debug.SetGCPercent(gcPercent(live[0].Value.Uint64()))
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// gcPercent is how much garbage, in percent of what is live, may gather before the next collection.
func gcPercent(live uint64) int {
	if live == 0 {
		return maxPercent
	}
	return int(min(max(comfortableHeap*100/live, usualPercent), maxPercent))
}
