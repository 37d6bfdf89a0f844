// Package gridtest holds what every grid must do, as tests that each engine runs on itself: Run for a whole grid, RunDocuments
// for one that only keeps documents. It also has what tests of engines share.
//
// An engine that lives in the process runs each case in a synctest bubble, where hours pass at once. One that needs servers runs in real
// time, on machines that may be so busy that moments are seen long after they came.
package gridtest

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
)

// Engine is what is tested: a grid, or a part of one.
type Engine[G any] struct {
	// Open returns an empty one that drops documents after ttl, and has t close it at the end.
	Open func(t *testing.T, ttl time.Duration) G

	// InBubble says that it needs nothing outside of the process.
	InBubble bool
}

// Run tests everything that a grid must do.
func Run(t *testing.T, e Engine[grid.Grid]) {
	RunDocuments(t, partOf(e, func(g grid.Grid) grid.Documents { return g }))
	run(t, partOf(e, func(g grid.Grid) grid.Presence { return g }), presenceContract)
	run(t, partOf(e, func(g grid.Grid) grid.Notices { return g }), noticesContract)
	run(t, partOf(e, func(g grid.Grid) grid.Values { return g }), valuesContract)
	run(t, partOf(e, func(g grid.Grid) grid.Counters { return g }), countersContract)
	run(t, partOf(e, func(g grid.Grid) grid.Questions { return g }), questionsContract)
}

// RunDocuments tests what whoever keeps documents must do.
func RunDocuments(t *testing.T, e Engine[grid.Documents]) { run(t, e, documentsContract) }

func partOf[G any](e Engine[grid.Grid], part func(grid.Grid) G) Engine[G] {
	return Engine[G]{InBubble: e.InBubble, Open: func(t *testing.T, ttl time.Duration) G { return part(e.Open(t, ttl)) }}
}

// clause is one sentence of a contract.
type clause[G any] struct {
	name    string
	forgets bool // it waits until something expired
	test    func(t *testing.T, g G, p Pace)
}

func run[G any](t *testing.T, e Engine[G], contract []clause[G]) {
	for _, c := range contract {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if e.InBubble {
				synctest.Test(t, func(t *testing.T) {
					p := Pace{TTL: time.Hour, look: time.Second, Settle: func(func() bool) { synctest.Wait() }}
					c.test(t, e.Open(t, p.TTL), p)
				})
				return
			}
			p := Pace{TTL: time.Hour, look: 20 * time.Millisecond, late: time.Minute, early: 100 * time.Millisecond,
				Settle: func(until func() bool) { Eventually(t, until) }}
			if c.forgets {
				p.TTL = 6 * time.Second
			}
			c.test(t, e.Open(t, p.TTL), p)
		})
	}
}

// Pace is how quickly time passes for a contract. A test may rely on half of a TTL being over before the TTL is, and on nothing that is
// closer.
type Pace struct {
	TTL    time.Duration           // of documents, values and counters
	Settle func(until func() bool) // waits for what happens in other goroutines

	look  time.Duration // how often to look whether something is gone
	late  time.Duration // how long after its time something may be gone
	early time.Duration // how long before: the clock of a server, in whole milliseconds, is not quite the test's
}

// Gone waits until what was made after a moment is gone, and wants that to be at its time. However late anybody looks: what is
// gone before its time is seen to be gone too early.
func (p Pace) Gone(t *testing.T, madeAfter time.Time, is func() bool) {
	t.Helper()
	for !is() {
		if since := time.Since(madeAfter); since > p.TTL+p.look+p.late {
			t.Fatalf("still there after %v", since)
		}
		time.Sleep(p.look)
	}
	if since := time.Since(madeAfter); since < p.TTL-p.early {
		t.Fatalf("gone after %v, before its time", since)
	}
}

// Eventually waits for what other processes or servers bring about, and fails after a time that is far too long.
func Eventually(t *testing.T, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not come about")
		}
	}
}

// Put stores a document. A machine that is too busy to answer in time leaves it open whether it is stored; then the grid is asked.
func Put(t *testing.T, g grid.Documents, topic string, expected freshet.Position, text string) freshet.Position {
	t.Helper()
	for {
		pos, err := g.Put(t.Context(), topic, expected, grid.Document{Content: grid.Raw(text), At: time.Now()})
		if err == nil {
			return pos
		}
		if freshet.KindOf(err) != freshet.Unavailable {
			t.Fatalf("Put(%.100q): %v", text, err)
		}
		if d := Document(t, g, topic); d.Position != expected && Body(d) == text {
			return d.Position
		}
	}
}

// Body is what a document says, empty if there is none.
func Body(d grid.Document) string {
	if d.Content == nil {
		return ""
	}
	return string(d.Content.Bytes())
}

// Document reads a topic.
func Document(t *testing.T, g grid.Documents, topic string) grid.Document {
	t.Helper()
	doc, err := g.Document(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// Watched collects what a watch is told.
type Watched struct {
	mu   sync.Mutex
	docs []grid.Document
}

// Watch watches a topic until the end of the test.
func Watch(t *testing.T, g grid.Documents, topic string) *Watched {
	t.Helper()
	w := &Watched{}
	stop, err := g.Watch(t.Context(), topic, func(d grid.Document) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.docs = append(w.docs, d)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return w
}

// States says of each time whether there was a document.
func (w *Watched) States() (there []bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range w.docs {
		there = append(there, !d.IsZero())
	}
	return there
}

// Last is the document that the watch was told last.
func (w *Watched) Last() grid.Document {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.docs[len(w.docs)-1]
}
