package content

import (
	"strconv"

	"github.com/freshet-io/freshet/internal/jsonpatch"
)

// wholeAbove is the length up to which a patch is sent even if it is longer than the document.
const wholeAbove = 4096

// A Delta is what changed from one state of an item topic to another. Items are compared once, when it is made; it then
// gives the change of the whole array and of any filtered view.
type Delta struct {
	old, new *Items
	changes  []itemChange // in order of serial
	foreign  bool         // the one state was not made from the other: changes do not count
}

// An itemChange is one item that changed: added if there is no old entry, removed if there is no new one.
type itemChange struct {
	old, new *entry
	edits    jsonpatch.Edits // from old to new, if there are both
}

func (c *itemChange) entry() *entry {
	if c.new != nil {
		return c.new
	}
	return c.old
}

// Delta returns what changed since s. Its cost is in the stretches of items that the states do not share.
func (s *Items) Delta(new *Items) *Delta {
	// A state with fewer serials is older: there is no way back.
	d := &Delta{old: s, new: new, foreign: s.history != new.history || s.serial > new.serial}
	if s == new || d.foreign {
		return d
	}
	s.unshared(new, d.compare)
	return d
}

// unshared calls fn for each pair of stretches of items that the states do not share, in order. One of them may be empty.
func (s *Items) unshared(new *Items, fn func(a, b []entry)) {
	a, b := s.vector.chunks, new.vector.chunks
	for len(a) > 0 && len(b) > 0 {
		switch first, second := a[0], b[0]; {
		case first == second:
			a, b = a[1:], b[1:]
		case first.last() < second.entries[0].serial:
			fn(first.entries, nil)
			a = a[1:]
		default:
			// A chunk never takes items of another, so these two are versions of one.
			fn(first.entries, second.entries)
			a, b = a[1:], b[1:]
		}
	}
	for _, c := range a {
		fn(c.entries, nil)
	}
	for _, c := range b {
		fn(nil, c.entries)
	}
}

func (c *chunk) last() uint64 { return c.entries[len(c.entries)-1].serial }

// compare merges two stretches of items by serial.
func (d *Delta) compare(a, b []entry) {
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].serial < b[0].serial:
			d.changes = append(d.changes, itemChange{old: &a[0]})
			a = a[1:]
		case len(a) == 0 || b[0].serial < a[0].serial:
			d.changes = append(d.changes, itemChange{new: &b[0]})
			b = b[1:]
		default:
			d.update(&a[0], &b[0])
			a, b = a[1:], b[1:]
		}
	}
}

// update adds the change of an item that is in both states, if there is one.
func (d *Delta) update(old, new *entry) {
	if old.id != new.id {
		d.foreign = true // states that were made from the same one, not from one another
		return
	}
	if old.doc == new.doc {
		return
	}
	if edits := jsonpatch.Compare(old.doc, new.doc); !edits.None() {
		d.changes = append(d.changes, itemChange{old, new, edits})
	}
}

// Same reports whether subscribers see no difference.
func (d *Delta) Same() bool { return len(d.changes) == 0 && !d.foreign }

// Change returns the change of the whole array.
func (d *Delta) Change() jsonpatch.Change {
	if d.foreign {
		return jsonpatch.Change{Kind: jsonpatch.Whole}
	}
	w := patchWriter{position: func(e *entry) int { return d.old.vector.position(e.serial) }}
	for i := range d.changes {
		w.changes = append(w.changes, &d.changes[i])
	}
	return w.change(d.new.Len())
}

// A patchWriter writes the patch of an array of items. First come the changes inside items and then the removals from
// the last to the first, all at the positions that the items have in the old array; then the new items, at the end.
type patchWriter struct {
	changes  []*itemChange
	position func(*entry) int // in the old array
}

// change returns the change to an array that will be length bytes long.
func (w *patchWriter) change(length int) jsonpatch.Change {
	if len(w.changes) == 0 {
		return jsonpatch.Change{Kind: jsonpatch.Same}
	}
	patch := w.write(max(length, wholeAbove))
	if patch == nil {
		return jsonpatch.Change{Kind: jsonpatch.Whole}
	}
	return jsonpatch.Change{Kind: jsonpatch.Patched, Patch: patch}
}

// write returns the patch, or nil if it would be longer than limit.
func (w *patchWriter) write(limit int) []byte {
	out := []byte{'['}
	for _, c := range w.changes {
		if c.old != nil && c.new != nil {
			out = c.edits.Append(out, "/"+strconv.Itoa(w.position(c.old)))
		}
		if len(out) >= limit {
			return nil
		}
	}
	for i := len(w.changes) - 1; i >= 0; i-- {
		if c := w.changes[i]; c.new == nil {
			out = appendElement(out, []byte(`{"op":"remove","path":"/`))
			out = strconv.AppendInt(out, int64(w.position(c.old)), 10)
			out = append(out, `"}`...)
		}
	}
	for _, c := range w.changes {
		if c.old == nil {
			out = appendElement(out, []byte(`{"op":"add","path":"/-","value":`))
			out = append(append(out, c.new.doc.Bytes()...), '}')
		}
		if len(out) >= limit {
			return nil
		}
	}
	return append(out, ']')
}
