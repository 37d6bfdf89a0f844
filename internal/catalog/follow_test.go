package catalog

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/store"
)

// deaf is another node's grid that misses every notice.
type deaf struct{ told []grid.Notice }

func (*deaf) Notify(context.Context, grid.Notice) error { return nil }
func (*deaf) OnNotice(func(grid.Notice)) (stop func())  { return func() {} }
func (d *deaf) Tell(n grid.Notice)                      { d.told = append(d.told, n) }
func (d *deaf) heard() []grid.Notice                    { told := d.told; d.told = nil; return told }
func notice(scope grid.Scope, id string, told []grid.Notice) bool {
	return slices.Equal(told, []grid.Notice{{Scope: scope, ID: id}})
}

func TestALostNoticeIsFoundInTheStore(t *testing.T) {
	t.Parallel()
	w := openWorld(t, nil)
	ada, eve := w.owner(), w.owner()
	grids := &deaf{}
	other, err := New(t.Context(), w.store, grids, w.options())
	w.check(err)
	defer other.Close()
	ask := func(o owner, key freshet.Key) error {
		_, err := other.MayPublish(t.Context(), o.topic.ID, key.Reveal())
		return err
	}
	look := func() []grid.Notice {
		t.Helper()
		w.check(other.look(t.Context()))
		return grids.heard()
	}
	key := ada.app.PublisherKey
	w.check(ask(ada, key))
	w.check(ask(eve, eve.app.PublisherKey))
	grids.heard() // before the first look nobody knew anything
	if told := look(); told != nil {
		t.Errorf("nothing changed, but %v", told)
	}

	w.advance(time.Second)
	w.renew(ada, freshet.PublisherKey, 0)
	w.check(ask(ada, key)) // as long as nobody looks
	if told := look(); !notice(grid.ScopeApp, ada.app.ID, told) {
		t.Errorf("after a renewal: %v", told)
	}
	wantKind(t, "the old key", ask(ada, key), freshet.RevokedCredential)

	_, err = w.UpdateTopic(t.Context(), eve.actor, TopicRef{ID: eve.topic.ID}, func(topic *freshet.Topic) error { topic.Name = "New"; return nil })
	w.check(err)
	if told := look(); !notice(grid.ScopeTopic, eve.topic.ID, told) {
		t.Errorf("after a change of a topic: %v", told)
	}
	w.check(ask(eve, eve.app.PublisherKey))

	disabled := freshet.StatusDisabled
	_, err = w.UpdateAccount(t.Context(), w.admin(), eve.actor.User.ID, AccountChange{Status: &disabled})
	w.check(err)
	if told := look(); !notice(grid.ScopeUser, eve.actor.User.ID, told) {
		t.Errorf("after an account was disabled: %v", told)
	}
	wantKind(t, "a disabled account", ask(eve, eve.app.PublisherKey), freshet.AccountDisabled)

	w.check(w.DeleteTopic(t.Context(), eve.actor, TopicRef{ID: eve.topic.ID}))
	if told := look(); !notice(grid.ScopeTopic, eve.topic.ID, told) {
		t.Errorf("after a deletion: %v", told)
	}
	wantKind(t, "a deleted topic", ask(eve, eve.app.PublisherKey), freshet.TopicNotFound)
}

func TestWhatWasComparedNeedNotBeLoaded(t *testing.T) {
	t.Parallel()
	w := openWorld(t, nil)
	ada := w.owner()
	_, err := w.MaySubscribe(t.Context(), SubscribeAsk{TopicID: ada.topic.ID})
	w.check(err)
	before, _ := w.topics.peek(ada.topic.ID)
	for range 4 {
		w.advance(freshFor - 1)
		w.check(w.look(t.Context()))
	}
	_, err = w.MaySubscribe(t.Context(), SubscribeAsk{TopicID: ada.topic.ID})
	w.check(err)
	if after, ok := w.topics.peek(ada.topic.ID); !ok || after != before {
		t.Error("the topic was loaded again")
	}
}

// Whoever asked again since a change has heard of it: the log would have all its streams ask another time.
func TestAChangeThatWasHeardOfIsNotToldAgain(t *testing.T) {
	t.Parallel()
	w := openWorld(t, nil)
	ada := w.owner()
	var told []grid.Notice
	w.check(w.publishWith(ada.topic.ID, ada.app.PublisherKey))
	w.renew(ada, freshet.SubscriberKey, 0)
	w.check(w.publishWith(ada.topic.ID, ada.app.PublisherKey)) // as a stream does after the notice
	defer w.grid.OnNotice(func(n grid.Notice) { told = append(told, n) })()
	before, _ := w.apps.peek(ada.app.ID)
	w.check(w.look(t.Context()))
	if after, _ := w.apps.peek(ada.app.ID); told != nil || after == nil || after != before {
		t.Errorf("told %v", told)
	}

	w.renew(ada, freshet.SubscriberKey, 0)
	told = nil
	w.check(w.look(t.Context()))
	if !notice(grid.ScopeApp, ada.app.ID, told) {
		t.Errorf("nobody asked since the change, but the log told %v", told)
	}
}

