package router_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/router"
)

// TestAPublicationThatTakesLongIsNotMadeTwice: whoever repeats it takes it for dead, and it was only waiting for others.
func TestAPublicationThatTakesLongIsNotMadeTwice(t *testing.T) {
	t.Parallel()
	memory := grid.NewMemory(grid.MemoryOptions{})
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
