package router

import (
	"context"
	"time"

	"github.com/freshet-io/freshet"
)

// Writer publishes to one topic again and again. While it is open the router follows the topic, so a publication costs no look-up
// and takes no lock that topics share.
type Writer struct {
	router *Router
	topic  *topic
}

// OpenWriter returns a Writer for the topic. Close it after use.
func (r *Router) OpenWriter(ctx context.Context, topic *freshet.Topic) (*Writer, error) {
	t, _, err := r.host(ctx, topic)
	if err != nil {
		return nil, err
	}
	return &Writer{r, t}, nil
}

// Publish is Router.Publish, without idempotency keys.
func (w *Writer) Publish(ctx context.Context, p Publication) (Outcome, error) {
	p.received = time.Now()
	return w.router.publishTo(ctx, w.topic, &p, true)
}

// IsEmpty reports whether the topic has no document.
func (w *Writer) IsEmpty() bool {
	w.topic.mu.Lock()
	defer w.topic.mu.Unlock()
	return w.topic.log.state == nil
}

// Close lets the router leave the topic. Call it once.
func (w *Writer) Close() { w.router.release(w.topic) }
