package memory

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrBusy says that others needed the memory for too long.
var ErrBusy = errors.New("memory: no room in time")

// Limits of a semaphore.
type Limits struct {
	Bytes   int64         // that all together may take at once; one alone may take more
	Holders int           // how many may be at it at once, without those that rest; 0 is any number
	Wait    time.Duration // how long one waits before it is refused
	Queue   int           // how many may wait; more are refused at once
}

// A Semaphore admits those who take much memory for a short time. Who does not fit waits.
//
// Turns are fair by weight: who asked for little, and whose owner asked for little lately, goes before who asks for much again
// and again. So one owner's many large requests delay another's one by about one of them.
type Semaphore struct {
	// Static.
	limits Limits

	mu      sync.Mutex
	bytes   int64
	holders int
	resting int // of the holders
	waiting []*waiter
	turn    int64            // where the last one admitted from the queue stood
	owners  map[string]int64 // where the last request of an owner stands, while anybody waits
}

type waiter struct {
	weight   int64
	extends  bool  // it is a holder already
	place    int64 // the least goes first
	admitted chan struct{}
}

// NewSemaphore returns a semaphore that nobody holds.
func NewSemaphore(l Limits) *Semaphore {
	return &Semaphore{limits: l, owners: make(map[string]int64)}
}

// Acquire takes weight bytes for an owner. Release must follow. The error is ErrBusy, or the context's.
func (s *Semaphore) Acquire(ctx context.Context, owner string, weight int64) error {
	return s.AcquireSince(ctx, owner, weight, time.Now())
}

// AcquireSince is Acquire for somebody who has waited for something else since then: that is part of how long one waits.
func (s *Semaphore) AcquireSince(ctx context.Context, owner string, weight int64, since time.Time) error {
	return s.acquire(ctx, owner, since, &waiter{weight: weight})
}

// Extend takes more for somebody who has acquired. Release then gives back the sum. Holders go before those who are none.
func (s *Semaphore) Extend(ctx context.Context, weight int64) error {
	return s.acquire(ctx, "", time.Now(), &waiter{weight: weight, extends: true})
}

// TryAcquire is Acquire for those who cannot wait. It reports whether it succeeded.
func (s *Semaphore) TryAcquire(weight int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &waiter{weight: weight}
	if len(s.waiting) > 0 || !s.fits(w) {
		return false
	}
	s.admit(w)
	return true
}

// Release gives back what was acquired.
func (s *Semaphore) Release(weight int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes -= weight
	s.holders--
	s.admitNext()
}

// Rest is for a holder that is done with its work and still needs some of the memory, while it waits for others: it keeps so much of what
// it acquired, and makes room for another holder. Wake must follow, and no Release.
func (s *Semaphore) Rest(weight, kept int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes -= weight - kept
	s.resting++
	s.admitNext()
}

// Wake gives back what Rest kept.
func (s *Semaphore) Wake(kept int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes -= kept
	s.resting--
	s.holders--
	s.admitNext()
}

// Held returns how much is taken, and how many wait.
func (s *Semaphore) Held() (bytes int64, waiting int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes, len(s.waiting)
}

func (s *Semaphore) acquire(ctx context.Context, owner string, since time.Time, w *waiter) error {
	s.mu.Lock()
	if s.fits(w) && (len(s.waiting) == 0 || w.extends) {
		s.admit(w)
		s.mu.Unlock()
		return nil
	}
	left := s.limits.Wait - time.Since(since)
	if left <= 0 || len(s.waiting) >= s.limits.Queue {
		s.mu.Unlock()
		return ErrBusy
	}
	s.enqueue(owner, w)
	s.mu.Unlock()
	patience := time.NewTimer(left)
	defer patience.Stop()
	select {
	case <-w.admitted:
		return nil
	case <-patience.C:
		return s.giveUp(w, ErrBusy)
	case <-ctx.Done():
		return s.giveUp(w, ctx.Err())
	}
}

// enqueue gives a waiter its place: as far behind the present turn, or its owner's last request, as it is heavy.
func (s *Semaphore) enqueue(owner string, w *waiter) {
	w.admitted = make(chan struct{})
	if !w.extends {
		w.place = max(s.turn, s.owners[owner]) + w.weight
		s.owners[owner] = w.place
	}
	s.waiting = append(s.waiting, w)
}

// giveUp takes a waiter out of the queue, unless it was admitted meanwhile.
func (s *Semaphore) giveUp(w *waiter, why error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, other := range s.waiting {
		if other == w {
			s.remove(i)
			s.admitNext() // who waited behind it may fit
			return why
		}
	}
	return nil
}

func (s *Semaphore) remove(i int) {
	last := len(s.waiting) - 1
	s.waiting[i], s.waiting[last] = s.waiting[last], nil
	s.waiting = s.waiting[:last]
	if last == 0 {
		s.turn = 0
		clear(s.owners)
	}
}

// fits reports whether a waiter can be admitted. One alone always can: otherwise it never would.
func (s *Semaphore) fits(w *waiter) bool {
	others := s.holders
	if w.extends {
		others--
	}
	if others <= 0 {
		return true
	}
	if !w.extends && s.limits.Holders > 0 && s.holders-s.resting >= s.limits.Holders {
		return false
	}
	return s.bytes+w.weight <= s.limits.Bytes
}

func (s *Semaphore) admit(w *waiter) {
	s.bytes += w.weight
	if !w.extends {
		s.holders++
	}
}

// admitNext admits those whose turn it is, as long as they fit.
func (s *Semaphore) admitNext() {
	for len(s.waiting) > 0 {
		first := 0
		for i, w := range s.waiting {
			if w.place < s.waiting[first].place {
				first = i
			}
		}
		w := s.waiting[first]
		if !s.fits(w) {
			return
		}
		s.admit(w)
		s.turn = max(s.turn, w.place)
		s.remove(first)
		close(w.admitted)
	}
}
