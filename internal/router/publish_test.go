package router_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/router"
)

// inDoubt is a grid that has just had a fault.
type inDoubt struct{ grid.Grid }

func (inDoubt) Present(context.Context, string) (bool, error) { return false, grid.ErrDoubt }

func TestAPublicationIsDroppedOnlyIfNobodyIsThereForCertain(t *testing.T) {
	t.Parallel()
	memory := grid.NewMemory(grid.MemoryOptions{})
	defer memory.Close()
	topic := newTopic(t, "snapshot")
	no := false
	topic.Publisher.ForcePublishing = &no
	for _, c := range []struct {
		grid    grid.Grid
		dropped bool
	}{{memory, true}, {inDoubt{memory}, false}} {
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
				memory := grid.NewMemory(grid.MemoryOptions{})
				defer memory.Close()
				here := router.New(&cutOff{memory, c.storing, c.following}, router.Options{})
				defer here.Close()
				there := router.New(memory, router.Options{})
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
