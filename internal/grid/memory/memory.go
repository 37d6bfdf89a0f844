// Package memory is the grid of a single process: nothing is shared with other nodes, and everything is forgotten at exit. The
// epoch in every position tells clients so.
//
// A Grid is made of parts that know nothing of each other: Documents, Presence, Notices, Values, Counters and Questions. Each
// fulfils one contract of package grid and can stand alone; a grid that keeps its documents elsewhere takes the others from here.
//
// Everything happens in the goroutine of the caller; the only others are the timers of documents that expire. A Put holds the
// lock of its topic while watches are called: that makes their order the order of Puts, and is why a watch must not block.
//
// Everything is safe for concurrent use.
package memory

import "time"

// Options are the limits of a grid.
type Options struct {
	// MessageTTL drops a document that long after its publication. 0 keeps it.
	MessageTTL time.Duration

	// Account, unless nil, is told how many bytes of memory documents take more, or less if negative. It must not block.
	Account func(bytes int64)
}

// Grid is the grid of a single process.
type Grid struct {
	*Documents
	*Presence
	*Notices
	*Values
	*Counters
	*Questions
}

// New returns an empty grid.
func New(opts Options) *Grid {
	return &Grid{
		Documents: NewDocuments(opts),
		Presence:  new(Presence),
		Notices:   new(Notices),
		Values:    new(Values),
		Counters:  new(Counters),
		Questions: new(Questions),
	}
}

// Close implements grid.Grid. Only documents have watches and timers.
func (g *Grid) Close() error { return g.Documents.Close() }
