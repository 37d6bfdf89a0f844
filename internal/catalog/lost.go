package catalog

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/store"
)

// Notices can get lost: whoever made a change may die before it tells. So what is in use is compared with the store every few
// seconds, many topics in one question, and what differs is treated as if its notice had come. What does not need not be
// loaded one by one.

const (
	lookEvery = 2 * time.Second
	lookSlice = 512 // topics in one question
	// usedFor is how long a topic counts as in use. Whoever serves streams asks for their topics more often.
	usedFor = 30 * time.Second
)

func (c *Catalog) lookForLost(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := errors.Join(c.readClock(ctx), c.lookOnce(ctx)); err != nil && ctx.Err() == nil {
			c.log.Debug("what is in use could not be compared with the database", "err", err)
		}
	}
}

func (c *Catalog) readClock(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	return c.store.ReadClock(ctx)
}

func (c *Catalog) lookOnce(ctx context.Context) error {
	used := c.topics.used(usedFor)
	for slice := range slices.Chunk(slices.Collect(maps.Keys(used)), lookSlice) {
		began := c.opts.Now()
		stamps, err := c.stamps(ctx, slice)
		if err != nil {
			return err
		}
		lost, same := map[grid.Notice]struct{}{}, map[string]*store.TopicAccess{}
		for _, id := range slice {
			if n, differs := difference(used[id], stamps[id]); differs {
				lost[n] = struct{}{}
			} else {
				same[id] = used[id]
			}
		}
		c.topics.confirm(same, began)
		for n := range lost {
			c.forget(n)
			c.notifier.Tell(n)
		}
	}
	return nil
}

func (c *Catalog) stamps(ctx context.Context, ids []string) (map[string]store.TopicStamp, error) {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	return c.store.TopicStamps(ctx, ids)
}

// difference returns the notice that would have told of what changed.
func difference(t *store.TopicAccess, now store.TopicStamp) (grid.Notice, bool) {
	switch {
	case now == store.TopicStamp{} || !now.TopicUpdated.Equal(t.Topic.UpdatedAt):
		return grid.Notice{Scope: grid.ScopeTopic, ID: t.Topic.ID}, true
	case !now.AppUpdated.Equal(t.App.UpdatedAt):
		return grid.Notice{Scope: grid.ScopeApp, ID: t.App.ID}, true
	case now.UserStatus != t.UserStatus || now.Quotas != t.Quotas:
		return grid.Notice{Scope: grid.ScopeUser, ID: t.App.UserID}, true
	}
	return grid.Notice{}, false
}
