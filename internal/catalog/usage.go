package catalog

import (
	"context"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/store"
)

// Span is a time from its first moment to just before its last.
type Span = store.Span

// TopicUsage returns what a topic of the actor's, or any for an admin, used by the hour.
func (c *Catalog) TopicUsage(ctx context.Context, actor *Actor, id string, span Span) ([]freshet.UsageHour, error) {
	return ownUsage(ctx, actor, "topic", id, span, c.store.TopicUsage)
}

// AppUsage returns what an app of the actor's, or any for an admin, used by the hour.
func (c *Catalog) AppUsage(ctx context.Context, actor *Actor, id string, span Span) ([]freshet.UsageHour, error) {
	return ownUsage(ctx, actor, "app", id, span, c.store.AppUsage)
}

// UserUsage returns what the apps of the actor, or of anybody for an admin, used by the hour.
func (c *Catalog) UserUsage(ctx context.Context, actor *Actor, id string, span Span) ([]freshet.UsageHour, error) {
	return ownUsage(ctx, actor, "user", id, span, c.store.UserUsage)
}

func ownUsage(ctx context.Context, actor *Actor, noun, id string, span Span,
	read func(context.Context, string, Span) (*store.OwnedUsage, error),
) ([]freshet.UsageHour, error) {
	if err := checkID(noun, id); err != nil {
		return nil, err
	}
	found, err := read(ctx, id, span)
	if err != nil {
		return nil, rename(err, noun)
	}
	if !actor.sees(found.UserID) {
		return nil, notFound(noun)
	}
	return found.Hours, nil
}

// Usage returns what everybody used by the hour, for admins.
func (c *Catalog) Usage(ctx context.Context, actor *Actor, span Span) ([]freshet.UsageHour, error) {
	if !actor.Admin() {
		return nil, errAdminOnly
	}
	return c.store.Usage(ctx, span)
}

// TopUsage is what one of those who use most used in all.
type TopUsage = store.TopUsage

// UsageBy is by whom usage is summed up.
type UsageBy = store.UsageBy

// TopUsage returns who used most of something, for admins.
func (c *Catalog) TopUsage(ctx context.Context, actor *Actor, by UsageBy, order string, span Span, limit int) ([]TopUsage, error) {
	if !actor.Admin() {
		return nil, errAdminOnly
	}
	return c.store.TopUsage(ctx, by, order, span, limit)
}

// CutConnection ends a subscriber's connection, for admins, and keeps it on record. cut reports whether there was one.
func (c *Catalog) CutConnection(ctx context.Context, actor *Actor, id string, cut func() bool) error {
	if !actor.Admin() {
		return errAdminOnly
	}
	if !cut() {
		return notFound("connection")
	}
	return c.store.Update(ctx, func(tx *store.Tx) error { return c.audit(tx, actor, act{name: "connection.cut"}, id, "") })
}

// MayAdminister returns an error for everybody but admins.
func (c *Catalog) MayAdminister(actor *Actor) error {
	if !actor.Admin() {
		return errAdminOnly
	}
	return nil
}

// Access is what decides whether a topic of somebody's is served.
type Access struct {
	Topic  freshet.Topic
	UserID string
	Status freshet.Status
	Quotas freshet.Quotas // those that apply to the account

	AppQuotas freshet.Quotas // those that apply to the app
}

// Access returns what decides over a topic of the actor's, or over any for an admin.
func (c *Catalog) Access(ctx context.Context, actor *Actor, topicID string) (*Access, error) {
	if err := checkID("topic", topicID); err != nil {
		return nil, err
	}
	found, err := c.store.TopicAccess(ctx, topicID)
	if err != nil {
		return nil, rename(err, "topic")
	}
	if !actor.sees(found.App.UserID) {
		return nil, notFound("topic")
	}
	return &Access{
		Topic: *effective(&found.TopicInApp), UserID: found.App.UserID, Status: found.UserStatus,
		Quotas: found.Quotas.Or(c.opts.Quotas), AppQuotas: found.App.Quotas.Or(c.opts.AppQuotas),
	}, nil
}
