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
	maxQueue        = 8  // of one network
)

// fairSemaphore is fair between networks: each waits in a queue of its own, and the queues are served in rotation. Whoever floods it
// delays others by one hash at most.
type fairSemaphore struct {
	// Static after newFairSemaphore.
	places int

	// Guarded by mu.
	mu      sync.Mutex
	taken   int
	waiting int
	queues  []*queue // none is empty; the first is next
}

type queue struct {
	network string
	waiters []*waiter
}

// waiter is told once: by a nil that it has a place, or by an error that it lost its place in the queue.
type waiter struct{ told chan error }

// hashPlaces is how many hashes may run at a time: half of the cores are for others.
func hashPlaces(cores int) int { return max(1, cores/2) }

func newFairSemaphore(places int) *fairSemaphore { return &fairSemaphore{places: places} }

// enter waits for a place. It refuses at once where waiting would take too long.
func (t *fairSemaphore) enter(ctx context.Context, network string) (leave func(), err error) {
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

// join takes a place, or one in the queue of the network.
func (t *fairSemaphore) join(network string) (*waiter, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := &waiter{told: make(chan error, 1)}
	if t.taken < t.places {
		t.taken++
		w.told <- nil
		return w, nil
	}
	own := t.find(network)
	if own >= 0 && len(t.queues[own].waiters) >= maxQueue {
		return nil, errBusy(time.Second)
	}
	if t.waiting >= waitingPerPlace*t.places && (own >= 0 || !t.makeRoom()) {
		return nil, errBusy(2 * time.Second)
	}
	t.waiting++
	if own < 0 {
		t.queues = append(t.queues, &queue{network, []*waiter{w}})
		return w, nil
	}
	t.queues[own].waiters = append(t.queues[own].waiters, w)
	return w, nil
}

func errBusy(wait time.Duration) error {
	e := freshet.Errorf(freshet.TooManyRequests, "Too many sign-ins at once; try again in a moment")
	e.RetryAfter = wait
	return e
}

func (t *fairSemaphore) find(network string) int {
	return slices.IndexFunc(t.queues, func(q *queue) bool { return q.network == network })
}

// makeRoom sends away the last one of the longest queue, for somebody whose network does not wait yet. It leaves queues of one
// alone.
func (t *fairSemaphore) makeRoom() bool {
	longest := slices.MaxFunc(t.queues, func(a, b *queue) int { return len(a.waiters) - len(b.waiters) })
	last := len(longest.waiters) - 1
	if last == 0 {
		return false
	}
	longest.waiters[last].told <- errBusy(2 * time.Second)
	longest.waiters = longest.waiters[:last]
	t.waiting--
	return true
}

// leave passes the place on to the next network.
func (t *fairSemaphore) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.queues) == 0 {
		t.taken--
		return
	}
	next := t.queues[0]
	t.queues = t.queues[1:]
	next.waiters[0].told <- nil
	t.waiting--
	if next.waiters = next.waiters[1:]; len(next.waiters) > 0 {
		t.queues = append(t.queues, next)
	}
}

// giveUp leaves the queue, or passes on the place that it got meanwhile.
func (t *fairSemaphore) giveUp(network string, w *waiter) {
	if t.drop(network, w) {
		return
	}
	if err := <-w.told; err == nil {
		t.leave()
	}
}

func (t *fairSemaphore) drop(network string, w *waiter) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.find(network)
	if own < 0 {
		return false
	}
	q := t.queues[own]
	at := slices.Index(q.waiters, w)
	if at < 0 {
		return false
	}
	t.waiting--
	if q.waiters = slices.Delete(q.waiters, at, at+1); len(q.waiters) == 0 {
		t.queues = slices.Delete(t.queues, own, own+1)
	}
	return true
}
