package router

import (
	"slices"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/content"
	"github.com/freshet-io/freshet/internal/fanout"
	"github.com/freshet-io/freshet/internal/jsonpatch"
)

// revision is one version of a topic and what led there.
type revision struct {
	cursor fanout.Cursor
	pos    freshet.Position
	state  content.State    // nil once it takes too much room
	change jsonpatch.Change // from the revision before; Whole if no patch leads on from that
}

// history is the newest revisions of a topic, oldest first, all of one epoch.
type history struct {
	revisions  []revision
	patchBytes int
	stateBytes int
	stateless  int // so many of the oldest have no state any more
}

// Bounds of a history. A reader further behind gets a snapshot.
type historyBounds struct{ revisions, patchBytes, stateBytes int }

var (
	fullBounds = historyBounds{revisions: 256, patchBytes: 256 << 10, stateBytes: 1 << 20}
	// Where nobody follows, a short chain of patches is for those who were led here from another node.
	thinBounds   = historyBounds{revisions: 32, patchBytes: 8 << 10}
	foldedBounds = historyBounds{revisions: 1}
)

const (
	itemsCost    = 8 << 10
	revisionSize = 96
)

// size returns how many bytes the history takes. The newest state is not its own.
func (h *history) size() int {
	n := len(h.revisions)
	if n == 0 {
		return 0
	}
	return h.patchBytes + h.stateBytes - h.revisions[n-1].cost() + revisionSize*cap(h.revisions)
}

func (h *history) reset() { *h = history{} }

// seed begins the history with a version that is known by its position only, and from which the next one leads on.
func (h *history) seed(cursor fanout.Cursor, pos freshet.Position) {
	h.reset()
	h.revisions = append(h.revisions, revision{cursor: cursor, pos: pos})
	h.stateless = 1
}

func (h *history) add(r revision, b historyBounds) {
	if n := len(h.revisions); n > 0 && h.revisions[n-1].pos.Epoch != r.pos.Epoch {
		h.reset()
	}
	if r.change.Kind == jsonpatch.Whole {
		r.change.Patch = nil
	}
	h.revisions = append(h.revisions, r)
	h.patchBytes += len(r.change.Patch)
	h.stateBytes += r.cost()
	h.trim(b)
}

// cost estimates what keeping the revision's state takes. States of an item topic share all but the changed items.
func (r *revision) cost() int {
	if _, ok := r.state.(*content.Items); ok {
		return itemsCost + 2*len(r.change.Patch)
	}
	return content.Size(r.state)
}

// trim keeps the bounds. The newest revision stays whatever it takes: the topic holds it anyway.
func (h *history) trim(b historyBounds) {
	last := len(h.revisions) - 1
	for h.stateBytes > b.stateBytes && h.stateless < last {
		old := &h.revisions[h.stateless]
		h.stateBytes -= old.cost()
		old.state = nil
		h.stateless++
	}
	drop := 0
	for drop < last && (len(h.revisions)-drop > b.revisions || h.patchBytes > b.patchBytes) {
		old := &h.revisions[drop]
		h.patchBytes -= len(old.change.Patch)
		if old.state != nil {
			h.stateBytes -= old.cost()
		}
		drop++
	}
	if drop > 0 {
		h.revisions = slices.Delete(h.revisions, 0, drop)
		h.stateless = max(0, h.stateless-drop)
	}
	if cap(h.revisions) > 2*b.revisions {
		h.revisions = slices.Clone(h.revisions)
	}
}

// renew replaces the newest state by one that says the same.
func (h *history) renew(state content.State) {
	if n := len(h.revisions); n > 0 {
		h.stateBytes -= h.revisions[n-1].cost()
		h.revisions[n-1].state = state
		h.stateBytes += h.revisions[n-1].cost()
	}
}

// at returns the index of the revision that a reader at cursor holds, or -1.
func (h *history) at(cursor fanout.Cursor) int {
	if len(h.revisions) == 0 || cursor < h.revisions[0].cursor || cursor > h.revisions[len(h.revisions)-1].cursor {
		return -1
	}
	return int(cursor - h.revisions[0].cursor) // cursors have no gaps
}

// position returns the index of the revision at pos, or -1.
func (h *history) position(pos freshet.Position) int {
	for i := len(h.revisions) - 1; i >= 0; i-- {
		if h.revisions[i].pos == pos {
			return i
		}
	}
	return -1
}
