package poll

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/freshet-io/freshet"
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
	for i := range 20_000 {
		s := newSource(p, sh, "a", subscriber)
		s.present, s.leaving = false, time.NewTimer(time.Hour)
		sh.mu.Lock()
		sh.sources["a"] = s
		sh.mu.Unlock()
		var both sync.WaitGroup
		both.Go(s.giveUp)
		for range i % 100 { // the two meet in every way
			_ = p.source("a")
		}
		p.arrive("a", subscriber)
		both.Wait()
		now := p.source("a")
		if now == nil {
			t.Fatalf("nobody polls it, after %d times", i)
		}
		now.stop(lost)
	}
}
