package subscribe

import (
	"iter"
	"sync"
	"sync/atomic"

	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/usage"
)

// recheckQueue collects what has to be looked at again.
//
// It also closes the gap between asking the catalog and joining: a notice in between finds no stream to end. So a subscriber takes the
// number of notices before it asks, and one that joined after the number changed is suspect.
type recheckQueue struct {
	wake    chan struct{} // holds one
	all     chan struct{} // holds one; everybody has to be looked at
	notices atomic.Uint64 // of permissions, so far

	// Guarded by mu.
	mu   sync.Mutex
	work recheckWork
}

// recheckWork is what a queue holds at one moment.
type recheckWork struct {
	notices  map[grid.Notice]struct{}
	suspects []*audience              // to be asked for
	spent    map[usage.Owner]struct{} // without messages left
}

func newRecheckWork() recheckWork {
	return recheckWork{notices: make(map[grid.Notice]struct{}), spent: make(map[usage.Owner]struct{})}
}

// ofPermissions and ofSources are the notices after which the catalog is asked, or a data source looked at.
func (w *recheckWork) ofPermissions() iter.Seq[grid.Notice] { return w.noticesThat(false) }
func (w *recheckWork) ofSources() iter.Seq[grid.Notice]     { return w.noticesThat(true) }

func (w *recheckWork) noticesThat(areOfSources bool) iter.Seq[grid.Notice] {
	return func(yield func(grid.Notice) bool) {
		for n := range w.notices {
			if (n.Scope == grid.ScopeSource) == areOfSources && !yield(n) {
				return
			}
		}
	}
}

func newRecheckQueue() *recheckQueue {
	return &recheckQueue{wake: make(chan struct{}, 1), all: make(chan struct{}, 1), work: newRecheckWork()}
}

// seen counts the notices so far. What was asked before the number changed must be asked again.
func (q *recheckQueue) seen() uint64 { return q.notices.Load() }

// joined is told who joined after the notices that it had seen when it asked.
func (q *recheckQueue) joined(a *audience, seen uint64) {
	if q.seen() != seen {
		q.add(func(w *recheckWork) { w.suspects = append(w.suspects, a) })
	}
}

// addNotice takes a notice. The number of notices rises before anybody is looked up: whoever joins later sees that, whoever joined
// before is found.
func (q *recheckQueue) addNotice(n grid.Notice) {
	switch n.Scope {
	case grid.ScopePoll, grid.ScopeGateway:
		return
	case grid.ScopeCatalog:
		q.notices.Add(1)
		signal(q.all)
		return
	case grid.ScopeSource:
	default:
		q.notices.Add(1)
	}
	q.add(func(w *recheckWork) { w.notices[n] = struct{}{} })
}

// addSpent is told by the meter that an account or an app has no messages left.
func (q *recheckQueue) addSpent(of usage.Owner) {
	q.add(func(w *recheckWork) { w.spent[of] = struct{}{} })
}

func (q *recheckQueue) add(change func(*recheckWork)) {
	q.mu.Lock()
	change(&q.work)
	q.mu.Unlock()
	signal(q.wake)
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default: // somebody did already
	}
}

// take empties the queue.
func (q *recheckQueue) take() recheckWork {
	q.mu.Lock()
	defer q.mu.Unlock()
	taken := q.work
	q.work = newRecheckWork()
	return taken
}
