package catalog

import (
	"context"
	"slices"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/store"
)

// CreateTopic makes a topic in an app of the actor's, as fill says. What it returns has every open setting filled in.
func (c *Catalog) CreateTopic(ctx context.Context, actor *Actor, appID string, fill func(*freshet.Topic) error) (*freshet.Topic, error) {
	if err := checkID("app", appID); err != nil {
		return nil, err
	}
	topic := freshet.Topic{ID: freshet.NewID(), AppID: appID, CreatedAt: c.now()}
	topic.UpdatedAt = topic.CreatedAt
	invalid := freshet.Together(fill(&topic), topic.Validate())
	var defaults freshet.Defaults
	err := c.store.Update(ctx, func(tx *store.Tx) error {
		app, err := c.lockForTopics(tx, topic.AppID)
		if err != nil {
			return rename(err, "app")
		}
		if !actor.sees(app.UserID) {
			return notFound("app")
		}
		if invalid != nil {
			return invalid // after the owner: what is not yours does not even validate
		}
		if err := app.checkTopics(tx); err != nil {
			return err
		}
		defaults = app.Defaults
		if err := c.seals.seal(&topic, ""); err != nil {
			return err
		}
		if err := tx.CreateTopic(&topic); err != nil {
			return err
		}
		return c.audit(tx, actor, act{name: "topic.create"}, topic.ID, app.UserID)
	})
	if err != nil {
		return nil, err
	}
	topic.Publisher = topic.Effective(defaults)
	return &topic, nil
}

// TopicRef names a topic, by its app as well where the caller came that way.
type TopicRef struct {
	AppID string // empty: whatever app it is in
	ID    string
}

// Topic returns a topic of the actor's, or any for an admin.
func (c *Catalog) Topic(ctx context.Context, actor *Actor, ref TopicRef) (*freshet.Topic, error) {
	found, err := c.findTopic(ctx, actor, ref)
	if err != nil {
		return nil, err
	}
	return c.shown(found), nil
}

// findTopic finds a topic for somebody who may see it.
func (c *Catalog) findTopic(ctx context.Context, actor *Actor, ref TopicRef) (*store.TopicInApp, error) {
	if err := checkID("topic", ref.ID); err != nil {
		return nil, err
	}
	found, err := c.store.Topic(ctx, ref.ID)
	if err != nil {
		return nil, rename(err, "topic")
	}
	return found, ref.check(actor, found)
}

// shown is a topic as its owner may see it: with every open setting filled in, and with the names of what it shows to its
// target. What subscribers brought along is theirs.
func (c *Catalog) shown(t *store.TopicInApp) *freshet.Topic {
	topic := effective(t)
	c.unseal(topic)
	return topic
}

func (c *Catalog) unseal(topic *freshet.Topic) {
	if topic.AutoProvisioned {
		return
	}
	if _, err := c.seals.open(topic); err != nil {
		c.log.Warn("credentials of a topic are lost", "topic", topic.ID, "err", err)
	}
}

// check hides a topic that is somebody else's, or in another app than the caller said.
func (ref TopicRef) check(actor *Actor, t *store.TopicInApp) error {
	if !actor.sees(t.App.UserID) || (ref.AppID != "" && ref.AppID != t.App.ID) {
		return notFound("topic")
	}
	return nil
}

func effective(t *store.TopicInApp) *freshet.Topic {
	topic := t.Topic
	topic.Publisher = topic.Effective(t.App.Defaults)
	return &topic
}

// Topics lists the topics of an app.
func (c *Catalog) Topics(ctx context.Context, actor *Actor, appID string, page Page) (Listing[freshet.Topic], error) {
	if err := checkID("app", appID); err != nil {
		return Listing[freshet.Topic]{}, err
	}
	list, err := c.store.Topics(ctx, appID, page)
	if err != nil {
		return Listing[freshet.Topic]{}, rename(err, "app")
	}
	if !actor.sees(list.App.UserID) {
		return Listing[freshet.Topic]{}, notFound("app")
	}
	for i := range list.Items {
		list.Items[i].Publisher = list.Items[i].Effective(list.App.Defaults)
		c.unseal(&list.Items[i])
	}
	return list.Listing, nil
}

