package catalog

import (
	"context"
	"crypto/sha256"
	"errors"
	"math/bits"
	"slices"
	"sync"
	"time"

	"github.com/freshet-io/freshet"
)

// Guessing passwords is slowed, the guesser and not the owner of the account. Every failure counts three times:
//
//   - against the account from this network: who guesses from elsewhere takes nothing from it;
//   - against the network, whatever the account: one password may be tried on many;
//   - against the account from all networks: many addresses may share the work. Networks that somebody signed in to the
//     account from before do not wait for this one, so many guessers keep no owner out that we know.
//
// So many guesses a day get through at one account, on each node: 303 from one address, and 2,935 from a thousand addresses
// together. One address gets 17,314 at all accounts.
//
// A success takes back its own attempt and nothing else: whoever guesses beside the owner gets no fresh start from it.
var (
	pairPace    = pace{free: 5, longest: 5 * time.Minute}
	networkPace = pace{free: 30, longest: 5 * time.Second}  // many people may share an address
	accountPace = pace{free: 50, longest: 30 * time.Second} // one address alone never uses up what is free
)

const (
	firstWait  = time.Second
	maxTracked = 100_000 // budgets remembered; beyond it those that need not wait are forgotten
)

// pace is how failures slow down: the first are free, since people mistype; each further one doubles the wait, up to the
// longest. Whenever the longest wait has passed, one failure is forgotten. In whatever rhythm guesses come, the first t of
// them bring no more than free + log2(longest in seconds) + 1 + t / longest.
type pace struct {
	free    int
	longest time.Duration
}

func (p pace) wait(count int) time.Duration {
	if count < p.free {
		return 0
	}
	return min(p.longest, firstWait<<min(count-p.free, bits.Len64(uint64(p.longest/firstWait))))
}

// attempts remembers failed sign-ins of the recent past, on this node.
type attempts struct {
	mu      sync.Mutex
	tracked map[budgetID]*failures // Guarded by mu.
	ended   chan struct{}          // Guarded by mu. Closed when an attempt under way ends.
	waiting int                    // Guarded by mu. Those who wait for one to end.
}

// budgetID names what failures count against. It is a hash, so that what strangers invent takes no more room than what
// exists.
type budgetID [sha256.Size]byte

type budget struct {
	id   budgetID
	pace pace
}

func newBudget(p pace, kind, who string) budget {
	return budget{sha256.Sum256([]byte(kind + " " + who)), p}
}

// budgets are those of one attempt. The account's comes last: see admit.
func budgets(emailKey, network string) []budget {
	return []budget{
		newBudget(pairPace, "pair", network+" "+emailKey), // a network has no space
		newBudget(networkPace, "network", network),
		newBudget(accountPace, "account", emailKey),
	}
}

type failures struct {
	count    int // also of attempts under way, which may fail
	underWay int

	since time.Time // the next failure is forgotten one longest wait after this
	until time.Time // no attempt before this
}

// attempt is one that was admitted.
type attempt struct {
	counted []counted
}

type counted struct {
	id            budgetID
	failures      *failures
	before, until time.Time // what the wait was, and what this attempt made it
}

func newAttempts() *attempts {
	return &attempts{tracked: map[budgetID]*failures{}, ended: make(chan struct{})}
}

const (
	underWayFor = 2 * time.Second // how long one waits for attempts under way
	maxWaiting  = 64              // how many do
)

// enter is begin for those who can wait: attempts under way count as failed, but may yet succeed. Several programs that sign in to
// one account at once, with the right password, are not guessers.
func (a *attempts) enter(ctx context.Context, now func() time.Time, emailKey, network string, known func() bool) (*attempt, error) {
	patience := time.NewTimer(underWayFor)
	defer patience.Stop()
	for {
		ended, isUnderWay := a.underWay(budgets(emailKey, network))
		tried, err := a.begin(now(), emailKey, network, known)
		if err == nil || !isUnderWay || !a.mayWait() {
			return tried, err
		}
		select {
		case <-ended:
		case <-patience.C:
			err = errBusy(time.Second)
		case <-ctx.Done():
			err = ctx.Err()
		}
		a.waited()
		if !errors.Is(err, errGuesser) {
			return nil, err
		}
	}
}

