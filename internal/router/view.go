package router

import (
	"slices"

	"github.com/freshet-io/freshet/internal/content"
	"github.com/freshet-io/freshet/internal/jsonpatch"
)

// Filtered feeds are found through the items that changed, so a revision costs what the feeds cost that see a difference.
// A filtered feed has a view exactly while the topic has a document. All methods here run with topic.mu held.

func (f *Feed) filtered() bool { return !f.variant.Filter.IsZero() }

func (t *topic) openView(f *Feed) {
	items, ok := t.state.(*content.Items)
	if !ok {
		return
	}
	if t.views == nil {
		t.views, t.byView = content.NewViews(items), make(map[*content.View][]*Feed)
	}
	f.view = t.views.Open(f.variant.Filter.content())
	t.byView[f.view] = append(t.byView[f.view], f)
}

func (t *topic) closeView(f *Feed) {
	if f.view == nil {
		return
	}
	feeds := t.byView[f.view]
	if i := slices.Index(feeds, f); i >= 0 {
		feeds = slices.Delete(feeds, i, i+1)
	}
	t.byView[f.view] = feeds
	if len(feeds) == 0 {
		delete(t.byView, f.view)
	}
	t.views.Close(f.view)
	f.view = nil
	if t.views.Len() == 0 {
		t.views, t.byView = nil, nil
	}
}

// rebuildViews begins all views anew, after a break in the topic's history.
func (t *topic) rebuildViews() {
	t.views, t.byView = nil, nil
	for _, f := range t.feeds {
		f.view = nil
		f.setLateness(onTime)
		if f.filtered() {
			t.openView(f)
		}
	}
}

// delta is what changes for the views when state becomes the newest. nil: they must begin anew.
func (t *topic) delta(state content.State) *content.Delta {
	old, ok := t.state.(*content.Items)
	if !ok || t.views == nil {
		return nil
	}
	return old.Delta(state.(*content.Items))
}

// advanceViews moves the views to the newest state.
func (t *topic) advanceViews(delta *content.Delta) {
	if !t.rules.IsItems() {
		return
	}
	if delta != nil {
		changes, late := t.views.AdvanceWithin(delta, t.router.viewWork)
		for _, vc := range changes {
			for _, f := range t.byView[vc.View] {
				if !f.isLate() { // it is given all at once
					f.add(vc.Change)
				}
			}
		}
		for _, view := range late {
			for _, f := range t.byView[view] {
				f.postpone()
			}
		}
		t.bringLate()
		return
	}
	t.rebuildViews()
	for _, feeds := range t.byView {
		for _, f := range feeds {
			f.add(jsonpatch.Change{Kind: jsonpatch.Whole})
		}
	}
}
