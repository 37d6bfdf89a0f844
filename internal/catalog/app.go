package catalog

import (
	"context"
	"errors"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/store"
)

// CreateApp makes an app of the actor's, with fresh keys.
func (c *Catalog) CreateApp(ctx context.Context, actor *Actor, app freshet.App) (*freshet.App, error) {
	if err := app.Validate(); err != nil {
		return nil, err
	}
	app.ID = freshet.NewID()
	app.UserID = actor.User.ID
	app.Quotas = freshet.DefaultQuotas
	app.SubscriberKey = freshet.NewKey(freshet.SubscriberKey)
	app.PublisherKey = freshet.NewKey(freshet.PublisherKey)
	app.SignatureKey = freshet.NewKey(freshet.SignatureKey)
	app.CreatedAt = c.now()
	app.UpdatedAt = app.CreatedAt
	err := c.store.Update(ctx, func(tx *store.Tx) error { return tx.CreateApp(&app) })
	if err != nil {
		return nil, appNameTaken(err)
	}
	return c.withAppQuotas(&app), nil
}

func appNameTaken(err error) error {
	if errors.Is(err, store.ErrAppNameTaken) {
		return taken(err, "name", "There is an app of this name already")
	}
	return err
}

// App returns an app of the actor's, or any for an admin.
func (c *Catalog) App(ctx context.Context, actor *Actor, id string) (*freshet.App, error) {
	if err := checkID("app", id); err != nil {
		return nil, err
	}
	app, err := c.store.App(ctx, id)
	if err != nil {
		return nil, rename(err, "app")
	}
	if !actor.sees(app.UserID) {
		return nil, notFound("app")
	}
	return c.withAppQuotas(app), nil
}

// withAppQuotas fills the quotas an app has none of its own for: what is shown is what applies.
func (c *Catalog) withAppQuotas(app *freshet.App) *freshet.App {
	app.Quotas = app.Quotas.Or(c.opts.AppQuotas)
	return app
}

// Apps lists the apps of a user: the actor itself, or any for an admin.
func (c *Catalog) Apps(ctx context.Context, actor *Actor, userID string, page Page) (Listing[freshet.App], error) {
	if err := c.checkUser(actor, userID); err != nil {
		return Listing[freshet.App]{}, err
	}
	list, err := c.store.Apps(ctx, userID, page)
	if err == nil && list.Total == 0 && userID != actor.User.ID {
		// Only an admin gets here. Nothing may mean nobody.
		_, err = c.store.User(ctx, userID)
	}
	for i := range list.Items {
		c.withAppQuotas(&list.Items[i])
	}
	return list, rename(err, "user")
}

// UpdateApp changes an app of the actor's. The change may run more than once and must only touch its argument.
func (c *Catalog) UpdateApp(ctx context.Context, actor *Actor, id string, change func(*freshet.App)) (*freshet.App, error) {
	return c.changeApp(ctx, actor, id, act{name: "app.update"}, func(tx *store.Tx, app *freshet.App) error {
		change(app)
		if err := app.Validate(); err != nil {
			return err
		}
		app.UpdatedAt = c.now()
		return appNameTaken(tx.SaveApp(app))
	})
}

// changeApp is the one way an existing app changes: locked, checked for its owner, changed, recorded, made known.
func (c *Catalog) changeApp(ctx context.Context, actor *Actor, id string, a act, change func(*store.Tx, *freshet.App) error) (*freshet.App, error) {
	if err := checkID("app", id); err != nil {
		return nil, err
	}
	var changed *freshet.App
	err := c.store.Update(ctx, func(tx *store.Tx) error {
		app, err := tx.LockApp(id)
		if err != nil {
			return rename(err, "app")
		}
		if !actor.sees(app.UserID) {
			return notFound("app")
		}
		if err := change(tx, app); err != nil {
			return err
		}
		changed = app
		return c.audit(tx, actor, a, app.ID, app.UserID)
	})
	if err != nil {
		return nil, err
	}
	c.notify(ctx, grid.ScopeApp, id)
	return c.withAppQuotas(changed), nil
}

// DeleteApp removes an app with its topics and keys.
func (c *Catalog) DeleteApp(ctx context.Context, actor *Actor, id string) error {
	var topics []string
	_, err := c.changeApp(ctx, actor, id, act{name: "app.delete"}, func(tx *store.Tx, _ *freshet.App) (err error) {
		if topics, err = tx.TopicsOfApp(id); err != nil {
			return err
		}
		return tx.DeleteApp(id)
	})
	if err != nil {
		return err
	}
	c.forgetDocuments(ctx, topics)
	return nil
}

// MaxOverlap bounds how long a renewed key may go on working beside its successor.
const MaxOverlap = 30 * 24 * time.Hour

// Renewal says how a key is replaced: by a fresh one, or by one brought along, at once or with an overlap.
type Renewal struct {
	Key     *string // nil for a fresh one
	Overlap time.Duration
}

// RenewKey replaces a key of an app. Its predecessor stays behind as revoked, so that clients can be told so.
func (c *Catalog) RenewKey(ctx context.Context, actor *Actor, id string, kind freshet.KeyKind, how Renewal) (*freshet.App, error) {
	key, badKey := freshet.NewKey(kind), error(nil)
	if how.Key != nil {
		key, badKey = freshet.ParseKey(kind, *how.Key)
	}
	if err := freshet.Together(badKey, checkOverlap(how.Overlap)); err != nil {
		return nil, err
	}
	app, err := c.changeApp(ctx, actor, id, act{name: "app.renew_" + string(kind) + "_key"}, func(tx *store.Tx, app *freshet.App) error {
		if app.Key(kind) == key {
			return nil // the same request again, perhaps because its answer got lost
		}
		now := c.now()
		var revokeOldAt time.Time // at once: whether a key is good must not depend on whose clock is right
		if how.Overlap > 0 {
			revokeOldAt = now.Add(how.Overlap)
		}
		if err := tx.ReplaceKey(app.ID, kind, key, now, revokeOldAt); err != nil {
			return keyTaken(err)
		}
		app.SetKey(kind, key)
		app.UpdatedAt = now
		return tx.SaveApp(app)
	})
	if err != nil {
		return nil, err
	}
	if how.Overlap > 0 {
		// Streams that live on the old key must look again when its time is over.
		c.overlaps.after(how.Overlap, func() { c.notify(context.Background(), grid.ScopeApp, id) })
	}
	return app, nil
}

func checkOverlap(d time.Duration) error {
	if d < 0 || d > MaxOverlap {
		return freshet.InvalidField("overlap_seconds", "must be between 0 and %d", int(MaxOverlap.Seconds()))
	}
	return nil
}

func keyTaken(err error) error {
	if errors.Is(err, store.ErrKeyTaken) {
		return taken(err, "key", "This key is in use already, or was")
	}
	return err
}
