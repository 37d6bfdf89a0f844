package router

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/content"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/jsonpatch"
	"github.com/freshet-io/freshet/internal/trace"
)

// ErrGone says that a publication changed nothing because its publisher has given up.
var ErrGone = freshet.Errorf(freshet.Unavailable, "The publisher has given up")

var errOld = &freshet.Error{Kind: freshet.Unavailable, RetryAfter: time.Second,
	Msg: "Nothing was published: the cluster took long to answer, and another publication was faster. Try again"}

// maxRaces bounds how often a publication starts over because others were faster.
const maxRaces = 20

// Publish makes a publication the newest document of its topic. When it returns without an error, the publication is in the
// grid, in order; otherwise it changed nothing. The topic's settings must be effective ones.
func (r *Router) Publish(ctx context.Context, topic *freshet.Topic, p Publication) (Outcome, error) {
	p.received = time.Now()
	if p.IdempotencyKey == "" {
		return r.publish(ctx, topic, p)
	}
	return r.publishOnce(ctx, topic, p)
}

func (r *Router) publish(ctx context.Context, topic *freshet.Topic, p Publication) (Outcome, error) {
	t, _, err := r.host(ctx, topic)
	if err != nil {
		return Outcome{}, err
	}
	defer r.release(t)
	force := topic.Publisher.ForcePublishing == nil || *topic.Publisher.ForcePublishing
	return r.publishTo(ctx, t, &p, force)
}

// publishTo tries until the grid takes the publication, or something else than a race against another node keeps it from that.
func (r *Router) publishTo(ctx context.Context, t *topic, p *Publication, force bool) (out Outcome, err error) {
	began := time.Now()
	defer func() { t.note(began, out, err) }()
	defer t.settle()
	t.sequencer.mu.Lock()
	defer t.sequencer.mu.Unlock()
	if p.isRepeated { // before anything that could refuse it, such as a patch that applies only once
		pos, err := r.grid.Recall(ctx, t.id, p.once)
		if err != nil || !pos.IsZero() {
			return Outcome{Position: pos, Replayed: err == nil}, err
		}
	}
	for race := range maxRaces {
		out, err := t.publishAdmitted(ctx, p, force)
		// What this node holds may be old, so a refusal because of it is looked at twice.
		again := errors.Is(err, grid.ErrConflict) || race == 0 && dependsOnHead(err)
		if !again {
			return out, err
		}
		if err := t.look(ctx); err != nil {
			return Outcome{}, err
		}
	}
	return Outcome{}, freshet.Errorf(freshet.Unavailable, "Too many publications to this topic at once; try again")
}

// look reads the newest document.
func (t *topic) look(ctx context.Context) error {
	before := t.head().cursor
	doc, err := t.router.grid.Document(ctx, t.id)
	if err == nil {
		t.learn(doc, before)
	}
	return err
}

func dependsOnHead(err error) bool {
	kind := freshet.KindOf(err)
	return err != nil && (kind == freshet.PreconditionFailed || kind == freshet.Conflict)
}

// The methods below run with t.sequencer.mu held.

// publishAdmitted tries once, as soon as its documents may be read and compared.
func (t *topic) publishAdmitted(ctx context.Context, p *Publication, force bool) (Outcome, error) {
	admitted, err := t.router.admit(ctx, cmp.Or(p.Owner, t.app), t.workOf(p), p.received)
	if err != nil {
		return Outcome{}, err
	}
	defer admitted.release()
	return t.tryPublish(ctx, p, force, &admitted)
}

// tryPublish publishes on top of the newest document that this node knows. If there is a newer one, the error is grid.ErrConflict.
func (t *topic) tryPublish(ctx context.Context, p *Publication, force bool, admitted *admission) (Outcome, error) {
	head := t.head()
	if err := t.check(p, &head); err != nil {
		return Outcome{}, err
	}
	now := t.router.grid.Now() // not by our own clock: others decide by theirs when its time is over
	span := trace.From(ctx)
	comparing := span.Child("compare", trace.Internal)
	next, err := t.router.apply(t.rules, head.state, p, now)
	comparing.End()
	if err != nil {
		return Outcome{}, err
	}
	admitted.shrink(content.Size(next.State))
	if !force {
		// When in doubt it is stored, or a subscriber whose node lost its link would never get it.
		if present, err := t.router.grid.Present(ctx, t.id); err == nil && !present {
			return Outcome{Position: head.pos, Dropped: true}, nil
		}
	}
	doc := t.documentAfter(&head, next.State, next.Change)
	doc.At, doc.Once, doc.Noted = now, p.once, t.recorded.list()
	switch {
	case next.Change.Kind != jsonpatch.Same:
		if err := t.makeRoom(head.state, next.State); err != nil {
			return Outcome{}, err
		}
	case head.pos.IsZero():
		return Outcome{}, nil // an empty publication, which changes nothing whatever there is
	case p.once == "" && !t.isRenewalDue(&head, next.Since, now): // what has a name must be stored, to be known when it comes again
		return Outcome{Position: head.pos}, t.router.grid.Confirm(ctx, t.id, head.pos)
	default:
		makeRenewal(&doc, head.at)
	}
	return t.store(ctx, span, p, &head, doc)
}

