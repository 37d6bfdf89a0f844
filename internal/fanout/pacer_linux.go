package fanout

import "time"

// pacer keeps time between two passes over a large group: what is published meanwhile leaves in one write, which makes large groups
// cheap.
type pacer struct {
	began     time.Time // the last pass
	notBefore time.Time // the next pass
	halvings  uint8     // of the time between passes
	reached   Cursor    // where the first member was after the last pass
}

// Bounds of the time between two passes: what is worth waiting for when publications follow each other closely, and what waiting may
// cost in latency. A few subscribers are quicker served than waited for.
//
// After a long pass there is a rest, a part of the time that the pass took. Loops that pass over large groups without one leave the
// processors to nobody else, publishers are heard when the runtime's monitor looks for them, and each pass brings so little that the next
// is due at once.
const (
	minPace  = 2 * time.Millisecond
	maxPace  = 3 * time.Millisecond
	restPart = 4
	maxRest  = time.Millisecond
	fewConns = 16
)

// begin begins a pass that is worth pace.
func (p *pacer) begin(now time.Time, pace time.Duration) {
	p.began = now
	p.notBefore = now.Add(min(max(pace, minPace), maxPace) >> p.halvings)
}

// end ends it.
func (p *pacer) end(now time.Time) {
	rest := min(now.Sub(p.began)/restPart, maxRest) >> p.halvings
	if until := now.Add(rest); until.After(p.notBefore) {
		p.notBefore = until
	}
}

// A batch within these bounds is worth a write of its own. Waiting for more than the upper one gains nothing, and what does not
// fit into the feed's log any more is merged into one event.
const (
	smallBatch  = 24 << 10
	largeBatch  = 60 << 10
	maxHalvings = 3
)

// adapt learns from a batch how long to wait for the next one. Only members who were up to date after the last pass have something
// to teach: whoever lags behind them does so for reasons of its own. first says that the batch is for the first member of the pass.
func (p *pacer) adapt(from Cursor, b *Batch, first bool) {
	if from < p.reached {
		return
	}
	if first {
		p.reached = b.Next
	}
	switch {
	case (len(b.Bytes) > largeBatch && b.Events > 1 || b.Merged) && p.halvings < maxHalvings:
		p.halvings++
	case len(b.Bytes) < smallBatch && p.halvings > 0 && !b.Merged:
		p.halvings--
	}
}
