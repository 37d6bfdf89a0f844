package content

import (
	"bytes"
	"fmt"
	"time"

	"github.com/freshet-io/freshet/internal/jsonpatch"
)

// A State is what a topic holds at one version: a *jsonpatch.Document, or a *Text that was put away, on a snapshot topic, *Items on
// an item topic. A nil State means that nothing was published yet.
type State interface {
	// Bytes returns the document that subscribers see, as compact JSON. It is shared: callers must not modify it.
	Bytes() []byte
	// Len returns the length of that document without making it.
	Len() int
}

// Rules say how the publications of a topic are understood. The zero value is that of a snapshot topic with default limits.
type Rules struct {
	limits jsonpatch.Limits
	idPath []string // nil on a snapshot topic
}

// SnapshotRules are the rules of a topic whose publications are whole documents.
func SnapshotRules(limits jsonpatch.Limits) Rules {
	return Rules{limits: limits}
}

// ItemRules are the rules of a topic whose publications are arrays of items. idPath names the members that lead to an
// item's identifier, outermost first; there must be one at least.
func ItemRules(idPath []string, limits jsonpatch.Limits) Rules {
	if len(idPath) == 0 {
		panic("content: an item topic needs a path to the identifier")
	}
	return Rules{limits: limits, idPath: idPath}
}

// IsItems reports whether these are the rules of an item topic.
func (r Rules) IsItems() bool { return r.idPath != nil }

// A Publication is the effect of what a publisher sent.
type Publication struct {
	State     State            // the new state; the old one if the change is Same
	Change    jsonpatch.Change // from the old state; Whole if there was none
	Discarded int              // items without an identifier

	// Since is when the one of the published items that was not published for longest was published before. It is zero on a
	// snapshot topic, and if none of them was.
	Since time.Time
}

// Publish returns what a publication makes of a state, which may be nil. It takes body over. If body is refused, by a
// *jsonpatch.SyntaxError or a *ItemError, nothing changes.
//
// On an item topic at is when the items were published, for Items.Expire; an equal item is renewed too, so the state may be a
// new one although the change is Same.
func (r Rules) Publish(prev State, body []byte, at time.Time) (Publication, error) {
	if r.IsItems() {
		return r.publishItems(prev, body, at)
	}
	if text, ok := prev.(*Text); ok && bytes.Equal(text.text, body) {
		return Publication{State: prev}, nil // it need not be read to be the same
	}
	doc, change, err := jsonpatch.Next(r.documentOf(prev), body, r.limits)
	if err != nil {
		return Publication{}, err
	}
	if change.Kind == jsonpatch.Same {
		return Publication{State: prev}, nil
	}
	return Publication{State: doc, Change: change}, nil
}

// Diff returns the change from one state of a topic to another. A nil old state differs wholly from any.
func (r Rules) Diff(old, new State) jsonpatch.Change {
	if old == nil {
		return jsonpatch.Change{Kind: jsonpatch.Whole}
	}
	if r.IsItems() {
		return itemsOf(old).Delta(itemsOf(new)).Change()
	}
	a, b := r.documentOf(old), r.documentOf(new)
	if a == nil || b == nil {
		return jsonpatch.Change{Kind: jsonpatch.Whole}
	}
	return jsonpatch.Diff(a, b)
}

// Join returns one change to a state of a snapshot topic, given the patches that lead there, oldest first, without a gap.
func (r Rules) Join(new State, patches [][]byte) jsonpatch.Change {
	return jsonpatch.Join(new.Len(), patches...)
}

// Store returns a state in the form in which it is kept outside this process.
func (r Rules) Store(s State) []byte {
	if items, ok := s.(*Items); ok {
		return items.store()
	}
	return s.Bytes()
}

// Load is the reverse of Store. It takes stored over. What equals prev, which may be nil, is shared with it, and with it the
// history: only states loaded one after another, or made by Publish, can be compared at little cost.
func (r Rules) Load(prev State, stored []byte) (State, error) {
	if r.IsItems() {
		return r.loadItems(itemsOf(prev), stored)
	}
	doc, err := jsonpatch.ParseNext(r.documentOf(prev), stored, r.limits)
	if err != nil {
		return nil, fmt.Errorf("stored document: %w", err)
	}
	return doc, nil
}

// StoreDelta returns what leads from one state to the next in the form in which it is kept outside this process, or nil if only
// the whole can be kept: on a snapshot topic, and if the one was not made from the other.
func (r Rules) StoreDelta(old, new State) []byte {
	before, ok := old.(*Items)
	after, ok2 := new.(*Items)
	if !ok || !ok2 || before == nil {
		return nil
	}
	return after.storeDelta(before)
}

// LoadDelta is the reverse of StoreDelta: it returns the state that follows prev. It takes delta over.
func (r Rules) LoadDelta(prev State, delta []byte) (State, error) {
	items, ok := prev.(*Items)
	if !ok || items == nil {
		return nil, errStored
	}
	return r.loadDelta(items, delta)
}

// documentOf returns the document of a snapshot topic's state, nil for a nil State. A text that cannot be read, which nobody could
// have published, counts as none.
func (r Rules) documentOf(s State) *jsonpatch.Document {
	if text, ok := s.(*Text); ok {
		doc, err := jsonpatch.Parse(text.text, jsonpatch.Limits{MaxDepth: r.limits.MaxDepth})
		if err != nil {
			return nil
		}
		return doc
	}
	doc, _ := s.(*jsonpatch.Document)
	return doc
}

// itemsOf returns an item topic's state, an empty one of its own history for a nil State.
func itemsOf(s State) *Items {
	if items, ok := s.(*Items); ok && items != nil {
		return items
	}
	return newItems()
}
