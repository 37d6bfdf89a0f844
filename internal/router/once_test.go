package router_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/grid/memory"
	"github.com/freshet-io/freshet/internal/router"
)

// TestAPublicationThatTakesLongIsNotMadeTwice: whoever repeats it takes it for dead, and it was only waiting for others.
func TestAPublicationThatTakesLongIsNotMadeTwice(t *testing.T) {
	t.Parallel()
	memory := memory.New(memory.Options{})
	defer memory.Close()
	g := &gridWith{Grid: memory}
	r := router.New(g, router.Options{})
	defer r.Close()
	topic := newTopic(t, "snapshot")
	publish := func(p router.Publication) router.Outcome {
		out, err := r.Publish(t.Context(), &topic, p)
		if err != nil {
			t.Error(err)
		}
		return out
	}
	publish(router.Publication{Body: []byte(`[]`)})
	slow := make(chan struct{})
	g.before = func(put int64) error {
		if put == 1 {
			close(slow)
			time.Sleep(4 * time.Second)
		}
		return nil
	}
	var all sync.WaitGroup
	all.Go(func() { publish(router.Publication{Body: []byte(`[1]`)}) })
	<-slow
	var outcomes [2]router.Outcome
	for i := range outcomes {
		all.Go(func() {
			outcomes[i] = publish(router.Publication{Body: []byte(`[{"op":"add","path":"/-","value":2}]`), Form: router.JSONPatch, IdempotencyKey: "key"})
		})
	}
	all.Wait()
	if body, _, err := r.Document(t.Context(), topic); err != nil || string(body) != `[1,2]` {
		t.Errorf("the document is %s, %v", body, err)
	}
	if fmt.Sprint(outcomes[0].Replayed, outcomes[1].Replayed) == "false false" {
		t.Errorf("the outcomes are %+v", outcomes)
	}
}

// dying is the grid of a node that dies, or gets no answer, when it has stored a publication.
type dying struct {
	grid.Grid
	isUnknown bool // whether it lives to say that it does not know
	isEarly   bool // whether it has not even stored it
}

func (g *dying) Put(ctx context.Context, topic string, expected freshet.Position, doc grid.Document) (freshet.Position, error) {
	if g.isEarly {
		return freshet.Position{}, freshet.Errorf(freshet.Unavailable, "dead")
	}
	pos, err := g.Grid.Put(ctx, topic, expected, doc)
	if err == nil && g.isUnknown {
		return freshet.Position{}, freshet.Wrap(freshet.Unavailable, grid.ErrUnknown, "no answer")
	}
	return pos, err
}

func (g *dying) Swap(ctx context.Context, name, old, new string, ttl time.Duration) (string, error) {
	if old != "" && !g.isUnknown {
		return "", freshet.Errorf(freshet.Unavailable, "dead")
	}
	return g.Grid.Swap(ctx, name, old, new, ttl)
}

