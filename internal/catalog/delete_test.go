package catalog

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/freshet-io/freshet"
)

// forgotten collects what the catalog lets go of.
type forgotten struct{ topics []string }

func (f *forgotten) Forget(_ context.Context, topicID string) error {
	f.topics = append(f.topics, topicID)
	return nil
}

func TestDeletingLetsGoOfTheDocumentsBelow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what   string
		delete func(*world, owner) error
	}{
		{"topic", func(w *world, o owner) error {
			return w.DeleteTopic(t.Context(), o.actor, TopicRef{ID: o.topic.ID})
		}},
		{"app", func(w *world, o owner) error { return w.DeleteApp(t.Context(), o.actor, o.app.ID) }},
		{"user", func(w *world, o owner) error { return w.DeleteUser(t.Context(), o.actor, o.actor.User.ID) }},
	} {
		var f forgotten
		w := openWorld(t, func(o *Options) { o.Documents = &f })
		ada, other := w.owner(), w.owner()
		w.check(c.delete(w, ada))
		if !slices.Equal(f.topics, []string{ada.topic.ID}) {
			t.Errorf("%s deleted: forgot %q, want %s and not %s", c.what, f.topics, ada.topic.ID, other.topic.ID)
		}
	}
}

func TestRenewingAtOnceEndsEarlierOverlapsToo(t *testing.T) {
	t.Parallel()
	w := openWorld(t, nil)
	ada := w.owner()
	first := ada.app.PublisherKey
	second := w.renew(ada, freshet.PublisherKey, time.Hour)
	w.check(w.publishWith(ada.topic.ID, first))
	w.renew(ada, freshet.PublisherKey, 0)
	wantKind(t, "the first key", w.publishWith(ada.topic.ID, first), freshet.RevokedCredential)
	wantKind(t, "the second key", w.publishWith(ada.topic.ID, second), freshet.RevokedCredential)
}

func TestTheEndOfAnOverlapIsToldUnlessTheCatalogIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o overlaps
		told := 0
		o.after(time.Minute, func() { told++ })
		o.after(time.Hour, func() { told++ })
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if told != 1 {
			t.Errorf("told %d times after two minutes", told)
		}
		o.close()
		o.after(time.Minute, func() { told++ })
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if told != 1 {
			t.Errorf("told %d times after closing", told)
		}
	})
}
