package router_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/grid/memory"
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
	for name, meanwhile := range map[string]func(t *testing.T, m *memory.Grid, other *router.Router, topic *freshet.Topic) freshet.Position{
		"expired": func(t *testing.T, _ *memory.Grid, _ *router.Router, _ *freshet.Topic) freshet.Position {
			time.Sleep(ttl + time.Second)
			return freshet.Position{}
		},
		"deleted, and another one published": func(t *testing.T, m *memory.Grid, other *router.Router, topic *freshet.Topic) freshet.Position {
			if err := m.Delete(t.Context(), topic.ID); err != nil {
				t.Fatal(err)
			}
			return publish(t, other, topic, `{"v":3}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory := memory.New(memory.Options{MessageTTL: ttl})
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
	const ttl = 10 * time.Second
	full := func(put int64) error {
		if put > 2 {
			return freshet.Errorf(freshet.Unavailable, "There is no room")
		}
		return nil
	}
	for name, before := range map[string]func(put int64) error{
		"no room": full,
		"no room, and let go of meanwhile": func(put int64) error {
			if put == 3 {
				time.Sleep(4 * ttl)
			}
			return full(put)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory := memory.New(memory.Options{MessageTTL: time.Hour})
				defer memory.Close()
				g := &gridWith{Grid: memory, before: before}
				r := router.New(g, router.Options{MessageTTL: ttl, Linger: ttl + ttl/2})
				defer r.Close()
				topic := newTopic(t, "item .id")
				for _, body := range []string{`[{"id":"a"}]`, `[{"id":"b"}]`} {
					if _, err := r.Publish(t.Context(), &topic, router.Publication{Body: []byte(body)}); err != nil {
						t.Fatal(err)
					}
					time.Sleep(ttl - 2*time.Second)
				}
				time.Sleep(10 * ttl)
				if n := g.puts.Load(); n < 3 || n > 12 {
					t.Errorf("%d writes", n)
				}
			})
		})
	}
}

// TestTheLastItemsGoWithTheDocument, and not a moment before, as an empty one.
func TestTheLastItemsGoWithTheDocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = time.Minute
		memory := memory.New(memory.Options{MessageTTL: ttl + time.Second}) // as one that is busy
		defer memory.Close()
		r := router.New(memory, router.Options{MessageTTL: ttl})
		defer r.Close()
		topic := newTopic(t, "item .id")
		out, err := r.Publish(t.Context(), &topic, router.Publication{Body: []byte(`[{"id":"a"}]`)})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []freshet.Position{out.Position, {}} {
			time.Sleep(ttl + 500*time.Millisecond)
			if _, at, err := r.Document(t.Context(), topic); err != nil || at != want {
				t.Errorf("it is at %v, not at %v: %v", at, want, err)
			}
		}
	})
}
