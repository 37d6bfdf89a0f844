package catalog

import (
	"context"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/store"
)

// Source is what a poller needs to know about a topic.
type Source struct {
	Topic        freshet.Topic // its settings are those in force, its credentials readable, its URL complete
	AllowedHosts []string      // empty: all
	UserID       string        // whose app it is in

	Quotas, AppQuotas freshet.Quotas // those that apply to the account and to the app
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
	return &Source{
		Topic: topic, AllowedHosts: found.App.AllowedTargetHosts, UserID: found.App.UserID,
		Quotas: found.Quotas.Or(c.opts.Quotas), AppQuotas: found.App.Quotas.Or(c.opts.AppQuotas),
	}, nil
}

// Trial is how a data source answered that was tried before anything depends on it.
type Trial struct {
	Status   int // of the last answer; 0 without one
	Took     time.Duration
	Bytes    int    // of the answer, decoded
	Document []byte // what would be published
	Failure  error  // why nothing would be; its text may be shown
}

// TrialSource returns the data source that a topic of an app of the actor's would have, as fill says. What fill leaves as it
// is comes from the topic of that name, if there is one. Nothing is stored, except that an admin has tried it: other people's
// credentials may leave with the request.
func (c *Catalog) TrialSource(ctx context.Context, actor *Actor, ref TopicRef, fill func(*freshet.Topic) error) (*Source, error) {
	app, err := c.App(ctx, actor, ref.AppID)
	if err != nil {
		return nil, err
	}
	topic := freshet.Topic{AppID: app.ID, Name: "trial"}
	if ref.ID != "" {
		before, err := c.Topic(ctx, actor, ref)
		if err != nil {
			return nil, err
		}
		topic.Publisher.Credentials = before.Publisher.Credentials
	}
	invalid := freshet.Together(fill(&topic), topic.Validate())
	if invalid == nil && topic.Publisher.Type != freshet.HTTPPoller {
		invalid = freshet.InvalidField("publisher.type", "must be "+string(freshet.HTTPPoller)+" to be tried")
	}
	if invalid != nil {
		return nil, invalid
	}
	if actor.User.ID != app.UserID {
		err = c.store.Update(ctx, func(tx *store.Tx) error { return c.audit(tx, actor, act{name: "topic.test"}, app.ID, app.UserID) })
	}
	return &Source{Topic: topic, AllowedHosts: app.AllowedTargetHosts, UserID: app.UserID}, err
}

// PollerTopics lists topics that are polled, in the order of their identifiers, from the one after the given one on.
func (c *Catalog) PollerTopics(ctx context.Context, after string, limit int) ([]freshet.Topic, error) {
	return c.store.PollerTopics(ctx, after, limit)
}

// Refresh has a topic of the actor's polled now, on whichever node polls it.
func (c *Catalog) Refresh(ctx context.Context, actor *Actor, ref TopicRef) error {
	found, err := c.findTopic(ctx, actor, ref)
	if err != nil {
		return err
	}
	if found.Topic.Publisher.Type != freshet.HTTPPoller {
		return freshet.Errorf(freshet.Conflict, "Only topics of type %s are polled; publish to this one", freshet.HTTPPoller)
	}
	if actor.User.ID != found.App.UserID {
		err := c.store.Update(ctx, func(tx *store.Tx) error {
			return c.audit(tx, actor, act{name: "topic.refresh"}, ref.ID, found.App.UserID)
		})
		if err != nil {
			return err
		}
	}
	err = c.notifier.Notify(ctx, grid.Notice{Scope: grid.ScopePoll, ID: ref.ID})
	if err != nil {
		return freshet.Wrap(freshet.Unavailable, err, "The pollers cannot be reached now, please try again")
	}
	return nil
}
