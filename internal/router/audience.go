package router

import (
	"slices"
	"time"

	"github.com/freshet-io/freshet/internal/content"
	"github.com/freshet-io/freshet/internal/jsonpatch"
	"github.com/freshet-io/freshet/internal/trace"
)

// audience is the feeds of a topic that are in use. Filtered ones are found through the items that changed, so a revision costs
// what the feeds cost that see a difference. A filtered feed has a view exactly while the topic has a document. It is guarded by
// topic.mu.
type audience struct {
	feeds  map[Variant]*Feed
	whole  []*Feed        // those without a filter: every revision concerns them
	views  *content.Views // nil unless there are filtered feeds and a document
	byView map[*content.View][]*Feed
	left   time.Time // when the last reader left; zero: there was none
}

// followedFor is how long after its last reader left a topic keeps everything that readers who come back need.
const followedFor = time.Minute

// isFollowedLately reports whether somebody follows the topic, or may come back.
func (a *audience) isFollowedLately(now time.Time) bool {
	return len(a.feeds) > 0 || !a.left.IsZero() && now.Sub(a.left) < followedFor
}

// add adds a feed of a variant that there was none of. state is the newest one.
func (a *audience) add(f *Feed, state content.State) {
	a.feeds[f.variant] = f
	if f.filtered() {
		a.openView(f, state)
	} else {
		a.whole = append(a.whole, f)
	}
}

// remove removes a feed that nobody reads any more.
func (a *audience) remove(f *Feed, now time.Time) {
	delete(a.feeds, f.variant)
	a.left = now
	if f.filtered() {
		a.closeView(f)
	} else {
		a.whole = slices.DeleteFunc(a.whole, func(other *Feed) bool { return other == f })
	}
}

func (a *audience) openView(f *Feed, state content.State) {
	items, ok := state.(*content.Items)
	if !ok {
		return
	}
	if a.views == nil {
		a.views, a.byView = content.NewViews(items), make(map[*content.View][]*Feed)
	}
	f.view = a.views.Open(f.variant.Filter.content())
	a.byView[f.view] = append(a.byView[f.view], f)
}

func (a *audience) closeView(f *Feed) {
	if f.view == nil {
		return
	}
	feeds := a.byView[f.view]
	if i := slices.Index(feeds, f); i >= 0 {
		feeds = slices.Delete(feeds, i, i+1)
	}
	a.byView[f.view] = feeds
	if len(feeds) == 0 {
		delete(a.byView, f.view)
	}
	a.views.Close(f.view)
	f.view = nil
	if a.views.Len() == 0 {
		a.views, a.byView = nil, nil
	}
}

// rebuildViews begins all views anew, after a break in the topic's history.
func (a *audience) rebuildViews(state content.State) {
	a.views, a.byView = nil, nil
	for _, f := range a.feeds {
		f.view = nil
		f.setFreshness(fresh)
		if f.filtered() {
			a.openView(f, state)
		}
	}
}

// delta is what changes for the views when a state becomes the newest. nil: they must begin anew.
func (a *audience) delta(old, new content.State) *content.Delta {
	items, ok := old.(*content.Items)
	if !ok || a.views == nil {
		return nil
	}
	return items.Delta(new.(*content.Items))
}

// deliverFiltered gives the newest revision of an item topic to its filtered feeds. The caller holds t.mu.
func (t *topic) deliverFiltered(delta *content.Delta, delivery *trace.Delivery) {
	a := &t.audience
	if delta == nil {
		a.rebuildViews(t.log.state)
		for _, feeds := range a.byView {
			for _, f := range feeds {
				f.add(jsonpatch.Change{Kind: jsonpatch.Whole}, delivery)
			}
		}
		return
	}
	changes, deferred := a.views.AdvanceWithin(delta, t.router.viewWork)
	for _, vc := range changes {
		for _, f := range a.byView[vc.View] {
			if !f.isStale() { // a stale one gets all at once
				f.add(vc.Change, delivery)
			}
		}
	}
	for _, view := range deferred {
		for _, f := range a.byView[view] {
			f.postpone()
		}
	}
	t.startUpdates()
}
