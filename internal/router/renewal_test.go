package router_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/router"
)

// TestAnItemThatIsPublishedAgainStays, although nothing changes by it and the topic's other items change all the time.
func TestAnItemThatIsPublishedAgainStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = 24 * time.Hour
		memory := grid.NewMemory(grid.MemoryOptions{MessageTTL: ttl})
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
