package router_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/router"
)

// gridWith is a real grid in front of which something happens to writes.
type gridWith struct {
	grid.Grid
	puts   atomic.Int64
	before func(put int64) error
}

func (g *gridWith) Put(ctx context.Context, topic string, expected freshet.Position, doc grid.Document) (freshet.Position, error) {
	if err := g.before(g.puts.Add(1)); err != nil {
		return freshet.Position{}, err
	}
	return g.Grid.Put(ctx, topic, expected, doc)
}

// TestItemsThatCannotExpireAreLeftAlone: whatever keeps them from it, the grid is not asked as fast as the processor can, and not for ever.
func TestItemsThatCannotExpireAreLeftAlone(t *testing.T) {
	const ttl = 200 * time.Millisecond
	full := func(put int64) error {
		if put > 1 {
			return freshet.Errorf(freshet.Unavailable, "There is no room")
		}
		return nil
	}
	for name, before := range map[string]func(put int64) error{
		"no room": full,
		"no room, and let go of meanwhile": func(put int64) error {
			if put == 2 {
				time.Sleep(4 * ttl)
			}
			return full(put)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory := grid.NewMemory(grid.MemoryOptions{MessageTTL: time.Hour})
				defer memory.Close()
				g := &gridWith{Grid: memory, before: before}
				r := router.New(g, router.Options{MessageTTL: ttl, Linger: ttl + ttl/2})
				defer r.Close()
				path, err := freshet.ParseItemPath(".id")
				if err != nil {
					t.Fatal(err)
				}
				topic := freshet.Topic{ID: freshet.NewID(), Publisher: freshet.Publisher{Type: freshet.HTTPPost, Payload: freshet.Payload{Type: freshet.PayloadItem, ItemIDPath: path}}}
				if _, err := r.Publish(t.Context(), &topic, router.Publication{Body: []byte(`[{"id":"a"}]`)}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Second)
				if n := g.puts.Load(); n < 2 || n > 4 {
					t.Errorf("%d writes", n)
				}
			})
		})
	}
}
