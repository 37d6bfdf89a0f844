package content

import (
	"math"

	"github.com/freshet-io/freshet/internal/jsonpatch"
)

// Views is the filtered views of one item topic that are in use. It finds the views that a change concerns through the
// identifiers of the changed items, so a revision costs in proportion to the changed items that are seen, however many
// filters there are and however long. It belongs to one goroutine at a time.
type Views struct {
	items *Items
	byKey map[string]*View
	byID  map[string][]listing // which views list an identifier
}

// A listing is a view that lists an identifier, as its n-th.
type listing struct {
	view *View
	nth  int
}

// A View is what subscribers with one filter see. It belongs to its Views.
type View struct {
	views   *Views // whose state it shows: one of its own would be kept as long as nothing in the view changes
	filter  Filter
	key     string
	refs    int
	places  []int         // for each identifier of the filter, where in Views.byID its listing stands
	serials []uint64      // of the items in the view, in order
	bytes   int           // of their text
	pending []*itemChange // collected while Advance runs
	late    bool          // it shows an older state, and is made anew when somebody looks
	text    []byte        // the document; nil if it has to be made
}

// A ViewChange is how the view of one filter changes.
type ViewChange struct {
	View   *View
	Change jsonpatch.Change // Patched, or Whole: then View.Bytes is to be sent
}

// NewViews returns the views of a topic in this state.
func NewViews(items *Items) *Views {
	return &Views{items: items, byKey: make(map[string]*View), byID: make(map[string][]listing)}
}

// Open returns the view of a filter. Each Open needs a Close; those with equal filters get the same view.
func (v *Views) Open(f Filter) *View {
	key := f.Key()
	view := v.byKey[key]
	if view == nil {
		view = &View{views: v, filter: f, key: key, places: make([]int, len(f.ids))}
		view.reload()
		v.byKey[key] = view
		for n, id := range f.ids {
			view.places[n] = len(v.byID[id])
			v.byID[id] = append(v.byID[id], listing{view, n})
		}
	}
	view.refs++
	return view
}

// Close gives a view back. The last one to do so ends it.
func (v *Views) Close(view *View) {
	if view.refs--; view.refs > 0 {
		return
	}
	delete(v.byKey, view.key)
	for n, id := range view.filter.ids {
		v.unlist(id, view.places[n])
	}
}

// unlist takes a listing out by putting the last one in its place.
func (v *Views) unlist(id string, at int) {
	list := v.byID[id]
	last := len(list) - 1
	list[at] = list[last]
	list[at].view.places[list[at].nth] = at
	list[last] = listing{}
	if last == 0 {
		delete(v.byID, id)
		return
	}
	v.byID[id] = list[:last]
}

// Len returns the number of views.
func (v *Views) Len() int { return len(v.byKey) }

// Advance moves all views to a new state and returns the changes of those that it concerns. The delta must begin at the state
// that the views are in.
func (v *Views) Advance(d *Delta) []ViewChange {
	changes, _ := v.AdvanceWithin(d, math.MaxInt)
	return changes
}

// AdvanceWithin is Advance if that takes no more than so many changes of items, each counted in every view that shows it. Otherwise
// the views that are concerned come late: their changes are found by FilteredDiff, when there is time. So do views that were late
// before and were not looked at since.
func (v *Views) AdvanceWithin(d *Delta, most int) (changes []ViewChange, late []*View) {
	v.items = d.new
	if d.foreign {
		return v.reloadAll(most)
	}
	var concerned []*View
	work := 0
	for i := range d.changes {
		c := &d.changes[i]
		for _, l := range v.byID[c.entry().id] {
			if work++; work > most {
				if !l.view.late {
					l.view.late = true
					late = append(late, l.view)
				}
				continue
			}
			if l.view.late {
				continue
			}
			if len(l.view.pending) == 0 {
				concerned = append(concerned, l.view)
			}
			l.view.pending = append(l.view.pending, c)
		}
	}
	changes = make([]ViewChange, 0, len(concerned))
	for _, view := range concerned {
		if view.late {
			view.settle()
			continue
		}
		changes = append(changes, ViewChange{view, view.advance()})
	}
	return changes, late
}

// settle forgets the pending changes, which were made or are not needed.
func (w *View) settle() {
	clear(w.pending) // or the item of before is kept
	w.text, w.pending = nil, w.pending[:0]
}

// reloadAll makes all views anew.
func (v *Views) reloadAll(most int) (changes []ViewChange, late []*View) {
	changes = make([]ViewChange, 0, len(v.byKey))
	for _, view := range v.byKey {
		if most -= len(view.filter.ids); most < 0 {
			if !view.late {
				view.late = true
				late = append(late, view)
			}
			continue
		}
		view.reload()
		changes = append(changes, ViewChange{view, jsonpatch.Change{Kind: jsonpatch.Whole}})
	}
	return changes, late
}

// CatchUp makes a late view show the present state. Looking at it does so, too.
func (w *View) CatchUp() {
	if w.late {
		w.reload()
	}
}

// reload makes a view from scratch.
func (w *View) reload() {
	items := w.views.items
	w.late = false
	w.text, w.serials, w.bytes = nil, w.filter.serials(items), 0
	for _, serial := range w.serials {
		w.bytes += items.vector.entry(serial).doc.Len()
	}
}

// advance applies the pending changes to the view and returns them as one change.
func (w *View) advance() jsonpatch.Change {
	before := w.serials
	count, added := len(before), 0
	for _, c := range w.pending {
		if c.old != nil {
			w.bytes -= c.old.doc.Len()
			count--
		}
		if c.new != nil {
			w.bytes += c.new.doc.Len()
			count++
		}
		if c.old == nil || c.new == nil {
			added++
		}
	}
	p := patchWriter{changes: w.pending, position: func(e *entry) int { return find(before, e.serial) }}
	change := p.change(arrayLen(count, w.bytes))
	if added > 0 {
		w.serials = w.renumber(count)
	}
	w.settle()
	return change
}

// renumber returns the serials of the view after its pending changes.
func (w *View) renumber(count int) []uint64 {
	after := make([]uint64, 0, count)
	gone := make(map[uint64]bool)
	for _, c := range w.pending {
		if c.new == nil {
			gone[c.old.serial] = true
		}
	}
	for _, serial := range w.serials {
		if !gone[serial] {
			after = append(after, serial)
		}
	}
	for _, c := range w.pending {
		if c.old == nil {
			after = append(after, c.new.serial)
		}
	}
	return after
}

// Bytes returns the document of the view. It is shared: callers must not modify it.
func (w *View) Bytes() []byte {
	w.CatchUp()
	if w.text == nil {
		w.text = w.views.items.subset(w.serials)
	}
	return w.text
}

// Len is the length of Bytes.
func (w *View) Len() int {
	w.CatchUp()
	return arrayLen(len(w.serials), w.bytes)
}
