package router

import (
	"github.com/freshet-io/freshet/internal/content"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/jsonpatch"
)

// Documents of other nodes come as bytes. They are read and compared here, with topic.mu held, and so without waiting: where others
// read long documents at the time, readers get the whole document instead of a patch.

// stateOf returns the state of a document in the grid, and false if it cannot be read.
func (t *topic) stateOf(doc grid.Document) (content.State, bool) {
	if c := carrierOf(doc.Content); c != nil {
		return c.load(), true
	}
	admitted, ok := t.router.tryAdmit(t.loading(doc.Content))
	if !ok {
		// The grid waits for nobody. What came is told to readers whole, or by the patch that came with it.
		return content.NewText(doc.Content.Bytes()), true
	}
	defer admitted.release()
	state, err := t.load(doc.Content)
	if err != nil {
		// What cannot be read cannot be served; the next publication repairs it.
		t.router.log.Error("document in the grid is unreadable", "topic", t.id, "position", doc.Position.String(), "err", err)
		return nil, false
	}
	return state, true
}

// loading is how many bytes of documents it takes to load the content of a snapshot topic. Items are not compared here, and cannot be
// held without being read.
func (t *topic) loading(c grid.Content) int {
	if _, steps := c.(grid.Steps); steps || t.rules.IsItems() {
		return 0
	}
	return len(c.Bytes())
}

// load makes the state that another node put into the grid.
func (t *topic) load(c grid.Content) (state content.State, err error) {
	steps, ok := c.(grid.Steps)
	if !ok {
		return t.rules.Load(t.log.state, c.Bytes())
	}
	state = t.log.state
	if steps.Base != nil {
		if state, err = t.rules.Load(t.log.state, steps.Base); err != nil {
			return nil, err
		}
	}
	for _, delta := range steps.Deltas {
		if state, err = t.rules.LoadDelta(state, delta); err != nil {
			return nil, err
		}
	}
	return state, nil
}

// compare returns the change from one state to another: all of it, if they are long and others are comparing.
func (t *topic) compare(old, new content.State) jsonpatch.Change {
	if old == nil || new == nil {
		return jsonpatch.Change{Kind: jsonpatch.Whole}
	}
	if !t.rules.IsItems() {
		admitted, ok := t.router.tryAdmit(old.Len() + new.Len())
		if !ok {
			return jsonpatch.Change{Kind: jsonpatch.Whole}
		}
		defer admitted.release()
	}
	return t.rules.Diff(old, new)
}

// compareNewest is compare with the newest state, for several readers who are behind.
func (t *topic) compareNewest(old content.State) jsonpatch.Change {
	admitted, ok := t.router.tryAdmit(old.Len() + t.log.state.Len())
	if !ok {
		return jsonpatch.Change{Kind: jsonpatch.Whole}
	}
	defer admitted.release()
	t.unfold()
	return t.rules.Diff(old, t.log.state)
}

// since is the one change that leads from the i-th revision to the newest.
func (t *topic) since(i int) jsonpatch.Change {
	h := &t.log.history
	from, to := &h.revisions[i], &h.revisions[len(h.revisions)-1]
	if t.rules.IsItems() {
		// A nil state differs wholly: an item topic's patches cannot be joined into anything better than its states tell.
		return t.rules.Diff(from.state, to.state)
	}
	if from.state != nil {
		return t.compareNewest(from.state) // shorter than any joined patches, and sooner done
	}
	patches := make([][]byte, 0, len(h.revisions)-i-1)
	for _, r := range h.revisions[i+1:] {
		if r.change.Kind == jsonpatch.Whole {
			return r.change
		}
		patches = append(patches, r.change.Patch)
	}
	return t.rules.Join(to.state, patches)
}
