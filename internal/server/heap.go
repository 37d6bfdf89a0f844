package server

import (
	"context"
	"runtime/debug"
	stats "runtime/metrics"
	"sync"
	"time"
)

// A small heap is collected all the time: with a few megabytes in use, every few megabytes of garbage start another round,
// and a busy process makes a hundred megabytes in a second. While it does, the heap may therefore grow to comfortableHeap
// first. Afterwards it is collected once and as usual again, and its memory given back, so that no garbage stays with idle
// streams.
const (
	comfortableHeap = 64 << 20
	usualPercent    = 100
	maxPercent      = 1600
	heapEvery       = 200 * time.Millisecond
	busyAllocs      = 8 << 20 // bytes in heapEvery
)

// heapTuner adapts the collector to what the process does. It leaves a process alone whose operator chose a value (GOGC).
type heapTuner struct {
	stop context.CancelFunc
	done sync.WaitGroup
}

func (h *heapTuner) start() {
	if previous := debug.SetGCPercent(usualPercent); previous != usualPercent {
		debug.SetGCPercent(previous)
		h.stop = func() {}
		return
	}
	var ctx context.Context
	ctx, h.stop = context.WithCancel(context.Background())
	h.done.Go(func() { h.run(ctx) })
}

func (h *heapTuner) close() {
	h.stop()
	h.done.Wait()
}

func (h *heapTuner) run(ctx context.Context) {
	defer debug.SetGCPercent(usualPercent)
	tick := time.NewTicker(heapEvery)
	defer tick.Stop()
	seen := []stats.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}}
	stats.Read(seen)
	before, busy := seen[0].Value.Uint64(), false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		stats.Read(seen)
		allocated, live := seen[0].Value.Uint64(), seen[1].Value.Uint64()
		switch {
		case allocated-before >= busyAllocs:
			busy = true
			debug.SetGCPercent(gcPercent(live))
		case busy:
			busy = false
			debug.SetGCPercent(usualPercent)
			debug.FreeOSMemory() // collects first
		}
		before = allocated
	}
}

// gcPercent is how much garbage, in percent of what is live, may gather before the next collection.
func gcPercent(live uint64) int {
	if live == 0 {
		return maxPercent
	}
	return int(min(max(comfortableHeap*100/live, usualPercent), maxPercent))
}
