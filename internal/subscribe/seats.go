package subscribe

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
)

// seats counts the connections of each account and of each app, which it calls owners. One without a limit is counted here only, and costs nothing else. For
// one with a limit every node keeps its share of a common counter right, which makes the limit exact over the cluster.
//
// Counters live for a period. In its second half every node also adds its share to the counter of the next one, which is
// therefore complete when it begins; what a node that died had added is forgotten with the period after.
type seats struct {
	// Static after newSeats.
	log      *slog.Logger
	counters grid.Counters // nil: there are no other nodes
	maxWait  time.Duration // how long somebody waits for a seat to become free
	wake     chan struct{} // of run; holds one
	done     chan struct{}
	finished chan struct{}

	// Guarded by mu.
	mu      sync.Mutex
	here    map[string]*share
	changed map[string]struct{} // owners whose share is not told yet
}

// share is what an owner has on this node.
type share struct {
	open    int64 // streams
	limited bool  // or was: the other nodes must know
	period  int64
	told    int64 // as part of the counter of the period
	ahead   int64 // as part of the next one's

	gone chan struct{} // closed once everybody knows that a connection went; nil: nobody waits for that
}

// seatPeriod is how long a counter lives. The clocks of nodes may differ by half of it.
const seatPeriod = 20 * time.Second

// seatTimeout is how long a subscriber waits for the count; after that it is let in.
const seatTimeout = 2 * time.Second

func newSeats(log *slog.Logger, counters grid.Counters, maxWait time.Duration) *seats {
	s := &seats{
		log: log, counters: counters, maxWait: maxWait, wake: make(chan struct{}, 1), done: make(chan struct{}), finished: make(chan struct{}),
		here: make(map[string]*share), changed: make(map[string]struct{}),
	}
	go s.run()
	return s
}

// close tells the other nodes that nobody is here any more.
func (s *seats) close() {
	close(s.done)
	<-s.finished
	s.tellChanged()
}

// ownerLimit is how many seats an owner may have; 0 means any number.
type ownerLimit struct {
	owner string // a user's or an app's identifier
	noun  string // which of them
	limit int64
}

// takeAll counts a connection in for every owner, or for none of them. Whoever got in frees its seats later.
func (s *seats) takeAll(ctx context.Context, limits ...ownerLimit) error {
	for i, o := range limits {
		if err := s.take(ctx, o); err != nil {
			for _, got := range limits[:i] {
				s.giveBack(ctx, got.owner)
			}
			return err
		}
	}
	return nil
}

// take counts a connection in for one owner.
func (s *seats) take(ctx context.Context, o ownerLimit) (err error) {
	s.retry(ctx, o, func() bool {
		err = s.takeOnce(ctx, o)
		return freshet.KindOf(err) != freshet.ConnectionLimit
	})
	return err
}

// seatTries bounds what somebody costs whom the owner has no seat for, while others come and go.
const seatTries = 4

// retry tries until it works, when one of the owner's connections goes, and last when the wait is over. Whoever comes as
// another goes is not refused then: a server hears of the two in any order, and other nodes hear later.
func (s *seats) retry(ctx context.Context, o ownerLimit, try func() bool) {
	if try() {
		return
	}
	timer := time.NewTimer(s.maxWait)
	defer timer.Stop()
	for range seatTries {
		gone := s.departure(o) // before trying: who goes in between is not missed
		if try() {
			return
		}
		select {
		case <-gone:
		case <-timer.C:
			try() // somebody may have gone on another node
			return
		case <-ctx.Done():
			return
		}
	}
}

// departure returns what closes once the next connection of the owner has gone and is told, or nil if there is no limit, or
// nobody here.
func (s *seats) departure(o ownerLimit) <-chan struct{} {
	if o.limit <= 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sh := s.here[o.owner]
	if sh == nil {
		return nil
	}
	if sh.gone == nil {
		sh.gone = make(chan struct{})
	}
	return sh.gone
}

func (s *seats) takeOnce(ctx context.Context, o ownerLimit) error {
	owner, limit := o.owner, o.limit
	s.mu.Lock()
	sh := s.here[owner]
	if sh == nil {
		sh = &share{}
		s.here[owner] = sh
	}
	sh.open++
	if limit <= 0 && !sh.limited {
		s.mu.Unlock()
		return nil
	}
	sh.limited = true
	sum, adds := sh.open, sh.adjust(owner, time.Now()) // with the count itself: everybody is judged by an addition of its own
	s.mu.Unlock()
	if s.counters != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), seatTimeout)
		defer cancel()
		var err error
		if sum, err = s.tell(ctx, adds); err != nil {
			s.log.Warn("connections could not be counted; letting one in", o.noun, owner, "err", err)
			return nil
		}
	}
	if limit > 0 && sum > limit {
		s.giveBack(ctx, owner)
		return freshet.Errorf(freshet.ConnectionLimit, "Too many connections: this %s may have %d", o.noun, limit)
	}
	return nil
}

