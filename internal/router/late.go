package router

import (
	"runtime"

	"github.com/freshet-io/freshet/internal/jsonpatch"
)

// A publication brings filtered feeds along only up to a bound: many long filters must not make one publication take seconds. The
// others are late. A goroutine of the topic brings them, one after another, and only those whose readers took what they had: what
// nobody reads is not made. A reader who asks makes a late feed's turn come.
//
// While a feed is late its log ends before the topic's cursor, so nobody may be given that cursor: who is about to brings the feed
// along first.

// defaultViewWork is how many changes of items, each counted in every view that shows it, a publication makes itself.
const defaultViewWork = 16 << 10

// lateness is how a filtered feed stands to its topic. It is guarded by Feed.mu, and changed with topic.mu held, but for the turn
// that a reader causes.
type lateness uint8

const (
	onTime lateness = iota
	unread          // late, and nobody took what there is
	due             // late, and in topic.late
)

func (f *Feed) isLate() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lateness != onTime
}

func (f *Feed) setLateness(l lateness) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lateness = l
}

// postpone makes the feed late by the newest revision. The caller holds topic.mu.
func (f *Feed) postpone() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lateness != onTime {
		return
	}
	f.lateFrom, f.lateness = f.topic.cursor-1, unread
	if !f.demand() {
		f.wake() // who can read asks, and has it made
	}
}

// demand gives a late feed its turn if its reader took everything there is. The caller holds f.mu, and calls bringLate without it if
// the answer is true.
func (f *Feed) demand() bool {
	if f.lateness != unread || f.log.taken < f.log.head {
		return false
	}
	f.lateness = due
	f.topic.lateMu.Lock()
	defer f.topic.lateMu.Unlock()
	f.topic.late = append(f.topic.late, f)
	return true
}

// bringLate sees to it that somebody brings the late feeds.
func (t *topic) bringLate() {
	t.lateMu.Lock()
	defer t.lateMu.Unlock()
	if len(t.late) > 0 && !t.bringing {
		t.bringing = true
		go t.runLate()
	}
}

// runLate brings late feeds until there are none.
func (t *topic) runLate() {
	for {
		t.lateMu.Lock()
		if len(t.late) == 0 {
			t.late, t.bringing = nil, false
			t.lateMu.Unlock()
			return
		}
		f := t.late[0]
		t.late = t.late[1:]
		t.lateMu.Unlock()
		t.router.viewing.Lock() // one at a time, whatever the topic: this may take long, and everybody else comes first
		t.mu.Lock()
		f.bring()
		t.mu.Unlock()
		t.router.viewing.Unlock()
		runtime.Gosched()
	}
}

// bring makes a late feed lead to the newest revision. The caller holds topic.mu.
func (f *Feed) bring() {
	if !f.isLate() {
		return
	}
	f.setLateness(onTime)
	if f.view == nil || f.refs == 0 {
		return
	}
	change := jsonpatch.Change{Kind: jsonpatch.Whole}
	if i := f.topic.history.at(f.lateFrom); i >= 0 {
		change = f.changeSince(i)
	}
	f.view.CatchUp()
	f.topic.router.stats.deferred.Add(1)
	f.add(change)
}
