package router_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
	gridmemory "github.com/freshet-io/freshet/internal/grid/memory"
	"github.com/freshet-io/freshet/internal/memory"
	"github.com/freshet-io/freshet/internal/router"
)

// inDoubt is a grid that has just had a fault.
type inDoubt struct{ grid.Grid }

func (inDoubt) Present(context.Context, string) (bool, error) { return false, grid.ErrDoubt }

func TestAPublicationIsDroppedOnlyIfNobodyIsThereForCertain(t *testing.T) {
	t.Parallel()
	engine := gridmemory.New(gridmemory.Options{})
	defer engine.Close()
	topic := newTopic(t, "snapshot")
	no := false
	topic.Publisher.ForcePublishing = &no
	for _, c := range []struct {
		grid    grid.Grid
		dropped bool
	}{{engine, true}, {inDoubt{engine}, false}} {
		r := router.New(c.grid, router.Options{})
		out, err := r.Publish(t.Context(), &topic, router.Publication{Body: []byte(`1`)})
		if err != nil || out.Dropped != c.dropped || out.Changed == c.dropped {
			t.Errorf("%T: %+v, %v", c.grid, out, err)
		}
		r.Close()
	}
}

// cutOff is the grid of a node that is cut off from it for some time, when it wants to store or to follow something.
type cutOff struct {
	grid.Grid
	storing, following time.Duration
}

func (g *cutOff) Put(ctx context.Context, topic string, expected freshet.Position, doc grid.Document) (freshet.Position, error) {
	time.Sleep(g.storing)
	g.storing = 0
	return g.Grid.Put(ctx, topic, expected, doc)
}

func (g *cutOff) Watch(ctx context.Context, topic string, changed func(grid.Document)) (stop func(), err error) {
	time.Sleep(g.following)
	return g.Grid.Watch(ctx, topic, changed)
}

// TestAnOldPublicationDoesNotComeAfterANewerOne: a node that was cut off from everything has publications in hand whose publishers have
// given up and published elsewhere.
func TestAnOldPublicationDoesNotComeAfterANewerOne(t *testing.T) {
	const moment, long = 100 * time.Millisecond, 5 * time.Second
	for _, c := range []struct {
		name               string
		storing, following time.Duration
		wants              string
	}{
		{"what lost a race after a moment starts over", moment, 0, `"old"`},
		{"what lost a race after some seconds is refused", long, 0, `"new"`},
		{"what found the newer one after a moment comes after it", 0, moment, `"old"`},
		{"what found the newer one after some seconds is refused", 0, long, `"new"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := gridmemory.New(gridmemory.Options{})
				defer engine.Close()
				here := router.New(&cutOff{engine, c.storing, c.following}, router.Options{})
				defer here.Close()
				there := router.New(engine, router.Options{})
				defer there.Close()
				topic := newTopic(t, "snapshot")
				publish := func(r *router.Router, body string) error {
					_, err := r.Publish(t.Context(), &topic, router.Publication{Body: []byte(body)})
					return err
				}
				var old error
				done := make(chan struct{})
				go func() {
					defer close(done)
					old = publish(here, `"old"`)
				}()
				synctest.Wait()
				if err := publish(there, `"new"`); err != nil {
					t.Error(err)
				}
				<-done
				if body, _, err := there.Document(t.Context(), topic); err != nil || string(body) != c.wants {
					t.Errorf("the document is %s, %v", body, err)
				}
				if isRefused := freshet.KindOf(old) == freshet.Unavailable; isRefused != (c.wants == `"new"`) {
					t.Errorf("the old one: %v", old)
				}
				if err := publish(here, `"newest"`); err != nil {
					t.Errorf("what comes afterwards: %v", err)
				}
			})
		})
	}
}

// TestAPublicationThatWaitsForItsOwnNodeIsNotOld: that others published before it came is no reason to refuse it.
func TestAPublicationThatWaitsForItsOwnNodeIsNotOld(t *testing.T) {
	for name, before := range map[string]func(t *testing.T, here, there *router.Router, topic *freshet.Topic){
		"to a topic that the node did not know": func(t *testing.T, _, there *router.Router, topic *freshet.Topic) {
			mustPublish(t, there, topic, `1`)
		},
		"to a topic that others published to": func(t *testing.T, here, there *router.Router, topic *freshet.Topic) {
			f, err := here.Subscribe(t.Context(), topic, router.Variant{Event: "snapshot"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(f.Close)
			mustPublish(t, there, topic, `1`)
			time.Sleep(time.Minute)
		},
		"to a topic whose document is deleted": func(t *testing.T, here, _ *router.Router, topic *freshet.Topic) {
			mustPublish(t, here, topic, `1`)
			time.AfterFunc(time.Second, func() { _ = here.Forget(t.Context(), topic.ID) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := gridmemory.New(gridmemory.Options{})
				defer engine.Close()
				work := memory.NewSemaphore(memory.Limits{Bytes: 1 << 20, Holders: 1, Wait: 5 * time.Second, Queue: 4})
				here, there := router.New(engine, router.Options{Work: work}), router.New(engine, router.Options{})
				defer here.Close()
				defer there.Close()
				topic := newTopic(t, "snapshot")
				before(t, here, there, &topic)
				work.TryAcquire(1)
				time.AfterFunc(2*time.Second, func() { work.Release(1) })
				mustPublish(t, here, &topic, zeros(100<<10))
			})
		})
	}
}

// TestTheFirstPublicationIsNotOld, however long it takes a node to find that there is nothing yet.
func TestTheFirstPublicationIsNotOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := gridmemory.New(gridmemory.Options{})
		defer engine.Close()
		r := router.New(&cutOff{engine, 0, 5 * time.Second}, router.Options{})
		defer r.Close()
		topic := newTopic(t, "snapshot")
		mustPublish(t, r, &topic, `1`)
	})
}

func mustPublish(t *testing.T, r *router.Router, topic *freshet.Topic, body string) {
	t.Helper()
	if _, err := r.Publish(t.Context(), topic, router.Publication{Body: []byte(body)}); err != nil {
		t.Error(err)
	}
}
