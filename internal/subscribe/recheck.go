package subscribe

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/usage"
)

// rechecker asks the catalog about open streams again: about those that a notice concerns at once, and about everybody now and then,
// since notices can get lost. What it says decides whether their streams end.
type rechecker struct {
	// Static after start.
	log       *slog.Logger
	catalog   Catalog
	audiences *audiences
	quotas    *quotas
	sources   *sources
	every     time.Duration
	end       func(*audience, error)                  // ends their streams
	tell      func(*audience, *freshet.SourceFailure) // tells them how their data source is; nil: well

	queue    *recheckQueue
	done     chan struct{}
	finished sync.WaitGroup
}

// start begins to recheck.
func (c *rechecker) start() {
	c.finished.Go(c.run)
	c.finished.Go(c.recheckAll)
}

func (c *rechecker) close() {
	close(c.done)
	c.finished.Wait()
}

// run needs not wait after a notice: the catalog has heard it before (see grid.Notices), and what comes while it asks is taken
// together.
func (c *rechecker) run() {
	for {
		select {
		case <-c.done:
			return
		case <-c.queue.wake:
			c.recheck(c.queue.take())
		}
	}
}

// recheckAll has a goroutine of its own: what takes it seconds with many topics must not hold up a notice.
func (c *rechecker) recheckAll() {
	again := time.NewTicker(c.every)
	defer again.Stop()
	for {
		select {
		case <-c.done:
			return
		case <-again.C:
		case <-c.queue.all:
		}
		all := c.audiences.all()
		c.ask(all)
		c.look(all)
	}
}

func (c *rechecker) recheck(work recheckWork) {
	c.endSpent(work.spent)
	c.ask(append(work.suspects, c.audiences.about(work.ofPermissions())...))
	c.look(c.audiences.about(work.ofSources()))
}

// endSpent ends the streams of accounts and apps that have no messages left.
func (c *rechecker) endSpent(spent map[usage.Owner]struct{}) {
	for of := range spent {
		n := grid.Notice{Scope: grid.ScopeUser, ID: of.ID()}
		if of.IsApp() {
			n.Scope = grid.ScopeApp
		}
		for _, a := range c.audiences.about(slices.Values([]grid.Notice{n})) {
			c.end(a, errSpent(of, time.Now()))
		}
	}
}

// askTimeout bounds one question, so that a catalog that hangs does not keep the others from being asked.
const askTimeout = 5 * time.Second

// askers is how many questions are asked at the same time. Each takes the database a moment.
const askers = 8

// ask asks the catalog about audiences again.
func (c *rechecker) ask(all []*audience) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(askers, len(all)) {
		wg.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(all) && !c.isDone(); i = next.Add(1) - 1 {
				c.askOne(all[i])
			}
		})
	}
	wg.Wait()
}

func (c *rechecker) isDone() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

func (c *rechecker) askOne(a *audience) {
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	grant, err := c.catalog.MaySubscribe(ctx, a.ask)
	if err == nil {
		err = c.quotas.recheck(ctx, grant)
	}
	switch freshet.KindOf(err) {
	case freshet.Internal, freshet.Unavailable, freshet.Timeout:
		// A question that could not be asked is not a no: streams outlive a catalog that is down for a while.
		if err != nil {
			c.log.Warn("permission could not be checked again", "topic", a.ask.TopicID, "err", err)
		}
	case freshet.TopicNotFound, freshet.UnknownCredential: // a key that was known disappears with its app only
		c.end(a, freshet.Errorf(freshet.TopicGone, "The topic was deleted"))
	default:
		c.end(a, err)
	}
}

// look tells the audiences of polled topics how their data source is now. It gives up when nobody answers: permissions must not wait
// until each was asked for.
func (c *rechecker) look(all []*audience) {
	began := time.Now()
	for _, a := range all {
		if a.topic.Publisher.Type != freshet.HTTPPoller {
			continue
		}
		failure, known := c.sources.look(a.topic.ID)
		switch {
		case !known:
			if time.Since(began) >= askTimeout {
				return
			}
		case failure != nil && failure.Fatal:
			c.end(a, failure.Err())
		default:
			c.tell(a, failure)
		}
	}
}
