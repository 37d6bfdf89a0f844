package poll

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/grid/memory"
)

// unlisted is a catalog whose topics no sweep finds.
type unlisted struct{ *directory }

func (unlisted) PollerTopics(context.Context, string, int) ([]freshet.Topic, error) { return nil, nil }

// TestASubscriberWhoComesBackAtTheLastMomentHasItPolled: either what is just being given up goes on, or it begins anew.
func TestASubscriberWhoComesBackAtTheLastMomentHasItPolled(t *testing.T) {
	w := newWorld(t, newScript(counting), Options{})
	_ = w.poller.Close()
	p := newPoller(Parts{Catalog: unlisted{w.catalog}, Router: w.router, Grid: w.grid}, Options{}, w.target)
	p.start()
	w.poller = p
	w.catalog.set("a", time.Hour)
	sh := &p.shards[shardOf("a")]
	hour := time.Now().Add(time.Hour)
	for i := range 20_000 {
		s := newSource(p, sh, "a", subscriber)
		s.attendance.present, s.attendance.leaving = false, time.NewTimer(time.Hour)
		sh.mu.Lock()
		sh.sources["a"] = s
		sh.mu.Unlock()
		var both sync.WaitGroup
		both.Go(s.giveUp)
		for range i % 100 { // the two meet in every way
			_ = p.source("a")
		}
		sh.until.Store(&hour) // however slow the machine is
		p.arrive("a", subscriber)
		both.Wait()
		now := p.source("a")
		if now == nil {
			t.Fatalf("nobody polls it, after %d times", i)
		}
		now.stop(lost)
	}
}

// slowClaims is a grid that takes its time to write a failure down.
type slowClaims struct{ *memory.Grid }

func (g slowClaims) Swap(ctx context.Context, name, old, new string, ttl time.Duration) (string, error) {
	if name == freshet.SourceValue("a") {
		time.Sleep(time.Second)
	}
	return g.Grid.Swap(ctx, name, old, new, ttl)
}

// TestASubscriberWhoComesBackDuringARefreshWaitsAsLongAsTheTargetWants: what the refresh is about to learn of that is nobody else's to read.
func TestASubscriberWhoComesBackDuringARefreshWaitsAsLongAsTheTargetWants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newScript(func(int, *request) (*response, error) {
			return nil, &freshet.Error{Kind: freshet.SourceFailed, Msg: "Slow down", RetryAfter: 5 * time.Minute}
		}), Options{})
		_ = w.poller.Close()
		w.poller = newPoller(Parts{Catalog: w.catalog, Router: w.router, Grid: slowClaims{w.grid}}, Options{}, w.target)
		w.poller.start()
		w.catalog.set("a", time.Second)
		leave := w.join("a")
		after(10 * time.Second)
		leave()
		after(time.Minute) // nobody is there, and what the target asked for is remembered
		w.notify(grid.ScopePoll, "a")
		time.Sleep(500 * time.Millisecond)
		defer w.join("a")()
		after(4 * time.Minute)
		if got := w.target.times("a"); len(got) != 2 {
			t.Errorf("polled at %v", got)
		}
	})
}
