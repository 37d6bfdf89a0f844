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

// gridWith is a real grid in front of which something happens to writes, or to their answers.
type gridWith struct {
	grid.Grid
	puts   atomic.Int64
	before func(put int64) error
	after  func()
}

func (g *gridWith) Put(ctx context.Context, topic string, expected freshet.Position, doc grid.Document) (freshet.Position, error) {
	if g.after != nil {
		defer g.after()
	}
	if g.before != nil {
		if err := g.before(g.puts.Add(1)); err != nil {
			return freshet.Position{}, err
		}
	}
	return g.Grid.Put(ctx, topic, expected, doc)
}

// TestALateAnswerDoesNotBringBackADocument that was stored, told to the node, and gone before the answer came.
func TestALateAnswerDoesNotBringBackADocument(t *testing.T) {
	const ttl = time.Hour
	publish := func(t *testing.T, r *router.Router, topic *freshet.Topic, body string) freshet.Position {
		out, err := r.Publish(t.Context(), topic, router.Publication{Body: []byte(body)})
		if err != nil {
			t.Fatal(err)
		}
		return out.Position
	}
	for name, meanwhile := range map[string]func(t *testing.T, m *grid.Memory, other *router.Router, topic *freshet.Topic) freshet.Position{
		"expired": func(t *testing.T, _ *grid.Memory, _ *router.Router, _ *freshet.Topic) freshet.Position {
			time.Sleep(ttl + time.Second)
			return freshet.Position{}
		},
		"deleted, and another one published": func(t *testing.T, m *grid.Memory, other *router.Router, topic *freshet.Topic) freshet.Position {
			if err := m.Delete(t.Context(), topic.ID); err != nil {
				t.Fatal(err)
			}
			return publish(t, other, topic, `{"v":3}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory := grid.NewMemory(grid.MemoryOptions{MessageTTL: ttl})
				defer memory.Close()
				g := &gridWith{Grid: memory}
				r, other := router.New(g, router.Options{MessageTTL: ttl}), router.New(memory, router.Options{MessageTTL: ttl})
				defer r.Close()
				defer other.Close()
				topic := newTopic(t, "snapshot")
				publish(t, r, &topic, `{"v":1}`)
				var want freshet.Position
				g.after = func() {
					g.after = nil
					want = meanwhile(t, memory, other, &topic)
				}
				publish(t, r, &topic, `{"v":2}`)
				if _, at, err := r.Document(t.Context(), topic); err != nil || at != want {
					t.Errorf("it holds %v, not %v: %v", at, want, err)
				}
			})
		})
	}
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
