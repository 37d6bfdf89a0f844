package catalog

import (
	"context"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/store"
)

// Writer does what subscribers bring about without anybody's management call, for a process that may only read the database:
// a process with the role manage does it in its place.
type Writer interface {
	// Provision makes a topic that a subscriber asked for, unless there is one.
	Provision(ctx context.Context, p Provision) error

	// MakeBuiltInApp makes the app of subscribers without a key, unless there is one.
	MakeBuiltInApp(ctx context.Context) error

	// Retire deletes a topic that subscribers made, unless somebody is present.
	Retire(ctx context.Context, topicID string) error
}

// Provision is a topic that a subscriber asked for, ready to be stored. What it shows to its target is sealed already, so
// that nobody on the way can read it.
type Provision struct {
	ID        string    `json:"id"`
	AppID     string    `json:"app_id"`
	Name      string    `json:"name"`
	URL       string    `json:"url"`
	Sealed    string    `json:"sealed"`
	CreatedAt time.Time `json:"created_at"`
}

func provisionOf(t *freshet.Topic) Provision {
	return Provision{ID: t.ID, AppID: t.AppID, Name: t.Name, URL: t.Publisher.URL, Sealed: t.Publisher.Sealed, CreatedAt: t.CreatedAt}
}

// Provide makes the topic that another process was asked for. That one has looked at the key; whether the app allows it is
// looked at once more, since it may have changed meanwhile.
func (c *Catalog) Provide(ctx context.Context, p Provision) error {
	if err := checkID("topic", p.ID); err != nil {
		return err
	}
	topic := freshet.Topic{ID: p.ID, AppID: p.AppID, Name: p.Name, AutoProvisioned: true, CreatedAt: p.CreatedAt, UpdatedAt: p.CreatedAt}
	topic.Publisher = freshet.Publisher{
		Type: freshet.HTTPPoller, URL: p.URL, Sealed: p.Sealed, Payload: freshet.Payload{Type: freshet.PayloadSnapshot},
	}
	if err := topic.Validate(); err != nil {
		return err
	}
	return c.store.Update(ctx, func(tx *store.Tx) error {
		app, err := c.lockForTopics(tx, p.AppID)
		if err != nil {
			return rename(err, "app")
		}
		if !app.AutoProvisioningAllowed {
			return errNoProvisioning
		}
		return app.createOnce(tx, &topic, c.opts.ProvisionedTopics)
	})
}

// MakeBuiltInApp makes the app of subscribers without a key, unless there is one or production forbids it.
func (c *Catalog) MakeBuiltInApp(ctx context.Context) error {
	_, err := c.provisioner(ctx, "")
	return err
}