// check refuses a publication that must not be published on the head.
func (t *topic) check(p *Publication, head *head) error {
	if !matches(p.Match, head.pos) {
		return freshet.Errorf(freshet.PreconditionFailed, "The newest document is another one than If-Match asks for")
	}
	// After the head was read, and not before: if a later publication comes between here and Put, Put refuses.
	if p.Gone != nil && p.Gone() {
		return ErrGone
	}
	if t.sequencer.isOvertaken(head.pos, head.learned, p.received, time.Now()) {
		return errOld
	}
	return nil
}

func matches(conditions []Match, pos freshet.Position) bool {
	for _, m := range conditions {
		if m.holds(pos) {
			return true
		}
	}
	return len(conditions) == 0
}

// isRenewalDue reports whether publishing the same again must be told to the grid, so that the document does not expire. A
// small part of the TTL may be lost; in return a chatty publisher costs nothing. oldest is when the oldest of the published items was
// published before, if any: items expire one by one, however busy the others are.
func (t *topic) isRenewalDue(head *head, oldest, now time.Time) bool {
	since := head.at
	if !oldest.IsZero() {
		since = oldest
	}
	return t.router.ttl > 0 && now.Sub(since) > t.router.ttl/16
}

// makeRenewal makes a document one that says the same as that of before, later.
func makeRenewal(doc *grid.Document, before time.Time) {
	doc.Renewal = true
	if !doc.At.Truncate(time.Millisecond).After(before) {
		doc.At = before.Add(time.Millisecond) // or nobody sees that it is newer; a clock may even be ahead
	}
}

// documentAfter is what the grid gets to store after the head.
func (t *topic) documentAfter(head *head, next content.State, change jsonpatch.Change) grid.Document {
	doc := grid.Document{
		Content: newCarrier(t.rules, next, head.state), Length: lengthOf(next), Patch: change.Patch, PatchFrom: head.pos,
	}
	if t.rules.IsItems() {
		doc.Since = head.at // a snapshot is the same whenever it was published; items tell when each of them was
	}
	return doc
}

func lengthOf(state content.State) int {
	if state == nil {
		return 0
	}
	return state.Len()
}

// store puts the document of a publication, and says what became of it.
func (t *topic) store(ctx context.Context, span *trace.Span, p *Publication, head *head, doc grid.Document) (Outcome, error) {
	pos, err := t.putWithin(ctx, span, p, head, doc)
	switch {
	case errors.Is(err, grid.ErrRepeated):
		return Outcome{Position: pos, Replayed: true}, nil // whoever stored it did not live to say so
	case err != nil:
		return Outcome{}, err
	}
	t.recorded.drop(doc.Noted)
	return Outcome{Position: pos, Changed: !doc.Renewal}, nil
}

// errAborted is what a quota is told of a publication that panics: it may be stored.
var errAborted = freshet.Errorf(freshet.Unavailable, "The publication did not come to its end")

// putWithin is put, within the quota.
func (t *topic) putWithin(ctx context.Context, span *trace.Span, p *Publication, head *head, doc grid.Document) (pos freshet.Position, err error) {
	settle, err := p.reserve(ctx, head.state, &doc)
	if err != nil {
		return freshet.Position{}, err
	}
	err = errAborted
	defer func() { settle(err) }()
	pos, err = t.put(ctx, span, head, doc)
	return pos, err
}

// reserve asks for room for a document in place of the one before. One that is only published again takes none.
func (p *Publication) reserve(ctx context.Context, before content.State, doc *grid.Document) (settle func(error), err error) {
	if p.Quota == nil || doc.Renewal {
		return func(error) {}, nil
	}
	return p.Quota.Reserve(ctx, lengthOf(before), doc.Length)
}

// put gives a document to the grid in place of the head.
func (t *topic) put(ctx context.Context, span *trace.Span, head *head, doc grid.Document) (freshet.Position, error) {
	doc.Trace = span.Parent().String()
	storing := span.Child("store", trace.Client)
	defer storing.End()
	pos, err := t.router.grid.Put(ctx, t.id, head.pos, doc)
	if err != nil {
		storing.Fail("not stored")
		return pos, err
	}
	if c := carrierOf(doc.Content); c != nil {
		c.arrived()
	}
	doc.Position = pos
	t.sequencer.stored(pos)
	t.learn(doc, head.cursor) // the grid may tell us later, but the next publication must not wait for that
	return pos, nil
}
