package poll

import (
	"context"
	"sync"
	"time"

	"github.com/freshet-io/freshet/internal/router"
	"github.com/freshet-io/freshet/internal/trace"
)

// source is one topic that is polled here.
type source struct {
	// Static.
	p     *Poller
	shard *shard
	id    string

	// Guarded by mu.
	mu         sync.Mutex
	plan       *plan // nil until the catalog told
	lookup     lookup
	attendance attendance
	schedule   schedule
	why        reason
	busy       bool // a poll waits for a semaphore or is under way
	again      bool // poll once more right after it
	stopped    ending
	finished   bool
	abandon    context.CancelFunc // of the publication under way; nil if there is none

	// Owned by whoever made it busy.
	attempt    attempt
	validators validators
	health     health
	writer     *router.Writer
}

// attempt is the poll that is under way.
type attempt struct {
	host  string // whose semaphore it has acquired
	began time.Time
	span  *trace.Span // nil: nobody follows it
}

// ending is why a source is no more.
type ending int

const (
	running ending = iota
	left           // nobody is subscribed any more
	gone           // the topic was deleted, or is not polled
	lost           // another node polls it now
)

func newSource(p *Poller, sh *shard, id string, why reason) *source {
	s := &source{p: p, shard: sh, id: id, why: why}
	s.attendance.present = why != refresh
	s.health.outage.topicID = id
	return s
}

// pollAfter arranges the next poll. The caller holds mu.
func (s *source) pollAfter(delay time.Duration) { s.schedule.arm(delay, s.fire) }

// pollNow polls without waiting for the timer, or right after the poll under way. The caller holds mu.
func (s *source) pollNow() {
	if s.busy {
		s.again = true
		return
	}
	s.pollAfter(0)
}

// arrive is told that somebody is interested. It returns false if that comes too late.
func (s *source) arrive(why reason) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped != running {
		return false
	}
	if why == refresh {
		if s.plan != nil {
			s.pollNow()
		}
		return true
	}
	s.attendance.arrive()
	if s.attendance.parked {
		s.attendance.parked = false
		if !s.busy { // otherwise the poll under way arranges what comes next
			s.pollAfter(time.Until(s.health.notBefore))
		}
		s.p.later(s.load) // much may have changed
	}
	return true
}

func (s *source) isParked() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.attendance.parked
}

// leave is told that nobody is subscribed any more.
func (s *source) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attendance.present = false
	if s.attendance.leaving == nil && s.stopped == running {
		s.giveUpAfter(s.p.opts.Grace)
	}
}

// giveUp ends the source unless somebody came back: what the grid tells is a hint, what it answers is the truth.
func (s *source) giveUp() {
	ctx, cancel := context.WithTimeout(s.p.ctx, loadTimeout)
	defer cancel()
	here, err := s.p.grid.Present(ctx, s.id)
	s.mu.Lock()
	if s.attendance.leaving == nil || s.attendance.present {
		s.mu.Unlock()
		return
	}
	s.attendance.leaving = nil
	if err != nil || here {
		s.attendance.present = true
		s.mu.Unlock()
		if err != nil {
			s.leave() // and ask again
		}
		return
	}
	if s.busy { // its owner may be about to change what we need to know
		s.giveUpAfter(time.Second)
		s.mu.Unlock()
		return
	}
	if wait := time.Until(s.health.notBefore); wait > 0 {
		// Whoever comes back must not make us forget what the target asked for.
		s.park(wait)
		s.mu.Unlock()
		s.retire(ctx)
		return
	}
	s.stopped = left // now: whoever comes must not rely on it
	s.mu.Unlock()
	s.stop(left)
}

// park keeps the source without polling. The caller holds mu.
func (s *source) park(wait time.Duration) {
	s.schedule.stop()
	s.attendance.parked = true
	s.giveUpAfter(wait)
}

// giveUpAfter has giveUp called unless somebody comes before. The caller holds mu.
func (s *source) giveUpAfter(wait time.Duration) {
	s.attendance.leaveAfter(wait, func() { s.p.later(s.giveUp) })
}

// stop ends the source. What must be put in order is done at once, or by the poll under way.
func (s *source) stop(why ending) {
	s.mu.Lock()
	if s.stopped == running {
		s.stopped = why
	}
	s.schedule.stop()
	s.attendance.cancelLeaving()
	if why == lost && s.abandon != nil {
		s.abandon() // its successor publishes
	}
	busy := s.busy
	s.mu.Unlock()
	s.shard.mu.Lock()
	if s.shard.sources[s.id] == s {
		delete(s.shard.sources, s.id)
	}
	s.shard.mu.Unlock()
	if !busy {
		s.finish()
	}
}

// finish puts everything in order, once.
func (s *source) finish() {
	s.mu.Lock()
	writer, why, done := s.writer, s.stopped, s.finished
	s.finished = true
	s.mu.Unlock()
	if done {
		return
	}
	if writer != nil {
		writer.Close()
	}
	if why == lost {
		return // its successor looks after the rest
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.p.ctx), loadTimeout)
	defer cancel()
	s.health.outage.end(ctx, s.p.outages, "data source that failed is not asked any more")
	if why == left {
		s.retire(ctx)
	}
}

// retire deletes the topic if its subscribers made it.
func (s *source) retire(ctx context.Context) {
	s.mu.Lock()
	auto := s.plan != nil && s.plan.topic.AutoProvisioned
	s.mu.Unlock()
	if !auto {
		return
	}
	err := s.p.catalog.Retire(ctx, s.id, func(ctx context.Context) (bool, error) { return s.p.grid.Present(ctx, s.id) })
	if err != nil && s.p.ctx.Err() == nil {
		s.p.log.Warn("topic without subscribers stays for now", "topic", s.id, "err", err) // a later sweep finds it
	}
}

// belongsTo reports whether the source is of the app or the user.
func (s *source) belongsTo(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.plan == nil || s.plan.topic.AppID == id || s.plan.userID == id
}