// takeFree counts a connection in for owners without a limit. It returns false, and has done nothing, if one has or had one: that
// may take time.
func (s *seats) takeFree(owners ...string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, owner := range owners {
		if sh := s.here[owner]; sh == nil || sh.limited {
			return false
		}
	}
	for _, owner := range owners {
		s.here[owner].open++
	}
	return true
}

// giveBack is free, and waits until the others know: whoever is refused must not keep a seat busy.
func (s *seats) giveBack(ctx context.Context, owner string) {
	s.mu.Lock()
	sh := s.here[owner]
	sh.open--
	var adds []addition
	if sh.limited {
		adds = sh.adjust(owner, time.Now())
	}
	s.drop(owner, sh)
	s.mu.Unlock()
	if s.counters != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), seatTimeout)
		defer cancel()
		_, _ = s.tell(ctx, adds) // what is lost is forgotten with the period
	}
}

// free counts a connection out. It does not block.
func (s *seats) free(owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sh := s.here[owner]
	sh.open--
	if !sh.limited {
		s.drop(owner, sh)
		return
	}
	s.changed[owner] = struct{}{}
	s.signal()
}

// limit is told what limit an owner has now, which may be new.
func (s *seats) limit(owner string, limit int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sh := s.here[owner]; sh != nil && limit > 0 && !sh.limited {
		sh.limited = true
		s.changed[owner] = struct{}{}
		s.signal()
	}
}

// drop forgets an owner that nobody needs to know of. The caller holds mu.
func (s *seats) drop(owner string, sh *share) {
	if sh.open == 0 && sh.told == 0 && sh.ahead == 0 {
		delete(s.here, owner)
	}
}

func (s *seats) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *seats) run() {
	defer close(s.finished)
	tick := time.NewTicker(seatPeriod / 4)
	defer tick.Stop()
	for {
		select {
		case <-s.done:
			return
		case <-s.wake:
			s.tellChanged()
		case <-tick.C:
			s.markLimited()
			s.tellChanged()
		}
	}
}

// markLimited has every share looked at: a period may have begun, or be half over.
func (s *seats) markLimited() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, sh := range s.here {
		if sh.limited {
			s.changed[id] = struct{}{}
		}
	}
}

func (s *seats) tellChanged() {
	s.mu.Lock()
	now := time.Now()
	var adds []addition
	var owners []string
	for id := range s.changed {
		if sh := s.here[id]; sh != nil {
			adds = append(adds, sh.adjust(id, now)...)
			owners = append(owners, id)
		}
	}
	clear(s.changed)
	s.mu.Unlock()
	if s.counters != nil {
		ctx, cancel := context.WithTimeout(context.Background(), seatPeriod/4)
		defer cancel()
		if _, err := s.tell(ctx, adds); err != nil {
			s.log.Warn("connections could not be counted", "err", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range owners {
		if sh := s.here[id]; sh != nil {
			sh.announce()
			s.drop(id, sh)
		}
	}
}

// announce has those who wait for a seat ask again. The caller holds seats.mu.
func (sh *share) announce() {
	if sh.gone != nil {
		close(sh.gone)
		sh.gone = nil
	}
}

// addition is what makes a counter right.
type addition struct {
	counter string
	delta   int64
	current bool // it is the counter of this period
}

// adjust brings what was told up to date. The caller holds seats.mu and makes the additions.
func (sh *share) adjust(owner string, now time.Time) []addition {
	period := now.UnixNano() / int64(seatPeriod)
	if period != sh.period {
		if period == sh.period+1 {
			sh.told = sh.ahead
		} else {
			sh.told = 0
		}
		sh.period, sh.ahead = period, 0
	}
	adds := []addition{{seatCounter(owner, period), sh.open - sh.told, true}}
	sh.told = sh.open
	if now.UnixNano()%int64(seatPeriod) >= int64(seatPeriod/2) && sh.ahead != sh.open {
		adds = append(adds, addition{seatCounter(owner, period+1), sh.open - sh.ahead, false})
		sh.ahead = sh.open
	}
	return adds
}

func seatCounter(owner string, period int64) string {
	return "connections/" + owner + "/" + strconv.FormatInt(period, 10)
}

// tell makes additions and returns the sum of the present period's counter.
func (s *seats) tell(ctx context.Context, adds []addition) (sum int64, err error) {
	for _, a := range adds {
		n, err := s.counters.Add(ctx, a.counter, a.delta, 3*seatPeriod)
		if err != nil {
			return 0, err
		}
		if a.current {
			sum = n
		}
	}
	return sum, nil
}
