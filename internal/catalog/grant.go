package catalog

import (
	"context"
	"net/url"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/store"
)

// Grant is the answer to "may the bearer of this key do this with this topic": the topic, and on whose account.
// It is a snapshot; after a notice about the topic, its app or its user the question must be asked again.
type Grant struct {
	Topic  freshet.Topic // its Publisher has every open setting filled in
	AppID  string
	UserID string
	Quotas freshet.Quotas // those that apply to the account

	AppQuotas freshet.Quotas // those that apply to the app
}

// SubscribeAsk is a request to follow a topic, as far as the catalog is concerned.
type SubscribeAsk struct {
	TopicID string
	Source  *SourceAsk // nil when the client names a topic; otherwise the topic is the one that Provision returned
	Key     string     // as sent; empty when the client sent none
	Signed  *Signature // nil when the client did not sign
}

// keyRef is what the cache of keys goes by.
type keyRef struct {
	kind freshet.KeyKind
	key  freshet.Key
}

// appRef tells an app from a later one with its identifier, which only the built-in app can have.
type appRef struct {
	id      string
	created int64 // in milliseconds
}

// access is what decides over a topic: the topic, and its app with the account that answers for it.
type access struct {
	topic *freshet.Topic
	app   *store.AppRecord
}

// MayPublish answers whether the bearer of a publisher key may publish to a topic.
func (c *Catalog) MayPublish(ctx context.Context, topicID, key string) (*Grant, error) {
	if key == "" {
		return nil, freshet.Errorf(freshet.Unauthenticated, "The header X-Sd-Publisher-Key is missing")
	}
	owner, err := c.keyOwner(ctx, freshet.PublisherKey, key)
	if err != nil {
		return nil, err
	}
	found, err := c.knownTopic(ctx, topicID)
	if err != nil {
		return nil, err
	}
	return c.grant(found, owner)
}

// MaySubscribe answers whether a client may follow a topic. A key is required in production only, but one that
// is sent is checked all the same.
func (c *Catalog) MaySubscribe(ctx context.Context, ask SubscribeAsk) (*Grant, error) {
	if ask.Key == "" && c.opts.Production {
		return nil, freshet.Errorf(freshet.Unauthenticated, "A subscriber key is required: send X-Sd-Subscriber-Key")
	}
	var owner *store.AppRecord
	if ask.Key != "" {
		var err error
		if owner, err = c.keyOwner(ctx, freshet.SubscriberKey, ask.Key); err != nil {
			return nil, err
		}
	}
	found, err := c.knownTopic(ctx, ask.TopicID)
	if err != nil {
		return nil, err
	}
	if found.topic.AutoProvisioned != (ask.Source != nil) {
		// Who does not name the source and its credentials has no business with what they brought to light.
		return nil, freshet.Errorf(freshet.TopicNotFound, "There is no such topic")
	}
	g, err := c.grant(found, owner)
	if err != nil {
		return nil, err
	}
	if ask.Source != nil {
		return c.grantSource(ctx, found, ask)
	}
	return g, c.checkSignature(ctx, &found.app.App, ask.Signed)
}

// MaySubscribeNow is MaySubscribe for whoever cannot wait: it answers from memory, and only whether the client may without any
// limit. No means that MaySubscribe must be asked.
func (c *Catalog) MaySubscribeNow(ask *SubscribeAsk) bool {
	if ask.Source != nil || ask.Key == "" && c.opts.Production || ask.Key != "" && !freshet.CanBeKey(ask.Key) {
		return false
	}
	topic, ok := c.topics.peek(ask.TopicID)
	if !ok || topic.Topic.AutoProvisioned {
		return false
	}
	app, ok := c.apps.peek(topic.Topic.AppID)
	if !ok || !isIn(topic, app) || app.App.SignatureRequired || app.UserStatus != freshet.StatusActive {
		return false
	}
	if limitsSubscribers(app.Quotas.Or(c.opts.Quotas)) || limitsSubscribers(app.App.Quotas.Or(c.opts.AppQuotas)) {
		return false
	}
	if ask.Key == "" {
		return true
	}
	key, ok := c.keys.peek(keyRef{freshet.SubscriberKey, freshet.Key(ask.Key)})
	return ok && !key.Revoked(c.now()) && key.AppID == app.App.ID
}

func limitsSubscribers(q freshet.Quotas) bool { return q.Connections > 0 || q.MessagesPerMonth > 0 }

func (c *Catalog) checkSignature(ctx context.Context, app *freshet.App, signed *Signature) error {
	if !app.SignatureRequired {
		return nil
	}
	if signed == nil {
		return freshet.Errorf(freshet.Unauthenticated, "This app requires signed requests: send X-Auth-Sd-Ts and X-Auth-Sd-S")
	}
	err := signed.verify(app.SignatureKey, c.now(), c.opts.SignatureAge)
	if freshet.KindOf(err) == freshet.UnknownCredential {
		return c.checkFormer(ctx, app, signed, err)
	}
	return err
}