func TestWhoMissedTooManyChangesForgetsEverything(t *testing.T) {
	t.Parallel()
	w := openWorld(t, nil)
	ada := w.owner()
	grids := &deaf{}
	other, err := New(t.Context(), w.store, grids, w.options())
	w.check(err)
	defer other.Close()
	ask := func() error {
		_, err := other.MayPublish(t.Context(), ada.topic.ID, ada.app.PublisherKey.Reveal())
		return err
	}
	w.check(ask())
	w.check(w.DeleteTopic(t.Context(), ada.actor, TopicRef{ID: ada.topic.ID}))
	w.check(ask()) // as long as nobody looks
	grids.heard()
	other.follower.cursor = store.ChangeCursor{}
	w.check(other.look(t.Context()))
	if told := grids.heard(); !notice(grid.ScopeCatalog, "", told) {
		t.Errorf("streams were told %v", told)
	}
	wantKind(t, "a deleted topic", ask(), freshet.TopicNotFound)
}

// The built-in app is the only one that can come again with its identifier, and so can its topics.
func TestATopicOfABuiltInAppThatWasDeletedIsNotRemembered(t *testing.T) {
	t.Parallel()
	w := openWorld(t, nil)
	source := &SourceAsk{URL: "http://example.com/quotes"}
	var topicID string
	provision := func(source *SourceAsk) {
		t.Helper()
		g, err := w.Provision(t.Context(), SubscribeAsk{Source: source})
		w.check(err)
		topicID = g.Topic.ID
	}
	provision(source)
	provision(source) // and remembers it
	w.check(w.DeleteApp(t.Context(), w.admin(), BuiltInAppID))
	w.advance(time.Millisecond)
	provision(&SourceAsk{URL: "http://example.com/other"})
	provision(source)
	if _, err := w.store.Topic(t.Context(), topicID); err != nil {
		t.Errorf("its subscriber got a topic that does not exist: %v", err)
	}
}

func TestAKeyThatWasFreedByADeletionIsItsNewAppsKey(t *testing.T) {
	t.Parallel()
	w := openWorld(t, nil)
	ada, eve := w.owner(), w.owner()
	key := ada.app.PublisherKey.Reveal()
	w.check(w.publishWith(ada.topic.ID, ada.app.PublisherKey))
	w.check(w.DeleteUser(t.Context(), w.admin(), ada.actor.User.ID))
	wantKind(t, "a deleted account", w.publishWith(ada.topic.ID, ada.app.PublisherKey), freshet.UnknownCredential)
	_, err := w.RenewKey(t.Context(), eve.actor, eve.app.ID, freshet.PublisherKey, Renewal{Key: &key})
	w.check(err)
	w.check(w.publishWith(eve.topic.ID, ada.app.PublisherKey))
}

// listener tells what a node that misses every notice finds in the log.
type listener struct {
	deaf
	found chan grid.Notice
}

func (l *listener) Tell(n grid.Notice) { l.found <- n }

func TestTheLogIsReadAllTheTime(t *testing.T) {
	t.Parallel()
	w := openWorld(t, nil)
	ada := w.owner()
	l := &listener{found: make(chan grid.Notice, 1)}
	opts := w.options()
	opts.lookEvery = time.Millisecond
	other, err := New(t.Context(), w.store, l, opts)
	w.check(err)
	defer other.Close()
	if n := <-l.found; n.Scope != grid.ScopeCatalog {
		t.Errorf("at first it found %v", n)
	}
	w.renew(ada, freshet.PublisherKey, 0)
	if n := <-l.found; n != ofApp(ada.app.ID) {
		t.Errorf("found %v", n)
	}
}

func TestPublishingToKnownTopicsRunsNoStatement(t *testing.T) {
	t.Parallel()
	w := openWorld(t, func(o *Options) { o.lookEvery = time.Hour }) // but for what the test does itself
	ada := w.owner()
	topics := []string{ada.topic.ID}
	for range 999 {
		topic, err := w.CreateTopic(t.Context(), ada.actor, ada.app.ID, posted)
		w.check(err)
		topics = append(topics, topic.ID)
	}
	round := func() {
		for _, id := range topics {
			w.check(w.publishWith(id, ada.app.PublisherKey))
		}
	}
	round()
	before := w.store.Statements()
	for range 10 {
		round()
		w.advance(time.Second)
		w.check(w.look(t.Context()))
	}
	if n := w.store.Statements() - before; n > 20 {
		t.Errorf("10,000 publications over 10 seconds took %d statements", n)
	}
}
