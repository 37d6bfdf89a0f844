package poll

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/grid/memory"
	"github.com/freshet-io/freshet/internal/router"
)

// farGrid is the grid as a node sees it that may be cut off, and to whom answers come late.
type farGrid struct {
	*memory.Grid
	cut  atomic.Bool   // nothing about claims comes through
	late time.Duration // of whether anybody is present
}

func (g *farGrid) Swap(ctx context.Context, name, old, new string, ttl time.Duration) (string, error) {
	if g.cut.Load() {
		<-ctx.Done()
		return "", ctx.Err()
	}
	return g.Grid.Swap(ctx, name, old, new, ttl)
}

func (g *farGrid) Value(ctx context.Context, name string) (string, error) {
	if g.cut.Load() {
		<-ctx.Done()
		return "", ctx.Err()
	}
	return g.Grid.Value(ctx, name)
}

func (g *farGrid) Present(ctx context.Context, topic string) (bool, error) {
	time.Sleep(g.late)
	return g.Grid.Present(ctx, topic)
}

// farNode is a poller that is further away from the grid than others.
func (w *world) farNode(g *farGrid, target fetcher) *Poller {
	g.Grid = w.grid
	p := newPoller(Parts{Catalog: w.catalog, Router: w.router, Grid: g}, Options{}, target)
	p.start()
	return p
}

func TestASourceDoesNotBeginOnceItsLeaseIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newScript(counting), Options{})
		_ = w.poller.Close()
		w.catalog.set("a", time.Second)
		defer w.join("a")()
		far := &farGrid{late: 10 * time.Second}
		cutOff := w.farNode(far, w.target)
		after(2 * leaseRound) // it has the leases, and asks who is present
		far.cut.Store(true)
		w.poller = w.node(Options{})
		after(20 * time.Second)
		if n := cutOff.Stats().Sources; n != 0 {
			t.Errorf("the node without leases has %d sources", n)
		}
		before := len(w.target.times("a"))
		after(10 * time.Second)
		if n := len(w.target.times("a")) - before; n < 9 || n > 11 {
			t.Errorf("%d polls in ten seconds", n)
		}
		cutOff.kill()
	})
}

// watched reports requests that are made without a lease.
type watched struct {
	*script
	t *testing.T
	p *Poller
}

func (f *watched) fetch(ctx context.Context, q *request) (*response, error) {
	if !f.p.leases.holds(shardOf("a")) {
		f.t.Errorf("a request at %v without a lease", time.Since(f.start))
	}
	return f.script.fetch(ctx, q)
}

func TestNoRequestIsMadeWithoutALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newScript(counting), Options{})
		_ = w.poller.Close()
		w.catalog.set("a", 20*time.Millisecond)
		defer w.join("a")()
		far, target := &farGrid{}, &watched{script: w.target, t: t}
		g := far
		g.Grid = w.grid
		p := newPoller(Parts{Catalog: w.catalog, Router: w.router, Grid: g}, Options{}, target)
		target.p = p
		p.start()
		w.poller = p
		for range 5 {
			after(5 * time.Second)
			before := len(w.target.times("a"))
			if before == 0 {
				t.Error("it is not polled")
			}
			far.cut.Store(true)
			after(2 * leaseTime)
			far.cut.Store(false)
		}
	})
}

// slowPut is the grid of a node whose first publication takes a while to get there.
type slowPut struct {
	*memory.Grid
	putting, goOn chan struct{}
	first         atomic.Bool
}

func (g *slowPut) Put(ctx context.Context, topic string, expected freshet.Position, doc grid.Document) (freshet.Position, error) {
	if g.first.CompareAndSwap(false, true) {
		close(g.putting)
		<-g.goOn
	}
	return g.Grid.Put(ctx, topic, expected, doc)
}

func TestWhoLostItsLeaseDoesNotPublishOverItsSuccessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newScript(counting), Options{})
		_ = w.poller.Close()
		w.catalog.set("a", time.Hour)
		defer w.join("a")()
		slow := &slowPut{Grid: w.grid, putting: make(chan struct{}), goOn: make(chan struct{})}
		theirs := router.New(slow, router.Options{})
		defer func() { _ = theirs.Close() }()
		w.poller = newPoller(Parts{Catalog: w.catalog, Router: theirs, Grid: w.grid}, Options{}, w.target)
		w.poller.start()
		<-slow.putting
		n := shardOf("a")
		w.poller.shards[n].endLease()
		_, _ = w.grid.Swap(t.Context(), shardValue(n), w.poller.leases.me, "another node", time.Minute)
		topic := w.catalog.topics["a"]
		if _, err := w.router.Publish(t.Context(), &topic, router.Publication{Body: []byte(`{"of":"the successor"}`)}); err != nil {
			t.Fatal(err)
		}
		close(slow.goOn)
		after(time.Minute)
		if got := w.document("a"); got != `{"of":"the successor"}` {
			t.Errorf("the document is %s", got)
		}
	})
}

func TestALeaseThatWasLostAndTakenAgainBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newScript(counting), Options{})
		w.catalog.set("a", time.Second)
		defer w.join("a")()
		after(5 * time.Second)
		before := w.poller.source("a")
		n := shardOf("a")
		_, _ = w.grid.Swap(t.Context(), shardValue(n), w.poller.leases.me, "another node", 2*leaseRound)
		after(leaseRound)
		if w.poller.source("a") != nil {
			t.Error("it goes on although another node has the lease")
		}
		after(10 * time.Second)
		if now := w.poller.source("a"); now == nil || now == before {
			t.Error("it did not begin anew") // another node may have published meanwhile, and what the old source knows is wrong
		}
	})
}