// UpdateTopic changes a topic. Its payload and its publisher's type are for life: every document subscribers
// hold was made by them. The change may run more than once and must only touch its argument.
func (c *Catalog) UpdateTopic(ctx context.Context, actor *Actor, ref TopicRef, change func(*freshet.Topic) error) (*freshet.Topic, error) {
	return c.changeTopic(ctx, actor, ref, "topic.update", func(tx *store.Tx, topic *freshet.Topic) error {
		if topic.AutoProvisioned {
			return freshet.Errorf(freshet.Conflict, "This topic belongs to its subscribers; it can be deleted, but not changed")
		}
		c.unseal(topic)
		before := topic.Publisher
		malformed := change(topic)
		fixed := fixedForLife(before, topic.Publisher)
		topic.Publisher.Type, topic.Publisher.Payload = before.Type, before.Payload
		if err := freshet.Together(malformed, fixed, topic.Validate()); err != nil {
			return err
		}
		if !sameCredentials(&before.Credentials, &topic.Publisher.Credentials) {
			if err := c.seals.seal(topic, ""); err != nil {
				return err
			}
		}
		topic.UpdatedAt = c.now()
		return tx.SaveTopic(topic)
	})
}

// sameCredentials keeps a change of something else from sealing anew, or from losing what could not be read.
func sameCredentials(a, b *freshet.Credentials) bool {
	if !slices.Equal(a.Headers, b.Headers) || (a.OAuth2 == nil) != (b.OAuth2 == nil) {
		return false
	}
	if a.OAuth2 == nil {
		return true
	}
	x, y := a.OAuth2, b.OAuth2
	return x.TokenURL == y.TokenURL && x.ClientID == y.ClientID && x.ClientSecret == y.ClientSecret && slices.Equal(x.Scopes, y.Scopes)
}

func fixedForLife(before, after freshet.Publisher) error {
	const message = "cannot be changed after the topic is created"
	var typeErr, payloadErr, pathErr error
	if after.Type != before.Type {
		typeErr = freshet.InvalidField("publisher.type", message)
	}
	if after.Payload.Type != before.Payload.Type {
		payloadErr = freshet.InvalidField("publisher.payload.type", message)
	} else if !after.Payload.Equal(before.Payload) {
		pathErr = freshet.InvalidField("publisher.payload.item_id_path", message)
	}
	return freshet.Together(typeErr, payloadErr, pathErr)
}

// changeTopic is the one way an existing topic changes: locked, checked for its owner, changed, recorded, made known.
func (c *Catalog) changeTopic(ctx context.Context, actor *Actor, ref TopicRef, action string, change func(*store.Tx, *freshet.Topic) error) (*freshet.Topic, error) {
	if err := checkID("topic", ref.ID); err != nil {
		return nil, err
	}
	var changed *freshet.Topic
	err := c.store.Update(ctx, func(tx *store.Tx) error {
		found, err := tx.LockTopic(ref.ID)
		if err != nil {
			return rename(err, "topic")
		}
		if err := ref.check(actor, found); err != nil {
			return err
		}
		if err := change(tx, &found.Topic); err != nil {
			return err
		}
		changed = effective(found)
		return c.audit(tx, actor, act{name: action}, ref.ID, found.App.UserID)
	})
	if err != nil {
		return nil, err
	}
	c.notify(ctx, grid.ScopeTopic, ref.ID)
	return changed, nil
}

// DeleteTopic removes a topic; its streams end with the notice.
func (c *Catalog) DeleteTopic(ctx context.Context, actor *Actor, ref TopicRef) error {
	_, err := c.changeTopic(ctx, actor, ref, "topic.delete", func(tx *store.Tx, _ *freshet.Topic) error {
		return tx.DeleteTopic(ref.ID)
	})
	if err != nil {
		return err
	}
	c.forgetDocuments(ctx, []string{ref.ID})
	return nil
}