// formerKeys are the signature keys that an app had.
type formerKeys struct {
	appID string
	keys  []freshet.KeyRecord
}

// checkFormer answers for a signature that is not made with the app's present key: its predecessor goes on working for a
// while, and who still uses it later shall know.
func (c *Catalog) checkFormer(ctx context.Context, app *freshet.App, signed *Signature, mismatch error) error {
	ref := appRef{app.ID, app.CreatedAt.UnixMilli()}
	former, err := c.former.get(ctx, ref, func(ctx context.Context) (*formerKeys, error) {
		keys, err := c.store.FormerKeys(ctx, ref.id, freshet.SignatureKey)
		return &formerKeys{ref.id, keys}, err
	})
	if err != nil {
		return err
	}
	for _, k := range former.keys {
		err := signed.verify(k.Key, c.now(), c.opts.SignatureAge)
		switch {
		case freshet.KindOf(err) == freshet.UnknownCredential:
		case err == nil && k.Revoked(c.now()):
			return freshet.Errorf(freshet.RevokedCredential, "The signature key was renewed; sign with its successor")
		default:
			return err
		}
	}
	return mismatch
}

// grant joins a topic and the bearer of a key, if they belong together. A nil owner is a client without a key.
func (c *Catalog) grant(to access, owner *store.AppRecord) (*Grant, error) {
	app := &to.app.App
	if owner != nil && owner.App.ID != app.ID {
		return nil, freshet.Errorf(freshet.Unauthenticated, "The key belongs to another app than the topic")
	}
	if to.app.UserStatus != freshet.StatusActive {
		return nil, freshet.Errorf(freshet.AccountDisabled, "The account is disabled")
	}
	topic := *to.topic
	topic.Publisher = topic.Effective(app.Defaults)
	return &Grant{
		Topic: topic, AppID: app.ID, UserID: app.UserID,
		Quotas: to.app.Quotas.Or(c.opts.Quotas), AppQuotas: app.Quotas.Or(c.opts.AppQuotas),
	}, nil
}

// maxDecodings is how often real clients percent-encode a key. Keys have no percent sign, so decoding changes no
// key that came as it is.
const maxDecodings = 2

// keyOwner finds the app of a key.
func (c *Catalog) keyOwner(ctx context.Context, kind freshet.KeyKind, text string) (*store.AppRecord, error) {
	for range maxDecodings {
		if decoded, err := url.PathUnescape(text); err == nil {
			text = decoded
		}
	}
	if !freshet.CanBeKey(text) {
		return nil, freshet.Errorf(freshet.MalformedCredential, "This cannot be a %s key", kind)
	}
	ref := keyRef{kind: kind, key: freshet.Key(text)}
	key, err := c.keys.get(ctx, ref, func(ctx context.Context) (*store.KeyRecord, error) {
		return c.store.KeyRecord(ctx, ref.kind, ref.key)
	})
	var app *store.AppRecord
	if err == nil {
		app, err = c.knownApp(ctx, key.AppID)
	}
	switch {
	case freshet.KindOf(err) == freshet.NotFound:
		return nil, freshet.Errorf(freshet.UnknownCredential, "There is no such %s key", kind)
	case err != nil:
		return nil, err
	case key.Revoked(c.now()):
		return nil, freshet.Errorf(freshet.RevokedCredential, "This %s key was renewed; use its successor", kind)
	}
	return app, nil
}

func (c *Catalog) knownApp(ctx context.Context, id string) (*store.AppRecord, error) {
	return c.apps.get(ctx, id, func(ctx context.Context) (*store.AppRecord, error) { return c.store.AppRecord(ctx, id) })
}

func (c *Catalog) knownTopic(ctx context.Context, id string) (access, error) {
	if !freshet.IsID(id) {
		return access{}, errNoTopic()
	}
	find := func() (access, bool, error) {
		topic, err := c.topics.get(ctx, id, func(ctx context.Context) (*store.TopicRecord, error) {
			return c.store.TopicRecord(ctx, id)
		})
		if err != nil {
			return access{}, false, err
		}
		app, err := c.knownApp(ctx, topic.Topic.AppID)
		if err != nil {
			return access{}, false, err
		}
		return access{&topic.Topic, app}, isIn(topic, app), nil
	}
	found, fits, err := find()
	if err == nil && !fits {
		// One of them is remembered from before the app was deleted and made anew.
		c.topics.drop(id, everyRevision)
		c.apps.drop(found.app.App.ID, everyRevision)
		found, fits, err = find()
	}
	if freshet.KindOf(err) == freshet.NotFound || err == nil && !fits {
		return access{}, errNoTopic()
	}
	return found, err
}

// isIn reports whether a topic is in an app, and not in a former one with its identifier.
func isIn(topic *store.TopicRecord, app *store.AppRecord) bool {
	return topic.Topic.AppID == app.App.ID && topic.AppCreatedAt.Equal(app.App.CreatedAt)
}

func errNoTopic() error { return freshet.Errorf(freshet.TopicNotFound, "There is no such topic") }
