package router_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/grid/memory"
	"github.com/freshet-io/freshet/internal/router"
)

// skewed is a grid whose clock is not that of this machine.
type skewed struct {
	grid.Grid
	ahead time.Duration
	put   time.Time // when the last document was published
}

func (g *skewed) Now() time.Time { return time.Now().Add(g.ahead) }

func (g *skewed) Put(ctx context.Context, topic string, expected freshet.Position, doc grid.Document) (freshet.Position, error) {
	g.put = doc.At
	return g.Grid.Put(ctx, topic, expected, doc)
}

func TestPublicationsAreStampedByTheClockThatNodesShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = time.Hour
		memory := memory.New(memory.Options{})
		defer memory.Close()
		g := &skewed{Grid: memory, ahead: 24 * time.Hour}
		r := router.New(g, router.Options{MessageTTL: ttl})
		defer r.Close()
		topic := newTopic(t, "item .id")
		publish := func(body string) {
			t.Helper()
			if _, err := r.Publish(t.Context(), &topic, router.Publication{Body: []byte(body)}); err != nil {
				t.Fatal(err)
			}
		}
		writer, err := r.OpenWriter(t.Context(), &topic) // so that somebody sees to it that items expire
		if err != nil {
			t.Fatal(err)
		}
		defer writer.Close()
		publish(`[{"id":1}]`)
		if want := g.Now(); !g.put.Equal(want) {
			t.Errorf("published at %v, not at %v", g.put, want)
		}
		time.Sleep(ttl / 2)
		publish(`[{"id":2}]`)
		time.Sleep(ttl/2 + time.Second) // the first item's time is over, by that clock
		synctest.Wait()
		if body, _, err := r.Document(t.Context(), topic); err != nil || string(body) != `[{"id":2}]` {
			t.Errorf("the document is %s, %v", body, err)
		}
	})
}
