package usage

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
)

// shelf is what is known of the documents of one owner.
type shelf struct {
	// Static.
	of   Owner
	opts *StorageOptions

	used time.Time // guarded by Storage.mu

	known grid.Lengths // owned by whoever counts

	// Guarded by mu.
	mu       sync.Mutex
	changed  sync.Cond
	counting bool
	counts   int  // that were started
	isKnown  bool // one of them succeeded
	stale    bool // it must be counted before it is used again
	counted  int64
	at       time.Time // of the last count
	failed   time.Time // when a count last failed
	next     time.Time // when the next one may begin
	sum      int64     // counted, and what this process stored since, or has reserved room for
	inFlight int       // publications that have room and whose fate is open
}

const (
	// A count may be older on a node that is alone: there it can only be too high, and is looked at before anybody is refused.
	goodFor      = 30 * time.Second
	goodForAlone = 5 * time.Minute

	// share is which part of what was left a node of a cluster uses before it counts again.
	share = 8

	// Counts take a tenth of the time at most, however many publications are refused; whoever is about to be refused waits.
	countPause   = 100 * time.Millisecond
	pauseFactor  = 10
	longestPause = 2 * time.Second
	listTimeout  = 2 * time.Second  // the store may be away
	countTimeout = 10 * time.Second // and so may the grid
	failurePause = 30 * time.Second // in which what is known must do
)

// reserve takes room for a document that is longer by grow, or shorter. Nobody is refused on a count that began before it was asked.
func (s *shelf) reserve(ctx context.Context, grow, limit int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for asked := s.counts; ; {
		for s.counting {
			s.changed.Wait()
		}
		isSure := s.counts > asked || time.Since(s.failed) < failurePause
		// Whom nobody can count has no limit: losing it for a while is better than losing the service.
		fits := grow < 0 || !s.isKnown || s.sum+grow <= limit
		switch {
		case fits && (s.isGood(grow, limit) || isSure && s.isUntouched()):
			s.sum += max(grow, 0)
			s.inFlight++
			return nil
		case !fits && isSure:
			return s.limitError(grow, limit)
		}
		if err := s.pause(ctx); err != nil {
			return err
		}
	}
}

// isGood reports whether what is known is enough to let a publication pass. The caller holds mu.
func (s *shelf) isGood(grow, limit int64) bool {
	switch age := time.Since(s.at); {
	case grow < 0:
		return true // whatever the sum is
	case !s.isKnown || s.stale:
		return false
	case s.opts.Alone:
		return age < goodForAlone
	case grow == 0:
		return true
	default:
		return age < goodFor && s.sum-s.counted+grow <= (limit-s.counted)/share
	}
}

// isUntouched reports whether a publication that is sure of the sum may take all that is left. In a cluster the next one must count
// again, because others may be as sure. The caller holds mu.
func (s *shelf) isUntouched() bool {
	return s.opts.Alone || s.sum == s.counted || time.Since(s.failed) < failurePause
}

// limitError says what there is and what there may be. The caller holds mu.
func (s *shelf) limitError(grow, limit int64) error {
	noun := "account"
	if s.of.IsApp() {
		noun = "app"
	}
	return freshet.Errorf(freshet.DocumentLimit, "The documents of the %s would be %d bytes together, and its quota document_bytes is %d: publish less, delete topics, or ask an admin for more",
		noun, s.sum+grow, limit)
}

// settle ends what reserve began.
func (s *shelf) settle(grow int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	isStored, isOpen := err == nil, err != nil && freshet.KindOf(err) == freshet.Unavailable
	switch {
	case isStored && grow < 0:
		s.sum += grow
	case !isStored && !isOpen && grow > 0:
		s.sum -= grow
	}
	if s.inFlight--; s.inFlight == 0 {
		s.changed.Broadcast()
	}
}

// pause counts, or waits until somebody may. The caller holds mu, and looks again afterwards.
func (s *shelf) pause(ctx context.Context) error {
	wait := time.Until(s.next)
	if wait <= 0 {
		s.count(ctx)
		return nil
	}
	s.mu.Unlock()
	defer s.mu.Lock()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return freshet.Wrap(freshet.Unavailable, ctx.Err(), "The documents could not be counted in time, please try again")
	}
}

// count counts the documents anew, while nothing is under way here that could be missed or counted twice. The caller holds mu.
func (s *shelf) count(ctx context.Context) {
	s.counting = true
	s.counts++
	for s.inFlight > 0 {
		s.changed.Wait()
	}
	s.stale = false // from here on
	s.mu.Unlock()
	began := time.Now()
	sum, err := int64(0), errAborted
	defer func() {
		s.mu.Lock()
		s.conclude(began, sum, err)
	}()
	sum, err = s.measure(ctx)
}

// errAborted is what a count comes to that panics.
var errAborted = errors.New("the count did not come to its end")

// conclude ends a count. The caller holds mu.
func (s *shelf) conclude(began time.Time, sum int64, err error) {
	if err == nil {
		s.sum, s.counted, s.isKnown, s.failed = sum, sum, true, time.Time{}
	} else {
		s.failed = time.Now()
		s.opts.Log.Warn("the documents of an owner could not be counted; what is known of them counts", "id", s.of.ID(), "err", err)
	}
	s.at = time.Now()
	s.next = s.at.Add(min(max(countPause, pauseFactor*s.at.Sub(began)), longestPause))
	s.counting = false
	s.changed.Broadcast()
}

// measure is of the one who counts, and for all who wait for it, who must not fail when that one gives up.
func (s *shelf) measure(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), countTimeout)
	defer cancel()
	list, stop := context.WithTimeout(ctx, listTimeout)
	defer stop()
	topics, err := s.opts.Topics.TopicIDs(list, s.of.userID, s.of.appID)
	if err != nil {
		return 0, err
	}
	return s.opts.Documents.Measure(ctx, topics, &s.known)
}
