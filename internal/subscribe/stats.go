package subscribe

import (
	"maps"
	"slices"
	"sync/atomic"

	"github.com/freshet-io/freshet/internal/router"
)

// stats counts what happened to subscribers.
type stats struct {
	open     [2][2]atomic.Int64 // by delivery mode and compression
	longPoll atomic.Int64
	refused  map[int]*atomic.Uint64 // by code; static after newStats
	ended    map[int]*atomic.Uint64
}

func newStats() *stats {
	s := &stats{refused: make(map[int]*atomic.Uint64), ended: make(map[int]*atomic.Uint64)}
	for _, code := range codes {
		s.refused[code], s.ended[code] = new(atomic.Uint64), new(atomic.Uint64)
	}
	return s
}

func (s *stats) connect(v router.Variant, delta int64) {
	compressed := 0
	if v.Compressed {
		compressed = 1
	}
	s.open[v.Mode][compressed].Add(delta)
}

// Open is how many subscribers there are of a kind.
type Open struct {
	Mode       string // patch or snapshot
	Compressed bool
	Count      int64
}

// Stats counts what happened to subscribers since the Server began.
type Stats struct {
	Open     []Open         // every kind
	LongPoll int64          // of them, those that get one response at a time
	Refused  map[int]uint64 // subscriptions that were answered with an error, by code
	Ended    map[int]uint64 // streams that were ended with an error, by code
}

var modeNames = [...]string{router.Patches: "patch", router.Snapshots: "snapshot"}

// Stats returns the counters.
func (s *Server) Stats() Stats {
	c := s.registry.reports.stats
	st := Stats{LongPoll: c.longPoll.Load(), Refused: loaded(c.refused), Ended: loaded(c.ended)}
	for mode, name := range modeNames {
		st.Open = append(st.Open, Open{name, false, c.open[mode][0].Load()}, Open{name, true, c.open[mode][1].Load()})
	}
	return st
}

func loaded(counters map[int]*atomic.Uint64) map[int]uint64 {
	all := make(map[int]uint64, len(counters))
	for _, code := range slices.Collect(maps.Keys(counters)) {
		all[code] = counters[code].Load()
	}
	return all
}
