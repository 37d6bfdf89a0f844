package router

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/content"
	"github.com/freshet-io/freshet/internal/fanout"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/jsonpatch"
	"github.com/freshet-io/freshet/internal/trace"
)

// ErrGone says that a publication changed nothing because its publisher has given up.
var ErrGone = freshet.Errorf(freshet.Unavailable, "The publisher has given up")

// maxWait is how long a publication may have waited and still be published on top of what came from another node meanwhile. Its publisher
// may have given up and published that; a node that was cut off does not hear of it.
const maxWait = time.Second

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
	claim, earlier, err := r.claim(ctx, topic.ID, p)
	if err != nil || earlier != nil {
		return deref(earlier), err
	}
	p.once, p.isRepeated = claim.name+"/"+claim.body, claim.isRepeated
	p.received = p.received.Add(min(claim.waited, claimPatience)) // which is no sign of a cluster that does not answer
	out, err := r.publish(ctx, topic, p)
	if claim.settle(ctx, out, err) {
		r.noted(topic.ID, p.once)
	}
	return out, err
}

// noted lets the next publication to a topic drop a name that need not be remembered with the document any more.
func (r *Router) noted(topicID, once string) {
	r.mu.Lock()
	t := r.topics[topicID]
	r.mu.Unlock()
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.noted = append(t.noted[max(0, len(t.noted)+1-maxNoted):], once)
}

// maxNoted is more than the grid remembers.
const maxNoted = 64

func (r *Router) publish(ctx context.Context, topic *freshet.Topic, p Publication) (Outcome, error) {
	t, _, err := r.host(ctx, topic)
	if err != nil {
		return Outcome{}, err
	}
	defer r.release(t)
	force := topic.Publisher.ForcePublishing == nil || *topic.Publisher.ForcePublishing
	return r.publishTo(ctx, t, &p, force)
}

