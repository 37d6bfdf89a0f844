package catalog

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/pgtest"
	"github.com/freshet-io/freshet/internal/store"
)

func (w *world) limitTopics(o owner, account, app int64) {
	w.t.Helper()
	_, err := w.UpdateAccount(w.t.Context(), w.admin(), o.actor.User.ID, AccountChange{Quotas: QuotasChange{Topics: &account}})
	w.check(err)
	_, err = w.UpdateAppQuotas(w.t.Context(), w.admin(), o.app.ID, QuotasChange{Topics: &app})
	w.check(err)
}

func (w *world) addTopic(o owner, app *freshet.App) (*freshet.Topic, error) {
	return w.CreateTopic(w.t.Context(), o.actor, app.ID, posted)
}

func TestThereAreNoMoreTopicsThanTheQuotasAllow(t *testing.T) {
	t.Parallel()
	w := openWorld(t, nil)
	ada, eve := w.owner(), w.owner() // with a topic each
	second, err := w.CreateApp(t.Context(), ada.actor, freshet.App{Name: "Second"})
	w.check(err)
	w.limitTopics(ada, 3, 2)
	_, err = w.addTopic(ada, ada.app)
	w.check(err)
	_, err = w.addTopic(ada, ada.app)
	wantKind(t, "over the app's", err, freshet.TopicLimit)
	if !strings.Contains(err.Error(), "The app has 2 topics, and its quota topics is 2") {
		t.Errorf("%q does not name the quota", err)
	}
	last, err := w.addTopic(ada, second)
	w.check(err)
	_, err = w.addTopic(ada, second)
	wantKind(t, "over the account's", err, freshet.TopicLimit)
	if !strings.Contains(err.Error(), "The account has 3 topics, and its quota topics is 3") {
		t.Errorf("%q does not name the quota", err)
	}
	_, err = w.addTopic(eve, eve.app)
	w.check(err)
	w.limitTopics(ada, 1, 0) // below what there is: it all stays
	_, err = w.Topic(t.Context(), ada.actor, TopicRef{ID: last.ID})
	w.check(err)
	w.check(w.DeleteTopic(t.Context(), ada.actor, TopicRef{ID: last.ID}))
	_, err = w.addTopic(ada, second)
	wantKind(t, "still over it", err, freshet.TopicLimit)
	w.check(w.DeleteApp(t.Context(), ada.actor, ada.app.ID))
	_, err = w.addTopic(ada, second)
	w.check(err)
}

func TestTheServersQuotaOfTopicsHoldsForWhoHasNoneOfTheirOwn(t *testing.T) {
	t.Parallel()
	w := openWorld(t, func(o *Options) { o.Quotas.Topics, o.AppQuotas.Topics = 3, 2 })
	ada := w.owner()
	_, err := w.addTopic(ada, ada.app)
	w.check(err)
	_, err = w.addTopic(ada, ada.app)
	wantKind(t, "over the server's", err, freshet.TopicLimit)
	w.limitTopics(ada, 0, 0)
	for range 3 {
		_, err = w.addTopic(ada, ada.app)
		w.check(err)
	}
}

func TestTopicsOfSubscribersCountAgainstTheQuota(t *testing.T) {
	t.Parallel()
	w := openWorld(t, nil)
	ada := w.provider(nil) // with a topic
	w.limitTopics(ada, 2, 0)
	first := w.provide(sourceAsk(ada.app.SubscriberKey, "http://example.com/1"))
	_, err := w.Provision(t.Context(), sourceAsk(ada.app.SubscriberKey, "http://example.com/2"))
	wantKind(t, "one more", err, freshet.TopicLimit)
	_, err = w.addTopic(ada, ada.app)
	wantKind(t, "one of the owner", err, freshet.TopicLimit)
	w.provide(sourceAsk(ada.app.SubscriberKey, "http://example.com/1")) // it is there
	p := Provision{ID: freshet.NewID(), AppID: ada.app.ID, Name: "x", URL: "http://example.com/3", CreatedAt: w.now()}
	wantKind(t, "for another process", w.Provide(t.Context(), p), freshet.TopicLimit)
	nobody := func(context.Context) (bool, error) { return false, nil }
	w.check(w.Retire(t.Context(), first.ID, nobody))
	w.provide(sourceAsk(ada.app.SubscriberKey, "http://example.com/2"))
}

func TestASubscriberWhoComesBackTooLateFindsThePlaceTaken(t *testing.T) {
	t.Parallel()
	w := openWorld(t, nil)
	ada := w.provider(nil) // with a topic
	w.limitTopics(ada, 2, 0)
	topic := w.provide(sourceAsk(ada.app.SubscriberKey, "http://example.com/1"))
	asked := 0
	present := func(context.Context) (bool, error) {
		if asked++; asked == 1 {
			return false, nil
		}
		_, err := w.addTopic(ada, ada.app) // after the topic was deleted, before the subscriber is seen
		return true, err
	}
	w.check(w.Retire(t.Context(), topic.ID, present))
	_, err := w.Topic(t.Context(), ada.actor, TopicRef{ID: topic.ID})
	wantKind(t, "the topic", err, freshet.NotFound)
}

func TestTheQuotaOfTopicsIsExactHoweverManyMakeThemAtOnce(t *testing.T) {
	for name, where := range map[string]func(t *testing.T) store.Location{
		"SQLite":     func(t *testing.T) store.Location { return store.Location{Dir: t.TempDir()} },
		"PostgreSQL": func(t *testing.T) store.Location { return store.Location{URL: pgtest.URL(t)} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := openWorldAt(t, where(t), nil)
			ada := w.provider(nil) // with a topic
			apps := []*freshet.App{ada.app}
			for _, name := range []string{"Second", "Third"} {
				app, err := w.CreateApp(t.Context(), ada.actor, freshet.App{Name: name, AutoProvisioningAllowed: true})
				w.check(err)
				apps = append(apps, app)
			}
			const quota, appQuota = 9, 4
			w.limitTopics(ada, quota, appQuota)
			var made, ofFirst atomic.Int64
			var all sync.WaitGroup
			for i := range 24 {
				all.Go(func() {
					app := apps[i%len(apps)]
					var err error
					if i%2 == 0 {
						_, err = w.addTopic(ada, app)
					} else {
						_, err = w.Provision(t.Context(), sourceAsk(app.SubscriberKey, fmt.Sprintf("http://example.com/%d", i)))
					}
					switch {
					case err == nil:
						made.Add(1)
						if app == ada.app {
							ofFirst.Add(1)
						}
					case freshet.KindOf(err) != freshet.TopicLimit:
						t.Error(err)
					}
				})
			}
			all.Wait()
			if made.Load() != quota-1 || ofFirst.Load() > appQuota-1 {
				t.Errorf("%d topics were made beside the one that was there, %d of them in the app with the quota of %d", made.Load(), ofFirst.Load(), appQuota)
			}
		})
	}
}
