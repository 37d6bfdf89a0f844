package router

import (
	"context"
	"errors"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/content"
	"github.com/freshet-io/freshet/internal/jsonpatch"
)

// apply returns what a publication makes of a state, which may be nil.
func (r *Router) apply(rules content.Rules, prev content.State, p *Publication, now time.Time) (content.Publication, error) {
	began := time.Now()
	next, err := r.applyForm(rules, prev, p, now)
	r.stats.diff.Observe(time.Since(began))
	if err != nil {
		return next, publisherError(err)
	}
	if next.State != nil && next.State.Len() > r.limits.MaxBytes {
		return next, freshet.Errorf(freshet.TooLarge, "The topic's document would be longer than %d bytes", r.limits.MaxBytes)
	}
	return next, nil
}

func (r *Router) applyForm(rules content.Rules, prev content.State, p *Publication, now time.Time) (content.Publication, error) {
	if p.Form == Whole {
		return rules.Publish(prev, p.Body, now)
	}
	if rules.IsItems() {
		return content.Publication{}, freshet.Errorf(freshet.MethodNotAllowed, "An item topic takes items by POST, not patches")
	}
	if prev == nil {
		return content.Publication{}, content.ErrNoDocument // whatever the patch is
	}
	limits := r.patchLimits(p)
	patch, err := p.decode(limits)
	if err != nil {
		return content.Publication{}, err
	}
	return rules.Patch(prev, patch, limits)
}

// patchLimits are those of a patched document: nobody gets by patches what nobody could send.
func (r *Router) patchLimits(p *Publication) jsonpatch.Limits {
	limits := r.limits
	if p.Limit > 0 {
		limits.MaxBytes = min(limits.MaxBytes, p.Limit)
	}
	return limits
}

// publisherError gives the errors of content their kind. Their texts say where a body is wrong and may be shown.
func publisherError(err error) error {
	if e, ok := errors.AsType[*content.ItemError](err); ok {
		return freshet.Errorf(freshet.Invalid, "The body does not fit the topic: %s", e.Error())
	}
	if errors.Is(err, content.ErrNoDocument) {
		return freshet.Errorf(freshet.Conflict, "Nothing was published to this topic yet; there is no document to patch")
	}
	if errors.Is(err, jsonpatch.ErrTooLong) {
		return freshet.Errorf(freshet.TooLarge, "The patch makes too much of the document: %s", err)
	}
	if e, ok := errors.AsType[*jsonpatch.PatchError](err); ok && (e.Index < 0 || e.Malformed()) {
		return freshet.Errorf(freshet.Invalid, "The patch is not acceptable: %s", e.Error())
	} else if ok {
		return freshet.Errorf(freshet.Conflict, "The patch does not apply: %s", e.Error())
	}
	if e, ok := errors.AsType[*jsonpatch.SyntaxError](err); ok { // after the others: what a patch leads to is not the body
		return freshet.Errorf(freshet.Invalid, "The body is not acceptable JSON: %s", e.Error())
	}
	return err
}

// Preview returns what the first publication to the topic would make its document, and publishes nothing. It takes body over.
func (r *Router) Preview(of *freshet.Topic, body []byte) ([]byte, error) {
	admitted, err := r.admit(context.Background(), of.AppID, len(body), time.Now())
	if err != nil {
		return nil, err
	}
	defer admitted.release()
	made, err := r.apply(r.rules(of), nil, &Publication{Body: body}, time.Now())
	switch {
	case err != nil:
		return nil, err
	case made.State != nil:
		return made.State.Bytes(), nil
	case made.Discarded > 0:
		return nil, freshet.Errorf(freshet.Invalid, "No item has an identifier at the topic's path to it")
	}
	return []byte("[]"), nil // no items
}