func (r *Router) publishTo(ctx context.Context, t *topic, p *Publication, force bool) (out Outcome, err error) {
	began := time.Now()
	defer func() { t.note(began, out, err) }()
	defer t.settle()
	t.publishing.Lock()
	defer t.publishing.Unlock()
	if p.isRepeated { // before anything that could refuse it, such as a patch that applies only once
		pos, err := r.grid.Recall(ctx, t.id, p.once)
		if err != nil || !pos.IsZero() {
			return Outcome{Position: pos, Replayed: err == nil}, err
		}
	}
	for race := range maxRaces {
		out, err := t.publishAdmitted(ctx, p, force)
		// What this node holds may be old, so a refusal because of it is looked at twice.
		again := errors.Is(err, grid.ErrConflict) || race == 0 && dependsOnHeld(err)
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
	t.mu.Lock()
	before := t.cursor
	t.mu.Unlock()
	doc, err := t.router.grid.Document(ctx, t.id)
	if err == nil {
		t.learn(doc, before)
	}
	return err
}

func dependsOnHeld(err error) bool {
	kind := freshet.KindOf(err)
	return err != nil && (kind == freshet.PreconditionFailed || kind == freshet.Conflict)
}

// publishAdmitted tries once, as soon as its documents may be read and compared. The caller holds t.publishing.
func (t *topic) publishAdmitted(ctx context.Context, p *Publication, force bool) (Outcome, error) {
	admitted, err := t.router.admit(ctx, cmp.Or(p.Owner, t.app), t.workOf(p), p.received)
	if err != nil {
		return Outcome{}, err
	}
	defer admitted.release()
	return t.publish(ctx, p, force, &admitted)
}

func (t *topic) publish(ctx context.Context, p *Publication, force bool, admitted *admission) (Outcome, error) {
	t.mu.Lock()
	held, pos, at, cursor, noted, learned := t.state, t.pos, t.at, t.cursor, t.noted, t.learned
	t.mu.Unlock()
	if !matches(p.Match, pos) {
		return Outcome{}, freshet.Errorf(freshet.PreconditionFailed, "The newest document is another one than If-Match asks for")
	}
	// After the held state was read, and not before: if a later publication comes between here and Put, Put refuses.
	if p.Gone != nil && p.Gone() {
		return Outcome{}, ErrGone
	}
	if t.overtook(pos, learned, p.received) {
		return Outcome{}, errOld
	}
	now := t.router.grid.Now() // not by our own clock: others decide by theirs when its time is over
	span := trace.From(ctx)
	comparing := span.Child("compare", trace.Internal)
	next, err := t.apply(held, p, now)
	comparing.End()
	if err != nil {
		return Outcome{}, err
	}
	admitted.shrink(content.Size(next.State))
	if !force {
		// When in doubt it is stored, or a subscriber whose node lost its link would never get it.
		if present, err := t.router.grid.Present(ctx, t.id); err == nil && !present {
			return Outcome{Position: pos, Dropped: true}, nil
		}
	}
	doc := grid.Document{Content: t.contentOf(next.State, held), Length: lengthOf(next.State), At: now, Since: t.madeFrom(at), Patch: next.Change.Patch, PatchFrom: pos, Once: p.once, Noted: noted}
	if next.Change.Kind != jsonpatch.Same {
		if err := t.makeRoom(held, next.State); err != nil {
			return Outcome{}, err
		}
	} else {
		if pos.IsZero() {
			return Outcome{}, nil // an empty publication, which changes nothing whatever there is
		}
		since := at
		if !next.Since.IsZero() {
			since = next.Since // items expire one by one, however busy the others are
		}
		if p.once == "" && !t.dueForRenewal(since, now) { // what has a name must be stored, to be known when it comes again
			return Outcome{Position: pos}, t.router.grid.Confirm(ctx, t.id, pos)
		}
		doc.Renewal = true
		if !now.Truncate(time.Millisecond).After(at) {
			doc.At = at.Add(time.Millisecond) // or nobody sees that it is newer; a clock may even be ahead
		}
	}
	doc.Position, err = t.putWithin(ctx, span, p, held, pos, cursor, doc)
	if errors.Is(err, grid.ErrRepeated) {
		return Outcome{Position: doc.Position, Replayed: true}, nil // whoever stored it did not live to say so
	}
	if err != nil {
		return Outcome{}, err
	}
	t.forgetNoted(noted)
	return Outcome{Position: doc.Position, Changed: !doc.Renewal}, nil
}

// errAborted is what a quota is told of a publication that panics: it may be stored.
var errAborted = freshet.Errorf(freshet.Unavailable, "The publication did not come to its end")

// putWithin is put, within the quota.
func (t *topic) putWithin(ctx context.Context, span *trace.Span, p *Publication, held content.State, expected freshet.Position, before fanout.Cursor, doc grid.Document) (pos freshet.Position, err error) {
	settle, err := p.reserve(ctx, held, &doc)
	if err != nil {
		return freshet.Position{}, err
	}
	err = errAborted
	defer func() { settle(err) }()
	pos, err = t.put(ctx, span, expected, before, doc)
	return pos, err
}

// reserve asks for room for a document in place of the held one. One that is only published again takes none.
func (p *Publication) reserve(ctx context.Context, held content.State, doc *grid.Document) (settle func(error), err error) {
	if p.Quota == nil || doc.Renewal {
		return func(error) {}, nil
	}
	return p.Quota.Reserve(ctx, lengthOf(held), doc.Length)
}

func lengthOf(state content.State) int {
	if state == nil {
		return 0
	}
	return state.Len()
}

// put gives a document to the grid in place of the held one, with which the cursor was at before. The caller holds t.publishing.
func (t *topic) put(ctx context.Context, span *trace.Span, expected freshet.Position, before fanout.Cursor, doc grid.Document) (freshet.Position, error) {
	doc.Trace = span.Parent().String()
	storing := span.Child("store", trace.Client)
	defer storing.End()
	pos, err := t.router.grid.Put(ctx, t.id, expected, doc)
	if err != nil {
		storing.Fail("not stored")
		return pos, err
	}
	if s := carriedBy(doc.Content); s != nil {
		s.arrived()
	}
	doc.Position = pos
	t.base = pos
	t.learn(doc, before) // the grid may tell us later, but the next publication must not wait for that
	return pos, nil
}

// forgetNoted drops names that were passed on.
func (t *topic) forgetNoted(names []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.noted = slices.DeleteFunc(slices.Clone(t.noted), func(name string) bool { return slices.Contains(names, name) })
}

// overtook reports whether another node published since a publication was received, too long ago to come after it. What this node published
// itself is in the order in which it came, and so is what it had heard of before. The caller holds t.publishing.
func (t *topic) overtook(pos freshet.Position, learned, received time.Time) bool {
	if pos != t.base {
		t.base = pos
		if !pos.IsZero() { // nothing is newer where nothing is left
			t.moved = learned
		}
	}
	// What was there when the node came to the topic may be newer than a publication that waited long until then.
	return time.Since(received) > maxWait && !t.moved.Before(received) || t.found.Sub(received) > maxWait
}

// dueForRenewal reports whether publishing the same again must be told to the grid, so that the document does not expire. A
// small part of the TTL may be lost; in return a chatty publisher costs nothing.
func (t *topic) dueForRenewal(since, now time.Time) bool {
	return t.router.ttl > 0 && now.Sub(since) > t.router.ttl/16
}

func matches(conditions []Match, pos freshet.Position) bool {
	for _, m := range conditions {
		if m.holds(pos) {
			return true
		}
	}
	return len(conditions) == 0
}

// apply returns what the publication makes of the held state.
func (t *topic) apply(held content.State, p *Publication, now time.Time) (content.Publication, error) {
	began := time.Now()
	next, err := t.applyForm(held, p, now)
	t.router.stats.diff.Observe(time.Since(began))
	if err != nil {
		return next, refusal(err)
	}
	if next.State != nil && next.State.Len() > t.router.limits.MaxBytes {
		return next, freshet.Errorf(freshet.TooLarge, "The topic's document would be longer than %d bytes", t.router.limits.MaxBytes)
	}
	return next, nil
}

func (t *topic) applyForm(held content.State, p *Publication, now time.Time) (content.Publication, error) {
	if p.Form == Whole {
		return t.rules.Publish(held, p.Body, now)
	}
	if t.rules.IsItems() {
		return content.Publication{}, freshet.Errorf(freshet.MethodNotAllowed, "An item topic takes items by POST, not patches")
	}
	if held == nil {
		return content.Publication{}, content.ErrNoDocument // whatever the patch is
	}
	limits := t.patchLimits(p)
	patch, err := p.decode(limits)
	if err != nil {
		return content.Publication{}, err
	}
	return t.rules.Patch(held, patch, limits)
}

// patchLimits are those of a patched document: nobody gets by patches what nobody could send.
func (t *topic) patchLimits(p *Publication) jsonpatch.Limits {
	limits := t.router.limits
	if p.Limit > 0 {
		limits.MaxBytes = min(limits.MaxBytes, p.Limit)
	}
	return limits
}

// refusal gives the errors of content their kind. Their texts say where a body is wrong and may be shown.
func refusal(err error) error {
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
	made, err := (&topic{router: r, rules: r.rules(of)}).apply(nil, &Publication{Body: body}, time.Now())
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

// claim is the right to be the one publication with an idempotency key.
type claim struct {
	grid    grid.Values
	name    string
	body    string // a fingerprint, so that the key cannot be used for something else by mistake
	pending string

	isRepeated bool // somebody had it before, and did not say what became of the publication
	waited     time.Duration
}

const (
	claimWindow = 24 * time.Hour
	pendingMark = "pending" // somebody is at it, or died with it
	unknownMark = "unknown" // nobody is at it any more

	claimPatience = 3 * time.Second // with a publication under way; then its node is taken for dead
	claimLook     = 100 * time.Millisecond
	maxClaimants  = 3
)

// claim returns the claim, or the outcome of the earlier publication that has it.
func (r *Router) claim(ctx context.Context, topicID string, p Publication) (*claim, *Outcome, error) {
	c := &claim{grid: r.grid, name: "publication/" + topicID + "/" + fingerprint([]byte(p.IdempotencyKey)), body: fingerprint(p.Body)}
	c.pending = c.body + " " + pendingMark + " " + freshet.NewID()
	held, err := r.grid.Swap(ctx, c.name, "", c.pending, claimWindow)
	for range maxClaimants {
		if err != nil || held == c.pending {
			return c, nil, err
		}
		body, outcome, _ := strings.Cut(held, " ")
		if body != c.body {
			return nil, nil, freshet.Errorf(freshet.Conflict, "This Idempotency-Key was used for another publication")
		}
		c.isRepeated = true
		switch {
		case strings.HasPrefix(outcome, pendingMark):
			held, err = c.succeed(ctx, held)
		case outcome == unknownMark:
			held, err = r.grid.Swap(ctx, c.name, held, c.pending, claimWindow)
		default:
			pos, _ := freshet.ParsePosition(outcome)
			return nil, &Outcome{Position: pos, Replayed: true}, nil
		}
	}
	e := freshet.Errorf(freshet.Conflict, "A publication with this Idempotency-Key is still under way")
	e.RetryAfter = time.Second
	return nil, nil, e
}

// succeed waits for a publication under way and returns what holds the claim then. One that takes long may have died with its node,
// whether it was stored or not: its claim is taken over. Should it live, the grid stores only one of the two.
func (c *claim) succeed(ctx context.Context, held string) (string, error) {
	began := time.Now()
	defer func() { c.waited += time.Since(began) }()
	for time.Since(began) < claimPatience {
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(claimLook):
		}
		now, err := c.grid.Value(ctx, c.name)
		if err != nil {
			return "", err
		}
		if now == "" {
			held = now // it failed
			break
		}
		if now != held {
			return now, nil
		}
	}
	return c.grid.Swap(ctx, c.name, held, c.pending, claimWindow)
}

// settle records the outcome, or frees the key for another try, and reports whether the outcome is recorded. If it is not, whoever repeats
// the publication finds it in the topic; that is no reason to call a stored publication failed.
func (c *claim) settle(ctx context.Context, out Outcome, failed error) bool {
	now, window := c.body+" "+out.Position.String(), claimWindow
	switch {
	case errors.Is(failed, grid.ErrUnknown), c.isRepeated && isOurs(failed): // which says nothing about the one before
		now = c.body + " " + unknownMark
	case failed != nil:
		now, window = "", 0
	}
	held, err := c.grid.Swap(context.WithoutCancel(ctx), c.name, c.pending, now, window)
	return failed == nil && err == nil && held == now
}

// isOurs reports whether a publication failed for no fault of its own.
func isOurs(err error) bool { return err != nil && judge(Outcome{}, err) == failed }

func fingerprint(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

func deref(o *Outcome) Outcome {
	if o == nil {
		return Outcome{}
	}
	return *o
}
