package poll

import (
	"sync/atomic"
	"time"
)

// outcome is what became of a poll.
type outcome int

const (
	changed     outcome = iota // a new document
	unchanged                  // the same document again
	unmodified                 // 304
	failed                     // the data source's fault
	unpublished                // our fault
	dropped                    // the answer came when the topic was no longer ours, or no longer that
	numOutcomes
)

// Outcomes are the names of what polls can lead to, in the order of Stats.Polls.
var Outcomes = [numOutcomes]string{"changed", "unchanged", "unmodified", "failed", "unpublished", "dropped"}

// LatenessBounds are the upper bounds of Stats.Lateness; its last number is of those beyond.
var LatenessBounds = [...]time.Duration{
	time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond,
	50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second, 5 * time.Second,
}

// stats counts in places of their own, so that no two cores fight for one.
type stats struct {
	outcomes [numOutcomes]counter
	lateness [len(LatenessBounds) + 1]counter
	lateSum  counter // in nanoseconds
}

type counter struct {
	n atomic.Uint64
	_ [56]byte
}

func (s *stats) count(o outcome) { s.outcomes[o].n.Add(1) }

func (s *stats) late(d time.Duration) {
	i := 0
	for i < len(LatenessBounds) && d > LatenessBounds[i] {
		i++
	}
	s.lateness[i].n.Add(1)
	s.lateSum.n.Add(uint64(max(0, d)))
}

// Stats counts what a Poller did since it began.
type Stats struct {
	Sources  int                 // topics that are polled here now
	Shards   int                 // leases held
	Polls    [numOutcomes]uint64 // by Outcomes
	Lateness [len(LatenessBounds) + 1]uint64

	LatenessSum time.Duration
}

// Stats returns the counters.
func (p *Poller) Stats() Stats {
	var st Stats
	for i := range p.stats.outcomes {
		st.Polls[i] = p.stats.outcomes[i].n.Load()
	}
	for i := range p.stats.lateness {
		st.Lateness[i] = p.stats.lateness[i].n.Load()
	}
	st.LatenessSum = time.Duration(p.stats.lateSum.n.Load())
	for i := range p.shards {
		if p.leases.holds(i) {
			st.Shards++
		}
		p.shards[i].mu.Lock()
		st.Sources += len(p.shards[i].sources)
		p.shards[i].mu.Unlock()
	}
	return st
}

// Polled is one request to a target.
type Polled struct {
	TopicID, AppID, UserID string

	Published   bool // it brought a document that was published
	NotModified bool
	Failed      bool // it brought neither, by whose fault ever
}

// tell says what came of a poll.
func (s *source) tell(by *plan, o outcome) {
	s.p.stats.count(o)
	s.attempt.span.Set("freshet.outcome", Outcomes[o])
	if o == failed || o == unpublished {
		s.attempt.span.Fail(Outcomes[o])
	}
	if s.p.opts.Polled != nil {
		s.p.opts.Polled(Polled{
			TopicID: s.id, AppID: by.topic.AppID, UserID: by.userID,
			Published: o == changed || o == unchanged, NotModified: o == unmodified,
			Failed: o == failed || o == unpublished,
		})
	}
}