// underWay reports whether an attempt of one of the budgets is under way, and returns what is closed when any attempt ends.
func (a *attempts) underWay(all []budget) (ended <-chan struct{}, is bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ended, slices.ContainsFunc(all, func(b budget) bool {
		f := a.tracked[b.id]
		return f != nil && f.underWay > 0
	})
}

func (a *attempts) mayWait() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting == maxWaiting {
		return false
	}
	a.waiting++
	return true
}

func (a *attempts) waited() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting--
}

// errGuesser is why somebody is turned away who failed too often.
var errGuesser = errors.New("too many failed attempts")

// begin admits an attempt, or says how long to wait. It counts the attempt as failed right away: otherwise a hundred
// guesses at the same time would all be admitted before the first one failed. It gives the same answer for accounts
// that exist and that do not. It asks known only when the answer matters: whether somebody signed in to this account
// from this network before.
func (a *attempts) begin(now time.Time, emailKey, network string, known func() bool) (*attempt, error) {
	all := budgets(emailKey, network)
	own := len(all) - 1
	admitted, wait, by := a.admit(now, all, len(all))
	if by == own && known() {
		admitted, wait, _ = a.admit(now, all, own)
	}
	if admitted == nil {
		e := freshet.Wrap(freshet.TooManyRequests, errGuesser, "Too many failed attempts; wait before you try again")
		e.RetryAfter = wait
		return nil, e
	}
	return admitted, nil
}

// admit counts a failure against all budgets, unless one of the first n has to wait; by says which.
func (a *attempts) admit(now time.Time, all []budget, n int) (admitted *attempt, wait time.Duration, by int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, b := range all[:n] {
		if f := a.tracked[b.id]; f != nil && f.until.After(now) {
			return nil, f.until.Sub(now), i
		}
	}
	admitted = &attempt{}
	for _, b := range all {
		admitted.counted = append(admitted.counted, a.count(now, b))
	}
	return admitted, 0, -1
}

func (a *attempts) count(now time.Time, b budget) counted {
	f := a.tracked[b.id]
	if f == nil {
		a.makeRoom(now)
		f = &failures{since: now}
		a.tracked[b.id] = f
	}
	f.forget(now, b.pace)
	f.count++
	f.underWay++
	before := f.until
	if wait := b.pace.wait(f.count); wait > 0 {
		f.until = now.Add(wait)
	}
	return counted{b.id, f, before, f.until}
}

func (f *failures) forget(now time.Time, p pace) {
	if f.count == 0 {
		f.since = now
		return
	}
	if forgotten := int(now.Sub(f.since) / p.longest); forgotten > 0 {
		f.count = max(0, f.count-forgotten)
		f.since = f.since.Add(time.Duration(forgotten) * p.longest)
	}
}

// takeBack undoes an attempt that was no failed one: it succeeded, or came to no result through no fault of the caller's. The
// wait that came with it goes too, unless another failure has made it longer meanwhile.
func (a *attempts) takeBack(tried *attempt) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.end(tried)
	for _, c := range tried.counted {
		f := c.failures
		f.count = max(0, f.count-1)
		if f.until.Equal(c.until) {
			f.until = c.before
		}
		if f.count == 0 && a.tracked[c.id] == f {
			delete(a.tracked, c.id)
		}
	}
}

// failed leaves an attempt counted.
func (a *attempts) failed(tried *attempt) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.end(tried)
}

// end lets those look again who wait for an attempt to end. The caller holds mu.
func (a *attempts) end(tried *attempt) {
	for _, c := range tried.counted {
		c.failures.underWay--
	}
	close(a.ended)
	a.ended = make(chan struct{})
}

// makeRoom keeps an attacker who invents accounts from growing the map: what need not wait goes, or else everything does.
func (a *attempts) makeRoom(now time.Time) {
	if len(a.tracked) < maxTracked {
		return
	}
	for id, f := range a.tracked {
		if !f.until.After(now) {
			delete(a.tracked, id)
		}
	}
	if len(a.tracked) >= maxTracked {
		clear(a.tracked)
	}
}
