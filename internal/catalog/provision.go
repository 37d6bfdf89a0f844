package catalog

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/store"
)

// SourceAsk is a data source that a subscriber names instead of a topic.
type SourceAsk struct {
	URL     string                // with its query, as the target shall get it
	Headers []freshet.HeaderField // for the target
}

// BuiltInAppID is the app of subscribers without a key. It exists in development only, from its first use on, and is the
// first admin's.
const BuiltInAppID = "f4e54e70-0000-8000-8000-000000000001"

const builtInAppName = "Built-in (subscribers without a key)"

// Provision answers whether a client may follow a data source and returns the topic for it, making it if need be. The same
// source, asked for with the same credentials in the same app, is the same topic on every node. Whoever has the topic already,
// and puts it into the question, is answered from the store, and from memory only if that is away.
func (c *Catalog) Provision(ctx context.Context, ask SubscribeAsk) (*Grant, error) {
	app, err := c.provisioner(ctx, ask.Key)
	if err != nil {
		return nil, err
	}
	if err := freshet.CheckTarget(ask.Source.URL); err != nil {
		return nil, err
	}
	target, err := url.Parse(ask.Source.URL)
	if err != nil {
		return nil, freshet.Errorf(freshet.Invalid, "The target URL is not a valid URL")
	}
	if !app.AllowsTarget(target.Hostname()) {
		return nil, freshet.Errorf(freshet.SourceUnreachable, "This app does not allow its subscribers to reach this host")
	}
	find := c.knownTopic
	if ask.TopicID != "" {
		find = c.topicAsStored
	}
	ask.TopicID = c.seals.topicID(app.ID, ask.Source)
	found, err := find(ctx, ask.TopicID)
	if kind := freshet.KindOf(err); kind == freshet.NotFound || kind == freshet.TopicNotFound {
		found, err = c.provisionSigned(ctx, app.ID, ask, target)
	}
	if err != nil {
		return nil, rename(err, "app")
	}
	return c.grantSource(ctx, found, ask)
}

// topicAsStored asks the store. One that is away can delete nothing either, so what is known of the topic does then.
func (c *Catalog) topicAsStored(ctx context.Context, id string) (access, error) {
	asking, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	found, err := c.storedTopic(asking, id)
	if freshet.KindOf(err) == freshet.Unavailable || asking.Err() != nil && ctx.Err() == nil {
		return c.knownTopic(ctx, id)
	}
	return found, err
}

func (c *Catalog) storedTopic(ctx context.Context, id string) (access, error) {
	found, err := c.store.TopicAccess(ctx, id)
	if err != nil {
		return access{}, err
	}
	return access{&found.Topic, &store.AppRecord{App: found.App, UserStatus: found.UserStatus, Quotas: found.Quotas}}, nil
}

// provisioner returns the app in whose name a topic is made.
func (c *Catalog) provisioner(ctx context.Context, key string) (*freshet.App, error) {
	if key == "" && c.opts.Production {
		return nil, freshet.Errorf(freshet.Unauthenticated, "A subscriber key is required: send X-Sd-Subscriber-Key")
	}
	if key == "" {
		return c.builtInApp(ctx)
	}
	owner, err := c.keyOwner(ctx, freshet.SubscriberKey, key)
	if err != nil {
		return nil, err
	}
	if owner.UserStatus != freshet.StatusActive {
		return nil, freshet.Errorf(freshet.AccountDisabled, "The account is disabled")
	}
	if !owner.App.AutoProvisioningAllowed {
		return nil, errNoProvisioning
	}
	return &owner.App, nil
}

var errNoProvisioning = freshet.Errorf(freshet.Unauthenticated, "This app does not allow subscribing to URLs: set its auto_provisioning_allowed")

// grantSource joins a topic that a subscriber made with the one who asks, if the app still lets him.
func (c *Catalog) grantSource(ctx context.Context, to access, ask SubscribeAsk) (*Grant, error) {
	if !to.app.App.AutoProvisioningAllowed {
		return nil, errNoProvisioning
	}
	g, err := c.grant(to, nil)
	if err != nil {
		return nil, err
	}
	return g, c.checkSignature(ctx, &to.app.App, ask.Signed)
}

// topicID is the identity of a topic that subscribers make: a keyed hash, since it is told to people and stored, and what
// goes into it may be secret. It is a UUID of version 8.
func (s *seals) topicID(appID string, source *SourceAsk) string {
	mac := hmac.New(sha256.New, s.identity)
	add := func(text string) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(text))) // so that no two lists of texts look alike
		mac.Write(n[:])
		mac.Write([]byte(text))
	}
	add(appID)
	add(source.URL)
	headers := slices.Clone(source.Headers)
	slices.SortStableFunc(headers, func(a, b freshet.HeaderField) int { return cmp.Compare(a.Name, b.Name) })
	for _, h := range headers {
		add(h.Name)
		add(h.Value.Reveal())
	}
	id := uuid.UUID(mac.Sum(nil)[:16])
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return id.String()
}

// provisionSigned makes the topic for whoever may follow it.
func (c *Catalog) provisionSigned(ctx context.Context, appID string, ask SubscribeAsk, target *url.URL) (access, error) {
	app, err := c.store.App(ctx, appID)
	if err != nil {
		return access{}, err
	}
	if err := c.checkSignature(ctx, app, ask.Signed); err != nil {
		return access{}, err
	}
	if err := c.provision(ctx, appID, ask.TopicID, ask.Source, target); err != nil {
		return access{}, err
	}
	return c.storedTopic(ctx, ask.TopicID)
}

