package poll

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/router"
)

// slowly is a catalog that takes its time with some answers.
type slowly struct {
	*directory
	asked atomic.Int64
	takes func(question int64) time.Duration
}

func (s *slowly) Source(ctx context.Context, id string) (*catalog.Source, error) {
	found, err := s.directory.Source(ctx, id)
	time.Sleep(s.takes(s.asked.Add(1)))
	return found, err
}

// slowRouter takes its time to follow a topic.
type slowRouter struct{ *router.Router }

func (r slowRouter) OpenWriter(ctx context.Context, topic *freshet.Topic) (*router.Writer, error) {
	time.Sleep(time.Second)
	return r.Router.OpenWriter(ctx, topic)
}

// TestAnOldAnswerOfTheCatalogDoesNotReplaceANewOne when a topic is looked up twice at the same time.
func TestAnOldAnswerOfTheCatalogDoesNotReplaceANewOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newScript(counting), Options{})
		_ = w.poller.Close()
		slow := &slowly{directory: w.catalog, takes: func(question int64) time.Duration { return max(0, 4-time.Duration(question)) * time.Second }}
		w.poller = newPoller(Parts{Catalog: slow, Router: w.router, Grid: w.grid}, Options{}, w.target)
		w.poller.start()
		w.catalog.set("a", 2*time.Second)
		defer w.join("a")()
		synctest.Wait() // it is being looked up
		w.catalog.set("a", 2*time.Second, at("http://b.example.com/"))
		w.notify(grid.ScopeTopic, "a")
		after(10 * time.Second)
		before := len(w.target.times("a"))
		after(20 * time.Second)
		if a, b := w.target.times("a"), w.target.times("b"); len(a) > before || len(b) < 9 {
			t.Errorf("the old URL is polled at %v, the new one at %v", a, b)
		}
	})
}

// TestATopicThatIsLookedUpTwiceIsHeldOnce, and so let go of when nobody is subscribed any more.
func TestATopicThatIsLookedUpTwiceIsHeldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newScript(counting), Options{})
		_ = w.poller.Close()
		routed := router.New(w.grid, router.Options{Linger: time.Minute})
		defer routed.Close()
		w.poller = newPoller(Parts{Catalog: w.catalog, Router: slowRouter{routed}, Grid: w.grid}, Options{}, w.target)
		w.poller.start()
		w.catalog.set("a", 2*time.Second)
		leave := w.join("a")
		w.notify(grid.ScopeTopic, "a")
		after(20 * time.Second)
		leave()
		after(10 * time.Minute)
		if n := routed.Stats().Topics; n != 0 || len(w.target.times("a")) == 0 {
			t.Errorf("%d topics are still held", n)
		}
	})
}
