package catalog

import (
	"context"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
)

// Source is what a poller needs to know about a topic.
type Source struct {
	Topic        freshet.Topic // its settings are those in force, its credentials readable, its URL complete
	AllowedHosts []string      // empty: all
	UserID       string        // whose app it is in
}

// Source returns the data source of a topic, fresh from the store. Topics that are not polled are not found.
func (c *Catalog) Source(ctx context.Context, topicID string) (*Source, error) {
	found, err := c.store.TopicAccess(ctx, topicID)
	if err != nil {
		return nil, rename(err, "topic")
	}
	if found.Topic.Publisher.Type != freshet.HTTPPoller || found.UserStatus != freshet.StatusActive {
		return nil, notFound("polled topic")
	}
	topic := *effective(&found.TopicInApp)
	url, err := c.seals.open(&topic)
	if err != nil {
		return nil, freshet.Wrap(freshet.TopicGone, err, "The stored credentials of the topic cannot be read; set them again")
	}
	if url != "" {
		topic.Publisher.URL = url
	}
	return &Source{Topic: topic, AllowedHosts: found.App.AllowedTargetHosts, UserID: found.App.UserID}, nil
}

// PollerTopics lists topics that are polled, in the order of their identifiers, from the one after the given one on.
func (c *Catalog) PollerTopics(ctx context.Context, after string, limit int) ([]freshet.Topic, error) {
	return c.store.PollerTopics(ctx, after, limit)
}

// Refresh has a topic of the actor's polled now, on whichever node polls it.
func (c *Catalog) Refresh(ctx context.Context, actor *Actor, ref TopicRef) error {
	topic, err := c.Topic(ctx, actor, ref)
	if err != nil {
		return err
	}
	if topic.Publisher.Type != freshet.HTTPPoller {
		return freshet.Errorf(freshet.Conflict, "Only topics of type %s are polled; publish to this one", freshet.HTTPPoller)
	}
	err = c.notifier.Notify(ctx, grid.Notice{Scope: grid.ScopePoll, ID: ref.ID})
	if err != nil {
		return freshet.Wrap(freshet.Unavailable, err, "The pollers cannot be reached now, please try again")
	}
	return nil
}
