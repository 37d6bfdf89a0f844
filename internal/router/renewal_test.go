package router_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/freshet-io/freshet/internal/grid/memory"
	"github.com/freshet-io/freshet/internal/router"
)

// TestAnItemThatIsPublishedAgainStays, although nothing changes by it and the topic's other items change all the time.
func TestAnItemThatIsPublishedAgainStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = 24 * time.Hour
		memory := memory.New(memory.Options{MessageTTL: ttl})
		defer memory.Close()
		r := router.New(memory, router.Options{MessageTTL: ttl})
		defer r.Close()
		topic := newTopic(t, "item .id")
		publish := func(body string) {
			if _, err := r.Publish(t.Context(), &topic, router.Publication{Body: []byte(body)}); err != nil {
				t.Fatal(err)
			}
		}
		publish(`[{"id":"left alone"},{"id":"same"}]`)
		for hour := range 40 {
			for i := range 6 {
				publish(fmt.Sprintf(`[{"id":"busy","n":%d}]`, 6*hour+i))
				time.Sleep(10 * time.Minute)
			}
			body, _, err := r.Document(t.Context(), topic)
			if err != nil || !strings.Contains(string(body), `"same"`) || strings.Contains(string(body), `"left alone"`) != (hour < 24) {
				t.Fatalf("after %d hours the document is %s, %v", hour+1, body, err)
			}
			publish(`[{"id":"same"}]`)
		}
	})
}

// TestAnItemThatAnotherNodePublishesAgainStays, although this node was just making something else of the state before.
func TestAnItemThatAnotherNodePublishesAgainStays(t *testing.T) {
	const ttl = 24 * time.Hour
	for name, c := range map[string]struct {
		again time.Duration // when the other node publishes it
		body  string        // what this node publishes at the same time
	}{
		"while this node publishes another one": {ttl - time.Hour, `[{"id":"c"}]`},
		"while this node lets it expire":        {ttl + time.Millisecond, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory := memory.New(memory.Options{MessageTTL: ttl})
				defer memory.Close()
				g := &gridWith{Grid: memory}
				// The clock of the other one is behind: it expires nothing.
				r := router.New(g, router.Options{MessageTTL: ttl, Linger: 4 * ttl})
				other := router.New(memory, router.Options{MessageTTL: ttl + time.Hour, Linger: 4 * ttl})
				defer r.Close()
				defer other.Close()
				topic := newTopic(t, "item .id")
				publish := func(r *router.Router, body string) {
					if _, err := r.Publish(t.Context(), &topic, router.Publication{Body: []byte(body)}); err != nil {
						t.Error(err)
					}
				}
				g.before = func(put int64) error {
					if put == 3 {
						publish(other, `[{"id":"a"}]`)
					}
					return nil
				}
				publish(r, `[{"id":"a"}]`)
				time.Sleep(c.again - 2*time.Hour)
				publish(r, `[{"id":"b"}]`)
				time.Sleep(2 * time.Hour)
				if c.body != "" {
					publish(r, c.body)
				}
				time.Sleep(ttl - 3*time.Hour)
				for _, node := range []*router.Router{r, other} {
					if body, _, err := node.Document(t.Context(), topic); err != nil || !strings.HasPrefix(string(body), `[{"id":"a"}`) {
						t.Errorf("the document is %s, %v", body, err)
					}
				}
				if g.puts.Load() < 3 {
					t.Error("nothing happened at the same time")
				}
			})
		})
	}
}
