package catalog

import (
	"testing"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/pgtest"
	"github.com/freshet-io/freshet/internal/store"
)

// hasLoad reports whether the store is still being asked.
func hasLoad[K comparable, V any](c *cache[K, V]) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.loading) > 0
}

func TestPublishersAndSubscribersOfKnownTopicsDoNotWaitForADatabaseThatHangs(t *testing.T) {
	t.Parallel()
	link := pgtest.NewLink(t, pgtest.URL(t))
	w := openWorldAt(t, store.Location{URL: link.URL}, nil)
	defer link.Open() // before the store is closed
	ada := w.owner()
	source := &SourceAsk{URL: "http://example.com/quotes"}
	signed := w.signedApp(ada)
	asks := []struct {
		who    string
		ask    func() (*Grant, error)
		asking func() bool
	}{
		{"a publisher", func() (*Grant, error) {
			return w.MayPublish(t.Context(), ada.topic.ID, ada.app.PublisherKey.Reveal())
		}, func() bool { return hasLoad(w.keys) && hasLoad(w.apps) && hasLoad(w.topics) }},
		{"a subscriber", func() (*Grant, error) { return w.MaySubscribe(t.Context(), signed) }, func() bool { return hasLoad(w.former) }},
		{"a subscriber of a URL", func() (*Grant, error) {
			return w.Provision(t.Context(), SubscribeAsk{Source: source})
		}, func() bool { return hasLoad(w.apps) }},
		{"the first of a URL on this node", func() (*Grant, error) {
			return w.Provision(t.Context(), SubscribeAsk{Source: source, TopicID: w.seals.topicID(BuiltInAppID, source)})
		}, nil},
	}
	for range 2 { // the first subscriber of a URL makes its topic, the second knows it
		for _, a := range asks {
			if _, err := a.ask(); err != nil {
				t.Fatalf("%s: %v", a.who, err)
			}
		}
	}
	w.advance(staleFor / 2)
	link.GoDark()
	for _, a := range asks {
		if _, err := a.ask(); err != nil {
			t.Errorf("%s while the database hangs: %v", a.who, err)
		}
		if a.asking != nil && !a.asking() {
			t.Errorf("%s: the database is not being asked any more, so somebody has waited for it", a.who)
		}
	}
	w.forget(grid.Notice{Scope: grid.ScopeApp, ID: ada.app.ID})
	answered := make(chan error, 1)
	go func() { answered <- w.publishWith(ada.topic.ID, ada.app.PublisherKey) }()
	awaitLoad(w.keys)
	select {
	case err := <-answered:
		t.Errorf("what a notice was about was answered from memory: %v", err)
	default:
	}
	link.Open()
	if err := <-answered; err != nil {
		t.Errorf("once the database is back: %v", err)
	}
}

// awaitLoad returns once the store is asked.
func awaitLoad[K comparable, V any](c *cache[K, V]) {
	for !hasLoad(c) {
		<-time.After(time.Millisecond)
	}
}

// signedApp has an app want signatures, renews its key, and returns a question signed with the former one.
func (w *world) signedApp(o owner) SubscribeAsk {
	w.t.Helper()
	_, err := w.UpdateApp(w.t.Context(), o.actor, o.app.ID, func(a *freshet.App) { a.SignatureRequired = true })
	w.check(err)
	ask := w.signedAsk(o)
	w.renew(o, freshet.SignatureKey, time.Hour)
	return ask
}
