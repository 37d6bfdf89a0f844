package catalog

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/freshet-io/freshet"
)

// Who hashes waits, but not for long: a hash takes some 30 ms of a core.
const (
	waitingPerPlace = 64 // two seconds
	maxLine         = 8  // of one network
)

// turns is a semaphore that is fair between networks: each waits in a line of its own, and the lines take turns. Whoever floods it
// delays others by one hash at most.
type turns struct {
	// Static after newTurns.
	places int

	// Guarded by mu.
	mu      sync.Mutex
	taken   int
	waiting int
	lines   []*line // none is empty; the first is next
}

type line struct {
	network string
	waiters []*waiter
}

// waiter is told once: by a nil that it has a place, or by an error that it lost its place in line.
type waiter struct{ told chan error }

// hashPlaces is how many hashes may run at a time: half of the cores are for others.
func hashPlaces(cores int) int { return max(1, cores/2) }

func newTurns(places int) *turns { return &turns{places: places} }

// enter waits for a place. It refuses at once where waiting would take too long.
func (t *turns) enter(ctx context.Context, network string) (leave func(), err error) {
	w, err := t.join(network)
	if err != nil {
		return nil, err
	}
	select {
	case err := <-w.told:
		if err != nil {
			return nil, err
		}
		return t.leave, nil
	case <-ctx.Done():
		t.giveUp(network, w)
		return nil, freshet.Wrap(freshet.Unavailable, ctx.Err(), "Too many sign-ins at once; try again")
	}
}

// join takes a place, or one in the line of the network.
func (t *turns) join(network string) (*waiter, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := &waiter{told: make(chan error, 1)}
	if t.taken < t.places {
		t.taken++
		w.told <- nil
		return w, nil
	}
	own := t.find(network)
	if own >= 0 && len(t.lines[own].waiters) >= maxLine {
		return nil, errCrowded(time.Second)
	}
	if t.waiting >= waitingPerPlace*t.places && (own >= 0 || !t.makeRoom()) {
		return nil, errCrowded(2 * time.Second)
	}
	t.waiting++
	if own < 0 {
		t.lines = append(t.lines, &line{network, []*waiter{w}})
		return w, nil
	}
	t.lines[own].waiters = append(t.lines[own].waiters, w)
	return w, nil
}

func errCrowded(wait time.Duration) error {
	e := freshet.Errorf(freshet.TooManyRequests, "Too many sign-ins at once; try again in a moment")
	e.RetryAfter = wait
	return e
}

func (t *turns) find(network string) int {
	return slices.IndexFunc(t.lines, func(l *line) bool { return l.network == network })
}

// makeRoom sends away the last one of the longest line, for somebody whose network does not wait yet. It leaves lines of one
// alone.
func (t *turns) makeRoom() bool {
	longest := slices.MaxFunc(t.lines, func(a, b *line) int { return len(a.waiters) - len(b.waiters) })
	last := len(longest.waiters) - 1
	if last == 0 {
		return false
	}
	longest.waiters[last].told <- errCrowded(2 * time.Second)
	longest.waiters = longest.waiters[:last]
	t.waiting--
	return true
}

// leave passes the place on to whose turn it is.
func (t *turns) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lines) == 0 {
		t.taken--
		return
	}
	next := t.lines[0]
	t.lines = t.lines[1:]
	next.waiters[0].told <- nil
	t.waiting--
	if next.waiters = next.waiters[1:]; len(next.waiters) > 0 {
		t.lines = append(t.lines, next)
	}
}

// giveUp leaves the line, or passes on the place that it got meanwhile.
func (t *turns) giveUp(network string, w *waiter) {
	if t.drop(network, w) {
		return
	}
	if err := <-w.told; err == nil {
		t.leave()
	}
}

func (t *turns) drop(network string, w *waiter) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.find(network)
	if own < 0 {
		return false
	}
	l := t.lines[own]
	at := slices.Index(l.waiters, w)
	if at < 0 {
		return false
	}
	t.waiting--
	if l.waiters = slices.Delete(l.waiters, at, at+1); len(l.waiters) == 0 {
		t.lines = slices.Delete(t.lines, own, own+1)
	}
	return true
}
