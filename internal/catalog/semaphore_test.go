package catalog

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/freshet-io/freshet"
)

func TestHashingLeavesHalfOfTheCoresToOthers(t *testing.T) {
	for cores, want := range map[int]int{1: 1, 2: 1, 3: 1, 4: 2, 16: 8} {
		if got := hashPlaces(cores); got != want {
			t.Errorf("%d hashes at a time on %d cores, want %d", got, cores, want)
		}
	}
	if got := newPasswords(cheap).semaphore.places; got != hashPlaces(runtime.GOMAXPROCS(0)) {
		t.Errorf("%d hashes at a time here", got)
	}
}

func TestNoMoreHashesRunAtOnceThanThereArePlaces(t *testing.T) {
	semaphore := newFairSemaphore(3)
	var running, most atomic.Int64
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			leave, err := semaphore.enter(t.Context(), fmt.Sprint(i%20))
			if err != nil {
				t.Error(err)
				return
			}
			n := running.Add(1)
			for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
			}
			runtime.Gosched()
			running.Add(-1)
			leave()
		})
	}
	wg.Wait()
	if most.Load() > 3 || semaphore.taken != 0 || semaphore.waiting != 0 || len(semaphore.queues) != 0 {
		t.Errorf("%d at once; then %+v", most.Load(), semaphore)
	}
}

// saturated is a semaphore with one place, which is taken.
type saturated struct {
	*fairSemaphore
	t      *testing.T
	leave  func()
	mu     sync.Mutex
	served []string
	failed []string
}

// newSaturated must be called in a bubble.
func newSaturated(t *testing.T) *saturated {
	c := &saturated{fairSemaphore: newFairSemaphore(1), t: t}
	var err error
	if c.leave, err = c.enter(t.Context(), "first"); err != nil {
		t.Fatal(err)
	}
	return c
}

// wait queues one more, who leaves as soon as it was served.
func (c *saturated) wait(ctx context.Context, network string) {
	go func() {
		leave, err := c.enter(ctx, network)
		c.mu.Lock()
		defer c.mu.Unlock()
		if err != nil {
			c.failed = append(c.failed, network)
			return
		}
		c.served = append(c.served, network)
		leave()
	}()
	synctest.Wait()
}

func TestAnHonestSignInIsServedBeforeTheRestOfAFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSaturated(t)
		for range maxQueue {
			c.wait(t.Context(), "flood")
		}
		_, err := c.enter(t.Context(), "flood")
		if e, ok := err.(*freshet.Error); !ok || e.Kind != freshet.TooManyRequests || e.RetryAfter <= 0 {
			t.Errorf("one more than fits is told %v", err)
		}
		c.wait(t.Context(), "honest")
		c.leave()
		synctest.Wait()
		if want := "flood honest" + strings.Repeat(" flood", maxQueue-1); strings.Join(c.served, " ") != want {
			t.Errorf("served %v", c.served)
		}
	})
}

func TestAFullQueueMakesRoomForNetworksThatDoNotWaitYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSaturated(t)
		for i := range waitingPerPlace / 2 {
			c.wait(t.Context(), fmt.Sprint(i))
			c.wait(t.Context(), fmt.Sprint(i))
		}
		c.wait(t.Context(), "0")
		if len(c.failed) != 1 || c.failed[0] != "0" {
			t.Errorf("a full queue took one more of those who wait: %v", c.failed)
		}
		for i := range waitingPerPlace / 2 {
			c.wait(t.Context(), "new "+fmt.Sprint(i))
		}
		if len(c.failed) != 1+waitingPerPlace/2 || slices.ContainsFunc(c.failed, func(who string) bool { return strings.HasPrefix(who, "new") }) {
			t.Errorf("not the second of each network had to go: %v", c.failed)
		}
		c.wait(t.Context(), "one too many")
		if c.failed[len(c.failed)-1] != "one too many" || c.waiting != waitingPerPlace {
			t.Errorf("%d wait", c.waiting)
		}
		c.leave()
		synctest.Wait()
		if len(c.served) != waitingPerPlace || c.taken != 0 || c.waiting != 0 {
			t.Errorf("served %d; then %d places taken and %d waiting", len(c.served), c.taken, c.waiting)
		}
	})
}

func TestWhoGivesUpWaitingHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSaturated(t)
		gone, cancel := context.WithCancel(t.Context())
		c.wait(gone, "a")
		c.wait(t.Context(), "a")
		c.wait(gone, "b")
		c.wait(t.Context(), "c")
		cancel()
		synctest.Wait()
		c.leave()
		synctest.Wait()
		slices.Sort(c.failed)
		if strings.Join(c.served, " ") != "a c" || strings.Join(c.failed, " ") != "a b" || c.taken != 0 {
			t.Errorf("served %v, gone %v, %d places taken", c.served, c.failed, c.taken)
		}
		cancelled, err := c.enter(gone, "a")
		if err == nil { // a free place is as good as being gone
			cancelled()
		}
		if c.taken != 0 {
			t.Error("a place is lost")
		}
	})
}
