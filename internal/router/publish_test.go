package router_test

import (
	"context"
	"testing"

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
