package router

import (
	"context"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/content"
	"github.com/freshet-io/freshet/internal/jsonpatch"
)

// Form says how the body of a publication relates to the document before it.
type Form int

// The forms of a publication.
const (
	Whole      Form = iota // a document, or an array of items
	JSONPatch              // operations of RFC 6902
	MergePatch             // a merge patch of RFC 7396
)

// Publication is what a publisher sent.
type Publication struct {
	Body []byte // the router takes it over
	Form Form

	// Owner is the account that publishes, so that accounts are served fairly where long documents wait; empty: the app.
	Owner string

	// Limit, unless 0, bounds what a patch may make of the document, in bytes.
	Limit int

	// Match, unless empty, lets the publication pass only if the document before it is one of these.
	Match []Match

	// IdempotencyKey, unless empty, makes repetitions of the same publication within 24 hours do nothing.
	IdempotencyKey string
	once           string // the same for all its repetitions
	isRepeated     bool   // it may have been stored before

	// Quota, unless nil, is asked for room before the publication changes how long the topic's document is.
	Quota Quota

	// Gone, unless nil, reports whether the publisher has given up. It is asked right before the publication takes effect: what
	// was given up must not come after what was published since.
	Gone func() bool

	received time.Time

	// The body of a patch is read at most once, however many attempts it takes. Both are set by decode.
	patch    content.Patch
	patchErr error
}

// decode returns the patch that the body is.
func (p *Publication) decode(limits jsonpatch.Limits) (content.Patch, error) {
	if p.patch == nil { // not even one that cannot be read
		if p.Form == MergePatch {
			p.patch, p.patchErr = jsonpatch.ParseMergePatch(p.Body, limits)
		} else {
			p.patch, p.patchErr = jsonpatch.ParsePatch(p.Body, limits)
		}
	}
	return p.patch, p.patchErr
}

// Quota limits how long documents may be together. What it refuses is of kind freshet.DocumentLimit.
type Quota interface {
	// Reserve makes room for a document of length after in place of one of length before, in bytes. settle must be called with
	// what became of it: nil once it is stored, otherwise why it is not, where freshet.Unavailable means that it may be.
	Reserve(ctx context.Context, before, after int) (settle func(error), err error)
}

// Match is a condition on the document that a publication replaces.
type Match struct {
	Any     bool   // there is one at all
	Epoch   string // empty: whatever epoch
	Version freshet.Version
}

func (m Match) holds(p freshet.Position) bool {
	if p.IsZero() {
		return false
	}
	return m.Any || m.Version == p.Version && (m.Epoch == "" || m.Epoch == p.Epoch)
}

// Outcome is what became of a publication.
type Outcome struct {
	// Position is where the topic is now; zero if it has no document.
	Position freshet.Position
	Changed  bool // the publication made a new version
	Dropped  bool // nobody is subscribed, and the topic publishes only for subscribers
	Replayed bool // an earlier publication had the same idempotency key; Position is its outcome
}
