package catalog

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
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
		w.check(other.lookOnce(t.Context()))
		return grids.heard()
	}
	key := ada.app.PublisherKey
	w.check(ask(ada, key))
	w.check(ask(eve, eve.app.PublisherKey))
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
	before := w.topics.entries[ada.topic.ID].value
	for range 4 {
		w.advance(freshFor - 1)
		w.check(w.lookOnce(t.Context()))
	}
	_, err = w.MaySubscribe(t.Context(), SubscribeAsk{TopicID: ada.topic.ID})
	w.check(err)
	if w.topics.entries[ada.topic.ID].value != before {
		t.Error("the topic was loaded again")
	}
	w.advance(usedFor)
	if used := w.topics.used(usedFor); len(used) != 0 {
		t.Errorf("%d topics count as in use", len(used))
	}
}