// provision makes the topic, unless somebody else just did.
func (c *Catalog) provision(ctx context.Context, appID, id string, source *SourceAsk, target *url.URL) error {
	shown := *target
	shown.RawQuery, shown.ForceQuery = "", false
	topic := freshet.Topic{ID: id, AppID: appID, Name: title(shown.String()), AutoProvisioned: true, CreatedAt: c.now()}
	topic.UpdatedAt = topic.CreatedAt
	topic.Publisher = freshet.Publisher{
		Type:        freshet.HTTPPoller,
		URL:         shown.String(),
		Payload:     freshet.Payload{Type: freshet.PayloadSnapshot},
		Credentials: freshet.Credentials{Headers: source.Headers},
	}
	if err := c.seals.seal(&topic, source.URL); err != nil {
		return err
	}
	if w := c.opts.Writer; w != nil {
		return w.Provision(ctx, provisionOf(&topic))
	}
	return c.store.Update(ctx, func(tx *store.Tx) error {
		app, err := c.lockForTopics(tx, appID)
		if err != nil {
			return err
		}
		return app.createOnce(tx, &topic, c.opts.ProvisionedTopics)
	})
}

// createOnce adds the topic unless it is there. When the app has as many topics as most says, subscribers get no more; its
// owner does: that is a person, not whoever has the app's public key and a list of URLs. 0 is any number.
func (a *lockedApp) createOnce(tx *store.Tx, topic *freshet.Topic, most int64) error {
	if _, err := tx.LockTopic(topic.ID); freshet.KindOf(err) != freshet.NotFound {
		return err // nil: it is there
	}
	if most > 0 {
		n, err := tx.TopicCount(topic.AppID)
		if err != nil {
			return err
		}
		if n >= most {
			return freshet.Errorf(freshet.ConnectionLimit,
				"The app has %d topics: its subscribers can follow no more URLs until some leave, or limits.topics_per_app is raised", n)
		}
	}
	if err := a.checkTopics(tx); err != nil {
		return err
	}
	return tx.CreateTopic(topic)
}

// title makes a topic's name of a URL.
func title(s string) string {
	const longest = 200
	s = strings.ToValidUTF8(s, "")
	if utf8.RuneCountInString(s) <= longest {
		return s
	}
	return string([]rune(s)[:longest-1]) + "…"
}

// builtInApp returns the app of subscribers without a key, making it the first time.
func (c *Catalog) builtInApp(ctx context.Context) (*freshet.App, error) {
	found, err := c.knownApp(ctx, BuiltInAppID)
	switch {
	case err == nil && !found.App.AutoProvisioningAllowed:
		return nil, errNoProvisioning
	case err == nil:
		return &found.App, nil
	case freshet.KindOf(err) != freshet.NotFound:
		return nil, err
	}
	if w := c.opts.Writer; w != nil {
		if err := w.MakeBuiltInApp(ctx); err != nil {
			return nil, err
		}
		return c.store.App(ctx, BuiltInAppID)
	}
	admins, err := c.store.Admins(ctx)
	if err != nil {
		return nil, err
	}
	if len(admins) == 0 {
		return nil, freshet.Errorf(freshet.Unauthenticated, "A subscriber key is required: there is no built-in app")
	}
	made := freshet.App{
		ID: BuiltInAppID, UserID: admins[0].ID, Name: builtInAppName, AutoProvisioningAllowed: true, Quotas: freshet.DefaultQuotas,
		SubscriberKey: freshet.NewKey(freshet.SubscriberKey), PublisherKey: freshet.NewKey(freshet.PublisherKey),
		SignatureKey: freshet.NewKey(freshet.SignatureKey), CreatedAt: c.now(), UpdatedAt: c.now(),
	}
	err = c.store.Update(ctx, func(tx *store.Tx) error {
		if _, err := tx.LockApp(made.ID); freshet.KindOf(err) != freshet.NotFound {
			return err
		}
		return tx.CreateApp(&made)
	})
	if errors.Is(err, store.ErrAppNameTaken) {
		made.Name += " " + made.ID
		err = c.store.Update(ctx, func(tx *store.Tx) error { return tx.CreateApp(&made) })
	}
	if err != nil {
		// Another subscriber without a key may have been faster.
		if app, again := c.store.App(ctx, BuiltInAppID); again == nil {
			return app, nil
		}
		return nil, err
	}
	return &made, nil
}

// Retire deletes a topic that subscribers made once nobody is present. A subscriber who comes at the same moment either
// sees that it is gone and makes it again, or is seen here and gets it back.
func (c *Catalog) Retire(ctx context.Context, topicID string, present func(context.Context) (bool, error)) error {
	found, err := c.store.Topic(ctx, topicID)
	if err != nil || !found.Topic.AutoProvisioned {
		return ignoreNotFound(err)
	}
	if here, err := present(ctx); err != nil || here {
		return err
	}
	if w := c.opts.Writer; w != nil {
		return w.Retire(ctx, topicID)
	}
	err = c.store.Update(ctx, func(tx *store.Tx) error {
		if _, err := tx.LockTopic(topicID); err != nil {
			return err
		}
		return tx.DeleteTopic(topicID)
	})
	if err != nil {
		return ignoreNotFound(err)
	}
	if here, err := present(ctx); err != nil || here {
		err = c.store.Update(ctx, func(tx *store.Tx) error {
			app, err := c.lockForTopics(tx, found.Topic.AppID)
			if err != nil {
				return err
			}
			return app.createOnce(tx, &found.Topic, 0)
		})
		if freshet.KindOf(err) != freshet.TopicLimit {
			return err
		}
		// Another topic took its place in the quota: the subscriber is told, as if it had come later.
	}
	c.notify(ctx, grid.ScopeTopic, topicID)
	c.forgetDocuments(ctx, []string{topicID})
	return nil
}

func ignoreNotFound(err error) error {
	if freshet.KindOf(err) == freshet.NotFound {
		return nil
	}
	return err
}
