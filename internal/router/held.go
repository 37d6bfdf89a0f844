package router

import (
	"context"
	"time"

	"github.com/freshet-io/freshet"
)

// Held is a topic that somebody publishes to again and again. While it is held the router stays with it, so that each
// publication costs no look-up, and nothing that topics share.
type Held struct {
	router *Router
	topic  *topic
}

// Hold returns the topic for repeated use. Release it after use.
func (r *Router) Hold(ctx context.Context, topic *freshet.Topic) (*Held, error) {
	t, _, err := r.host(ctx, topic)
	if err != nil {
		return nil, err
	}
	return &Held{r, t}, nil
}

// Publish is Router.Publish, without idempotency keys.
func (h *Held) Publish(ctx context.Context, p Publication) (Outcome, error) {
	p.received = time.Now()
	return h.router.publishTo(ctx, h.topic, p, true)
}

// IsEmpty reports whether there is no document.
func (h *Held) IsEmpty() bool {
	h.topic.mu.Lock()
	defer h.topic.mu.Unlock()
	return h.topic.state == nil
}

// Release gives the topic back. Call it once.
func (h *Held) Release() { h.router.release(h.topic) }
