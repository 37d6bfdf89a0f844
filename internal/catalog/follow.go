package catalog

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/store"
)

// Notices can get lost: whoever made a change may die before it tells. So the log of changes is read every second, which is one
// question however many topics are in use, and what it names is treated as if its notice had come. What it does not name is what it
// was: no timer is needed that has it read again.

// lookEvery is how long a lost notice delays a change.
const lookEvery = time.Second

// follower reads the log of changes.
type follower struct {
	confirmed atomic.Pointer[time.Time] // up to when the caches agree with the log

	stop    context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex         // held during a look
	cursor store.ChangeCursor // guarded by mu
}

func (c *Catalog) startFollowing(ctx context.Context) {
	ctx, c.follower.stop = context.WithCancel(context.WithoutCancel(ctx))
	c.lookAndLog(ctx) // before anything is remembered
	c.follower.running.Go(func() { c.follow(ctx) })
}

func (f *follower) close() {
	f.stop()
	f.running.Wait()
}

func (c *Catalog) follow(ctx context.Context) {
	tick := time.NewTicker(cmp.Or(c.opts.lookEvery, lookEvery))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		c.lookAndLog(ctx)
	}
}

func (c *Catalog) lookAndLog(ctx context.Context) {
	hanging := time.AfterFunc(patience, func() { c.suspectStore(true) })
	defer hanging.Stop()
	looking, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	err := c.look(looking)
	if err == nil {
		err = c.store.ReadClock(looking)
	}
	if err != nil && ctx.Err() == nil {
		c.suspectStore(true)
		c.log.Debug("the log of changes cannot be read", "err", err)
	}
}

// look reads what is new in the log.
func (c *Catalog) look(ctx context.Context) error {
	f := &c.follower
	f.mu.Lock()
	defer f.mu.Unlock()
	began := c.opts.Now()
	found, err := c.store.ChangesSince(ctx, f.cursor)
	if err != nil {
		return err
	}
	if found.All {
		c.forgetAll()
		c.notifier.Tell(grid.Notice{Scope: grid.ScopeCatalog})
	}
	for _, change := range found.List {
		n := grid.Notice{Scope: grid.Scope(change.Kind), ID: change.ID}
		if had := c.forgetBefore(n, change.Revision); had.stale || !had.any {
			c.notifier.Tell(n)
		}
	}
	f.cursor = found.Next
	f.confirmed.Store(&began)
	c.suspectStore(false)
	return nil
}

// makeCaches makes the caches that the follower keeps.
func (c *Catalog) makeCaches() {
	now, confirmed := c.opts.Now, &c.follower.confirmed
	c.keys = newCache[keyRef](cacheOptions[*store.KeyRecord]{
		now: now, confirmed: confirmed,
		about: func(k *store.KeyRecord) []grid.Notice {
			return []grid.Notice{{Scope: grid.ScopeApp, ID: k.AppID}, {Scope: grid.ScopeUser, ID: k.UserID}}
		},
		asOf: func(k *store.KeyRecord) int64 { return k.Revision },
	})
	c.apps = newCache[string](cacheOptions[*store.AppRecord]{
		now: now, confirmed: confirmed,
		about: func(a *store.AppRecord) []grid.Notice {
			return []grid.Notice{{Scope: grid.ScopeUser, ID: a.App.UserID}}
		},
		asOf: func(a *store.AppRecord) int64 { return a.Revision },
	})
	c.topics = newCache[string](cacheOptions[*store.TopicRecord]{
		now: now, confirmed: confirmed, asOf: func(t *store.TopicRecord) int64 { return t.Revision },
	})
	c.former = newCache[appRef](cacheOptions[*formerKeys]{
		now: now, confirmed: confirmed,
		about: func(f *formerKeys) []grid.Notice { return []grid.Notice{{Scope: grid.ScopeApp, ID: f.appID}} },
	})
}

// forget drops what the caches know about the subject of a notice.
func (c *Catalog) forget(n grid.Notice) { c.forgetBefore(n, everyRevision) }

// forgetBefore drops what the caches know about a subject from before a revision. It returns whether anything was known that those
// who depend on it asked for: if they did so since the change, they have heard of it.
func (c *Catalog) forgetBefore(n grid.Notice, revision int64) known {
	switch n.Scope {
	case grid.ScopeTopic:
		return c.topics.drop(n.ID, revision)
	case grid.ScopeApp:
		c.keys.dropAbout(n, revision)
		c.former.dropAbout(n, revision)
		return c.apps.drop(n.ID, revision)
	case grid.ScopeUser:
		c.keys.dropAbout(n, revision)
		return c.apps.dropAbout(n, revision)
	default:
		return known{} // about something else, and perhaps often
	}
}

func (c *Catalog) forgetAll() {
	c.keys.dropAll()
	c.apps.dropAll()
	c.topics.dropAll()
	c.former.dropAll()
}

// suspectStore tells the caches whether the store is away, so that nobody waits for it.
func (c *Catalog) suspectStore(away bool) {
	c.keys.suspect(away)
	c.apps.suspect(away)
	c.topics.suspect(away)
	c.former.suspect(away)
}
