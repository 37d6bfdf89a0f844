package content

import (
	"errors"

	"github.com/freshet-io/freshet/internal/jsonpatch"
)

// A Patch changes a document. It was read once, and may be applied to any number of states.
type Patch interface {
	// Apply returns the changed document, whose length and nesting the limits bound. The old one stays as it is.
	Apply(doc *jsonpatch.Document, limits jsonpatch.Limits) (*jsonpatch.Document, error)
}

// ErrNoDocument says that there is nothing to patch.
var ErrNoDocument = errors.New("there is no document to patch")

// Patch returns what a patch makes of the state of a snapshot topic, within limits that may be narrower than the topic's. The errors are
// ErrNoDocument and those of the patch; then nothing changes.
func (r Rules) Patch(prev State, patch Patch, limits jsonpatch.Limits) (Publication, error) {
	old := r.documentOf(prev)
	if old == nil {
		return Publication{}, ErrNoDocument
	}
	patched, err := patch.Apply(old, limits)
	if err != nil {
		return Publication{}, err
	}
	change := jsonpatch.Diff(old, patched)
	if change.Kind == jsonpatch.Same {
		return Publication{State: prev, Change: change}, nil
	}
	return Publication{State: patched, Change: change}, nil
}
