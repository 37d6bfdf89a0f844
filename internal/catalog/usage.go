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

// CutConnection ends a subscriber's connection, for admins, and keeps it on record. cut reports whether there was one.
func (c *Catalog) CutConnection(ctx context.Context, actor *Actor, id string, cut func() bool) error {
	if !actor.Admin() {
		return errAdminOnly
	}
	if !cut() {
		return notFound("connection")
	}
	return c.store.Update(ctx, func(tx *store.Tx) error { return c.audit(tx, actor, "connection.cut", id, "") })
}
