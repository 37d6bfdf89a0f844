package router

import (
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/content"
	"github.com/freshet-io/freshet/internal/fanout"
	"github.com/freshet-io/freshet/internal/jsonpatch"
)

// head is where a topic is: its newest document.
type head struct {
	cursor  fanout.Cursor // counts what happened here; unlike versions it has no gaps and survives epochs
	pos     freshet.Position
	at      time.Time     // when it was published
	learned time.Time     // when this node heard of pos
	state   content.State // nil: no document
}

// revisionLog is a topic's newest document and the revisions that led there. The state is nil exactly if the position is zero, and
// the newest revision, if there is one, is that of the head. It is not safe for concurrent use.
type revisionLog struct {
	head
	carrier *carrier // through which the grid holds the state; nil: the grid holds bytes
	history history
}

// append makes a document the newest. change leads there from the document before.
func (l *revisionLog) append(next head, by *carrier, change jsonpatch.Change, b historyBounds) {
	next.cursor = l.cursor + 1
	l.head, l.carrier = next, by
	l.history.add(revision{cursor: next.cursor, pos: next.pos, state: next.state, change: change}, b)
}

// clear forgets the document and what led there. A cursor is moved all the same: what comes next must reach everybody.
func (l *revisionLog) clear() {
	l.head = head{cursor: l.cursor + 1, learned: l.learned}
	l.carrier = nil
	l.history.reset()
}

// renew takes a state that says the same, and was published later.
func (l *revisionLog) renew(state content.State, at time.Time, by *carrier) {
	l.at, l.carrier = at, by
	if state != l.state {
		l.state = state
		l.history.renew(state)
	}
}

// replace replaces the state by one that says the same in another form, here and in the grid.
func (l *revisionLog) replace(state content.State) {
	if state == nil || state == l.state {
		return
	}
	l.state = state
	l.history.renew(state)
	if l.carrier != nil {
		l.carrier.replace(state)
	}
}

// fold gives up what can be derived from the document.
func (l *revisionLog) fold() {
	l.replace(content.Fold(l.state))
	l.history.trim(foldedBounds)
}

// derived returns how many bytes can be derived from the document.
func (l *revisionLog) derived() int {
	return content.Size(l.state) - content.FoldedSize(l.state) + l.history.size()
}

// size returns how many bytes the log takes. Of the document itself the caller says whether somebody else counts it.
func (l *revisionLog) size(counted bool) int {
	if l.state == nil {
		return 0
	}
	if counted {
		return l.derived()
	}
	return content.Size(l.state) + l.history.size()
}