// TestAPublicationWhoseNodeDiedIsKnownForADay, whatever was published since, and also if it could not be made again.
func TestAPublicationWhoseNodeDiedIsKnownForADay(t *testing.T) {
	for name, p := range map[string]router.Publication{
		"a patch":                    {Form: router.JSONPatch, Body: []byte(`[{"op":"add","path":"/log/-","value":"payment"}]`)},
		"a patch that applies once":  {Form: router.JSONPatch, Body: []byte(`[{"op":"remove","path":"/once"},{"op":"add","path":"/log/-","value":"payment"}]`)},
		"with a condition":           {Form: router.Whole, Body: []byte(`{"log":["payment"]}`), Match: []router.Match{{Version: 1}}},
		"what changes nothing":       {Form: router.Whole, Body: []byte(`{"log":[],"once":1}`)},
		"what nobody knows is there": {Form: router.MergePatch, Body: []byte(`{"log":["payment"]}`)},
	} {
		for _, isUnknown := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", unknown ", isUnknown), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					memory := memory.New(memory.Options{})
					defer memory.Close()
					here, there := router.New(memory, router.Options{}), router.New(&dying{Grid: memory, isUnknown: isUnknown}, router.Options{})
					defer here.Close()
					topic := newTopic(t, "snapshot")
					publish := func(r *router.Router, p router.Publication) (router.Outcome, error) {
						p.Body = slices.Clone(p.Body)
						return r.Publish(t.Context(), &topic, p)
					}
					if _, err := publish(here, router.Publication{Body: []byte(`{"log":[],"once":1}`)}); err != nil {
						t.Fatal(err)
					}
					p.IdempotencyKey = "4711"
					if _, err := publish(there, p); (err != nil) != isUnknown {
						t.Fatalf("the first time: %v", err)
					}
					there.Close()
					stored, at, err := here.Document(t.Context(), topic)
					if err != nil {
						t.Fatal(err)
					}
					for i := range 100 {
						if _, err := publish(here, router.Publication{Form: router.MergePatch, Body: fmt.Appendf(nil, `{"n":%d}`, i), IdempotencyKey: fmt.Sprint(i)}); err != nil {
							t.Fatal(err)
						}
					}
					time.Sleep(23 * time.Hour)
					before, _, _ := here.Document(t.Context(), topic)
					for range 2 {
						out, err := publish(here, p)
						if err != nil || !out.Replayed || out.Position != at {
							t.Errorf("repeated: %+v, %v; it went to %v", out, err, at)
						}
					}
					if after, _, err := here.Document(t.Context(), topic); err != nil || string(after) != string(before) {
						t.Errorf("%s was stored, then there was %s, and repeating it made %s, %v", stored, before, after, err)
					}
				})
			})
		}
	}
}

// TestAPublicationWhoseNodeDiedTooEarlyIsMadeByTheNext: it waits for the first, which is no reason to call it old.
func TestAPublicationWhoseNodeDiedTooEarlyIsMadeByTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := memory.New(memory.Options{})
		defer memory.Close()
		topic := newTopic(t, "snapshot")
		publish := func(g grid.Grid, p router.Publication) (router.Outcome, error) {
			r := router.New(g, router.Options{})
			defer r.Close()
			return r.Publish(t.Context(), &topic, p)
		}
		if _, err := publish(memory, router.Publication{Body: []byte(`1`)}); err != nil {
			t.Fatal(err)
		}
		if _, err := publish(&dying{Grid: memory, isEarly: true}, router.Publication{Body: []byte(`2`), IdempotencyKey: "key"}); err == nil {
			t.Fatal("it was stored")
		}
		out, err := publish(memory, router.Publication{Body: []byte(`2`), IdempotencyKey: "key"})
		if err != nil || out.Replayed || !out.Changed {
			t.Errorf("got %+v, %v", out, err)
		}
	})
}

// speechless is a grid that cannot say for some time what became of publications.
type speechless struct {
	grid.Grid
	isSilent bool
}

func (g *speechless) Recall(ctx context.Context, topic, once string) (freshet.Position, error) {
	if g.isSilent {
		return freshet.Position{}, freshet.Errorf(freshet.Unavailable, "no answer")
	}
	return g.Grid.Recall(ctx, topic, once)
}

// TestAPublicationInDoubtStaysSoWhileNobodyCanTell: whoever repeats it and learns nothing repeats it once more, and it was stored.
func TestAPublicationInDoubtStaysSoWhileNobodyCanTell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := memory.New(memory.Options{})
		defer memory.Close()
		g := &speechless{memory, true}
		here, there := router.New(g, router.Options{}), router.New(&dying{Grid: memory, isUnknown: true}, router.Options{})
		defer here.Close()
		defer there.Close()
		topic := newTopic(t, "snapshot")
		mustPublish(t, here, &topic, `{"once":1}`)
		publish := func(r *router.Router) (router.Outcome, error) {
			return r.Publish(t.Context(), &topic, router.Publication{Form: router.JSONPatch, Body: []byte(`[{"op":"remove","path":"/once"}]`), IdempotencyKey: "key"})
		}
		for _, r := range []*router.Router{there, here} {
			if _, err := publish(r); freshet.KindOf(err) != freshet.Unavailable {
				t.Fatalf("nobody knows: %v", err)
			}
		}
		g.isSilent = false
		if out, err := publish(here); err != nil || !out.Replayed {
			t.Errorf("it was stored the first time: %+v, %v", out, err)
		}
	})
}
