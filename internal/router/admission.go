package router

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/memory"
)

// Reading and comparing long documents takes much memory for a moment, and a processor. A semaphore admits those who do it, by the
// bytes of their documents. Short documents, which nearly all are, need no admission.

const (
	// smallWork is how many bytes of documents are read and compared without admission.
	smallWork = 64 << 10
	// workFactor is how many bytes of memory are reckoned for each byte of documents that is read and compared.
	workFactor = 30
	busyFor    = 2 * time.Second
)

// An admission is the right to read and compare long documents. Whoever has one waits for no other publication, since those may wait
// for an admission. The zero value is that of short documents.
type admission struct {
	semaphore *memory.Semaphore
	weight    int64 // of what is taken
	waits     bool  // the work is done; only the result still takes memory
}

// admit waits until so many bytes of documents may be read and compared, for somebody who has waited since then. release must
// be called.
func (r *Router) admit(ctx context.Context, owner string, bytes int, since time.Time) (admission, error) {
	if bytes < smallWork || r.work == nil {
		return admission{}, nil
	}
	weight := int64(bytes)
	switch err := r.work.AcquireSince(ctx, owner, weight, since); {
	case errors.Is(err, memory.ErrBusy):
		r.stats.busy.Add(1)
		e := freshet.Errorf(freshet.Unavailable, "Too many long documents are being published at once; try again")
		e.RetryAfter = busyFor
		return admission{}, r.backpressure(e)
	case err != nil:
		return admission{}, err
	}
	return admission{semaphore: r.work, weight: weight}, nil
}

// tryAdmit is admit for those who cannot wait, and can do without.
func (r *Router) tryAdmit(bytes int) (a admission, ok bool) {
	if bytes < smallWork || r.work == nil {
		return admission{}, true
	}
	weight := int64(bytes)
	if !r.work.TryAcquire(weight) {
		return admission{}, false
	}
	return admission{semaphore: r.work, weight: weight}, true
}

// shrink ends the reading and comparing. What was made takes so many bytes until it is stored or refused, which may take long: the
// grid, or who counts for a quota, may not answer.
func (a *admission) shrink(bytes int) {
	if a.semaphore == nil || a.waits {
		return
	}
	kept := min(int64(bytes)/workFactor, a.weight)
	a.semaphore.Rest(a.weight, kept)
	a.weight, a.waits = kept, true
}

func (a *admission) release() {
	switch {
	case a.semaphore == nil:
	case a.waits:
		a.semaphore.Wake(a.weight)
	default:
		a.semaphore.Release(a.weight)
	}
}

// workOf is how many bytes of documents a publication has us read and compare.
func (t *topic) workOf(p *Publication) int {
	if t.rules.IsItems() {
		return 2 * len(p.Body) // other items than those published are not looked at
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.log.state == nil {
		return len(p.Body)
	}
	return len(p.Body) + t.log.state.Len()
}

// backpressure logs that a publication is refused for lack of memory, so many times a second at most: whoever causes it could fill
// the log.
func (r *Router) backpressure(e *freshet.Error) error {
	r.refusals.Log(slog.LevelWarn, "publication refused for lack of memory", "reason", e.Msg)
	e.Logged = true
	return e
}
