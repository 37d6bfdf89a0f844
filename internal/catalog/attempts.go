package catalog

import (
	"crypto/sha256"
	"sync"
	"time"

	"github.com/freshet-io/freshet"
)

// Guessing passwords is slowed per account and per address. The first failures are free: people mistype. After
// that each failure doubles the wait, up to a limit low enough that locking somebody out is no attack either.
const (
	freeAccountFailures = 5
	freeAddressFailures = 30
	firstWait           = time.Second
	longestAccountWait  = 30 * time.Second
	longestAddressWait  = 5 * time.Second // many people may share an address
	attemptMemory       = 15 * time.Minute
	maxTracked          = 100_000 // accounts and addresses remembered; beyond it those that need not wait are forgotten
)

// attempts remembers failed sign-ins of the recent past, on this node.
type attempts struct {
	mu      sync.Mutex
	tracked map[guesser]*failures // Guarded by mu.
}

// guesser names an account or an address. It is a hash, so that what strangers invent takes no more room than what
// exists.
type guesser [sha256.Size]byte

func theAccount(emailKey string) guesser { return sha256.Sum256([]byte("account " + emailKey)) }
func theAddress(address string) guesser  { return sha256.Sum256([]byte("address " + address)) }

type failures struct {
	count int
	last  time.Time
	until time.Time // no attempt before this
}

func newAttempts() *attempts { return &attempts{tracked: map[guesser]*failures{}} }

// begin admits an attempt, or says how long to wait. It counts the attempt as failed right away: otherwise a hundred
// guesses at the same time would all be admitted before the first one failed. It gives the same answer for accounts
// that exist and that do not.
func (a *attempts) begin(now time.Time, account, address guesser) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if wait := max(a.wait(now, account), a.wait(now, address)); wait > 0 {
		e := freshet.Errorf(freshet.TooManyRequests, "Too many failed attempts; wait before you try again")
		e.RetryAfter = wait
		return e
	}
	a.count(now, account, freeAccountFailures, longestAccountWait)
	a.count(now, address, freeAddressFailures, longestAddressWait)
	return nil
}

func (a *attempts) wait(now time.Time, who guesser) time.Duration {
	f := a.tracked[who]
	if f == nil {
		return 0
	}
	return f.until.Sub(now)
}

func (a *attempts) count(now time.Time, who guesser, free int, longest time.Duration) {
	f := a.tracked[who]
	if f == nil || now.Sub(f.last) > attemptMemory {
		a.makeRoom(now)
		f = &failures{}
		a.tracked[who] = f
	}
	f.count++
	f.last = now
	if over := f.count - free; over >= 0 {
		f.until = now.Add(min(longest, firstWait<<min(over, 10)))
	}
}

// succeeded clears the account. Of the address it takes back this attempt only: an attacker could otherwise wash it
// with an account of his own.
func (a *attempts) succeeded(account, address guesser) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.tracked, account)
	a.takeBack(address)
}

// abandoned takes back an attempt that came to no result through no fault of the caller's.
func (a *attempts) abandoned(account, address guesser) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.takeBack(account)
	a.takeBack(address)
}

// takeBack undoes a count. The wait that came with it goes too; an earlier one was over, or begin had not admitted
// the attempt.
func (a *attempts) takeBack(who guesser) {
	if f := a.tracked[who]; f != nil {
		f.count--
		f.until = time.Time{}
	}
}

// makeRoom keeps an attacker who invents accounts from growing the map: what is old goes, or else everything does.
func (a *attempts) makeRoom(now time.Time) {
	if len(a.tracked) < maxTracked {
		return
	}
	for who, f := range a.tracked {
		if now.Sub(f.last) > attemptMemory || f.until.Before(now) {
			delete(a.tracked, who)
		}
	}
	if len(a.tracked) >= maxTracked {
		clear(a.tracked)
	}
}
