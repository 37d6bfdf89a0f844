package router

import (
	"sync/atomic"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/histogram"
)

// verdict is what became of a publication.
type verdict int

const (
	changed   verdict = iota // it made a new version
	identical                // it said what was known
	dropped                  // nobody is subscribed, and the topic publishes only for subscribers
	refused                  // the publisher's fault
	failed                   // ours
	numVerdicts
)

// Verdicts are the names of what publications can come to, in the order of Stats.Publications.
var Verdicts = [numVerdicts]string{"changed", "identical", "dropped", "refused", "failed"}

type stats struct {
	publications [numVerdicts]atomic.Uint64
	publish      histogram.Histogram
	diff         histogram.Histogram
	uncompressed atomic.Uint64
	compressed   atomic.Uint64
	busy         atomic.Uint64
	full         atomic.Uint64
	deferred     atomic.Uint64
}

// Stats counts what a Router did since it began.
type Stats struct {
	Topics       int                 // followed here now
	Publications [numVerdicts]uint64 // by Verdicts
	Publish      histogram.Snapshot  // from taking a publication to having it in the grid
	Diff         histogram.Snapshot  // reading a publication and comparing it with what is known
	Uncompressed uint64              // bytes of frames before they were compressed; each frame once, however many get it
	Compressed   uint64              // and after

	Memory      int64  // bytes that documents and their histories take
	MemoryLimit int64  // that they may take; 0 is no bound
	Cached      int    // bytes of Memory that can be derived again and go first
	Busy        uint64 // publications refused because too much was being compared
	Full        uint64 // publications refused because there was no memory for them
	Deferred    uint64 // times that a filtered feed was updated after the publication, and not by it
}

// Stats returns the counters.
func (r *Router) Stats() Stats {
	st := Stats{
		Publish: r.stats.publish.Snapshot(), Diff: r.stats.diff.Snapshot(),
		Uncompressed: r.stats.uncompressed.Load(), Compressed: r.stats.compressed.Load(),
		Memory: r.memory.Held(), MemoryLimit: r.memory.Most(), Cached: r.cache.size(),
		Busy: r.stats.busy.Load(), Full: r.stats.full.Load(), Deferred: r.stats.deferred.Load(),
	}
	for i := range r.stats.publications {
		st.Publications[i] = r.stats.publications[i].Load()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	st.Topics = len(r.topics)
	return st
}

// judge says what became of a publication.
func judge(out Outcome, err error) verdict {
	switch {
	case err == nil && out.Changed:
		return changed
	case err == nil && out.Dropped:
		return dropped
	case err == nil:
		return identical
	}
	switch freshet.KindOf(err) {
	case freshet.Internal, freshet.Unavailable, freshet.Timeout:
		return failed
	}
	return refused
}

// note remembers what became of a publication, for statistics and for whoever asks why nothing arrives.
func (t *topic) note(began time.Time, out Outcome, err error) {
	v := judge(out, err)
	t.router.stats.publications[v].Add(1)
	t.router.stats.publish.Observe(time.Since(began))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lately.add(v, began, err)
}
