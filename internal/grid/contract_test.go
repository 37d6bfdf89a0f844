package grid_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
)

// pace is how quickly time passes for a contract, on a machine that may be so busy that moments are seen long after they came.
// A test may rely on half of a TTL being over before the TTL is, and on nothing that is closer.
type pace struct {
	ttl    time.Duration           // of documents, claims and counters
	look   time.Duration           // how often to look whether something is gone
	late   time.Duration           // how long after its time something may be gone
	early  time.Duration           // how long before: the clock of a server, in whole milliseconds, is not quite the test's
	settle func(until func() bool) // waits for what happens in other goroutines
}

// gone waits until what was made after a moment is gone, and wants that to be at its time. However late anybody looks: what is
// gone before its time is seen to be gone too early.
func (p pace) gone(t *testing.T, madeAfter time.Time, is func() bool) {
	t.Helper()
	for !is() {
		if since := time.Since(madeAfter); since > p.ttl+p.look+p.late {
			t.Fatalf("still there after %v", since)
		}
		time.Sleep(p.look)
	}
	if since := time.Since(madeAfter); since < p.ttl-p.early {
		t.Fatalf("gone after %v, before its time", since)
	}
}

// forEachGrid runs the contract on every engine, with time enough for anything.
func forEachGrid(t *testing.T, contract func(t *testing.T, g grid.Grid, p pace)) {
	forEachGridWithTTL(t, time.Hour, contract)
}

// forEachGridThatForgets runs a contract that waits until something expired.
func forEachGridThatForgets(t *testing.T, contract func(t *testing.T, g grid.Grid, p pace)) {
	forEachGridWithTTL(t, 6*time.Second, contract)
}

// forEachGridWithTTL takes a TTL for NATS, which takes its time. Memory runs in a bubble, so that its hours pass at once.
func forEachGridWithTTL(t *testing.T, ttl time.Duration, contract func(t *testing.T, g grid.Grid, p pace)) {
	t.Parallel()
	t.Run("memory", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := pace{ttl: time.Hour, look: time.Second, settle: func(func() bool) { synctest.Wait() }}
			g := grid.NewMemory(grid.MemoryOptions{MessageTTL: p.ttl})
			defer g.Close()
			contract(t, g, p)
		})
	})
	t.Run("nats", func(t *testing.T) {
		t.Parallel()
		p := pace{ttl: ttl, look: 20 * time.Millisecond, late: time.Minute, early: 100 * time.Millisecond,
			settle: func(until func() bool) { eventually(t, until) }}
		contract(t, openNATS(t, grid.NATSOptions{MessageTTL: p.ttl}), p)
	})
}

// put stores a document. A machine that is too busy to answer in time leaves it open whether it is stored; then the grid is asked.
func put(t *testing.T, g grid.Grid, topic string, expected freshet.Position, text string) freshet.Position {
	t.Helper()
	for {
		pos, err := g.Put(t.Context(), topic, expected, grid.Document{Content: grid.Raw(text), At: time.Now()})
		if err == nil {
			return pos
		}
		if freshet.KindOf(err) != freshet.Unavailable {
			t.Fatalf("Put(%.100q): %v", text, err)
		}
		if d := document(t, g, topic); d.Position != expected && body(d) == text {
			return d.Position
		}
	}
}

func body(d grid.Document) string {
	if d.Content == nil {
		return ""
	}
	return string(d.Content.Bytes())
}

func document(t *testing.T, g grid.Grid, topic string) grid.Document {
	t.Helper()
	doc, err := g.Document(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestTheNewestDocumentIsWhatWasPutLast(t *testing.T) {
	forEachGrid(t, func(t *testing.T, g grid.Grid, p pace) {
		if d := document(t, g, "a"); !d.IsZero() {
			t.Fatalf("a new topic has %v", d.Position)
		}
		first := put(t, g, "a", freshet.Position{}, "1")
		second := put(t, g, "a", first, "2")
		if first.Epoch == "" || second.Epoch != first.Epoch || second.Version <= first.Version {
			t.Errorf("positions %v then %v", first, second)
		}
		if p, ok := freshet.ParsePosition(second.String()); !ok || p != second {
			t.Errorf("%q does not survive its own text form", second)
		}
		d := document(t, g, "a")
		if body(d) != "2" || d.Position != second {
			t.Errorf("got %s at %v", body(d), d.Position)
		}
		if d := document(t, g, "b"); !d.IsZero() {
			t.Error("another topic got it too")
		}
	})
}

func TestPutRefusesALostRace(t *testing.T) {
	forEachGrid(t, func(t *testing.T, g grid.Grid, p pace) {
		first := put(t, g, "a", freshet.Position{}, "1")
		second := put(t, g, "a", first, "2")
		for _, expected := range []freshet.Position{{}, first, {Epoch: "other", Version: second.Version}} {
			if _, err := g.Put(t.Context(), "a", expected, grid.Document{Content: grid.Raw("x"), At: time.Now()}); !errors.Is(err, grid.ErrConflict) {
				t.Errorf("expecting %v: got %v", expected, err)
			}
		}
		if d := document(t, g, "a"); body(d) != "2" {
			t.Errorf("a refused put left %s", body(d))
		}
	})
}

func TestConcurrentPutsAreOneOrder(t *testing.T) {
	forEachGrid(t, func(t *testing.T, g grid.Grid, p pace) {
		var seen []freshet.Version
		stop, err := g.Watch(t.Context(), "a", func(d grid.Document) { seen = append(seen, d.Position.Version) })
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for done := 0; done < 50; {
					d, _ := g.Document(context.Background(), "a")
					if _, err := g.Put(context.Background(), "a", d.Position, grid.Document{Content: grid.Raw("x"), At: time.Now()}); err == nil {
						done++
					}
				}
			})
		}
		wg.Wait()
		stop()
		for i := 1; i < len(seen); i++ {
			if seen[i] <= seen[i-1] {
				t.Fatalf("a watch saw %d after %d", seen[i], seen[i-1])
			}
		}
		if last := document(t, g, "a").Position.Version; seen[len(seen)-1] != last {
			t.Errorf("the watch ended at %d, the topic at %d", seen[len(seen)-1], last)
		}
	})
}

func TestWatchBeginsWithThePresent(t *testing.T) {
	forEachGrid(t, func(t *testing.T, g grid.Grid, p pace) {
		pos := put(t, g, "a", freshet.Position{}, "1")
		var got []string
		stop, err := g.Watch(t.Context(), "a", func(d grid.Document) { got = append(got, body(d)) })
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != 1 || got[0] != "1" {
			t.Fatalf("before Watch returned: %q", got)
		}
		pos = put(t, g, "a", pos, "2")
		stop()
		put(t, g, "a", pos, "3")
		if len(got) != 2 || got[1] != "2" {
			t.Errorf("got %q", got)
		}
	})
}

func TestExpiryAndDeletionEndTheEpoch(t *testing.T) {
	forEachGridThatForgets(t, func(t *testing.T, g grid.Grid, p pace) {
		w := watch(t, g, "a")
		first := put(t, g, "a", freshet.Position{}, "1")
		time.Sleep(p.ttl / 2)
		last := time.Now() // the TTL counts from the last publication
		first = put(t, g, "a", first, "2")
		p.gone(t, last, func() bool {
			d := document(t, g, "a")
			return d.IsZero()
		})
		p.settle(func() bool { return len(w.states()) == 4 })
		second := put(t, g, "a", freshet.Position{}, "3")
		if second.Epoch == first.Epoch {
			t.Error("the epoch survived expiry")
		}
		if err := g.Delete(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		third := put(t, g, "a", freshet.Position{}, "4")
		if third.Epoch == second.Epoch {
			t.Error("the epoch survived deletion")
		}
		if got, want := w.states(), []bool{false, true, true, false, true, false, true}; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("the watch saw %v, want %v", got, want)
		}
	})
}

func TestRenewalKeepsThePositionAndTheDocumentAlive(t *testing.T) {
	forEachGridThatForgets(t, func(t *testing.T, g grid.Grid, p pace) {
		first := put(t, g, "a", freshet.Position{}, "1")
		time.Sleep(p.ttl / 2)
		renewed := time.Now()
		again, err := g.Put(t.Context(), "a", first, grid.Document{Content: grid.Raw("1"), At: time.Now(), Renewal: true})
		if err != nil || again != first {
			t.Fatalf("renewed at %v, %v; want %v", again, err, first)
		}
		p.gone(t, renewed, func() bool {
			d := document(t, g, "a")
			if !d.IsZero() && d.Position != first {
				t.Fatalf("got %v", d.Position)
			}
			return d.IsZero()
		})
	})
}

func TestARenewalIsNotOverwrittenByWhatWasMadeBeforeIt(t *testing.T) {
	forEachGrid(t, func(t *testing.T, g grid.Grid, p pace) {
		began := time.Now()
		at := func(minutes int) time.Time { return began.Add(time.Duration(minutes) * time.Minute) }
		store := func(expected freshet.Position, doc grid.Document) (freshet.Position, error) {
			t.Helper()
			doc.Content = grid.Raw("1")
			return g.Put(t.Context(), "a", expected, doc)
		}
		first, err := store(freshet.Position{}, grid.Document{At: at(0)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store(first, grid.Document{At: at(1), Since: at(0), Renewal: true}); err != nil {
			t.Fatal(err)
		}
		for _, renewal := range []bool{false, true} {
			if pos, err := store(first, grid.Document{At: at(2), Since: at(0), Renewal: renewal}); !errors.Is(err, grid.ErrConflict) {
				t.Errorf("made before the renewal: %v, %v", pos, err)
			}
		}
		if pos, err := store(first, grid.Document{At: at(2), Since: at(1)}); err != nil || pos.Version != first.Version+1 {
			t.Errorf("made after it: %v, %v", pos, err)
		}
	})
}

// TestANamedDocumentIsPutOnce, however much is put after it, until its outcome is known otherwise.
func TestANamedDocumentIsPutOnce(t *testing.T) {
	forEachGrid(t, func(t *testing.T, g grid.Grid, p pace) {
		named := func(expected freshet.Position, name string, noted ...string) (freshet.Position, error) {
			return g.Put(t.Context(), "a", expected, grid.Document{Content: grid.Raw(name), At: time.Now(), Once: name, Noted: noted})
		}
		recall := func(name string, want freshet.Position) {
			t.Helper()
			if pos, err := g.Recall(t.Context(), "a", name); err != nil || pos != want {
				t.Errorf("%s went to %v, %v; want %v", name, pos, err, want)
			}
		}
		recall("x", freshet.Position{})
		first, err := named(freshet.Position{}, "x")
		if err != nil {
			t.Fatal(err)
		}
		pos := first
		for i := range 20 {
			pos = put(t, g, "a", pos, fmt.Sprint(i))
		}
		recall("x", first)
		for _, expected := range []freshet.Position{pos, first, {}} {
			if at, err := named(expected, "x"); !errors.Is(err, grid.ErrRepeated) || at != first {
				t.Errorf("once more, in place of %v: %v, %v", expected, at, err)
			}
		}
		second, err := named(pos, "y", "x")
		if err != nil {
			t.Fatal(err)
		}
		recall("x", freshet.Position{})
		recall("y", second)
		if d := document(t, g, "a"); body(d) != "y" {
			t.Errorf("the document is %s", body(d))
		}
		pos = second
		for i := range 64 { // as many others as are remembered
			if pos, err = named(pos, fmt.Sprint("other", i)); err != nil {
				t.Fatal(err)
			}
		}
		recall("y", freshet.Position{})
		recall("other0", freshet.Position{Epoch: second.Epoch, Version: second.Version + 1})
	})
}

func TestPresenceIsWhetherAnybodyIsThere(t *testing.T) {
	forEachGrid(t, func(t *testing.T, g grid.Grid, p pace) {
		var news []string
		stop := g.OnPresence(func(topic string, present bool) { news = append(news, fmt.Sprint(topic, present)) })
		present := func() bool { // for certain, once there was no fault for some time
			var is bool
			var err error
			p.settle(func() bool { is, err = g.Present(t.Context(), "a"); return !errors.Is(err, grid.ErrDoubt) })
			if is, err = g.Present(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
			return is
		}
		if present() {
			t.Error("somebody is there at the beginning")
		}
		leave1, _ := g.Join(t.Context(), "a")
		leave2, _ := g.Join(t.Context(), "a")
		leave1()
		leave1()
		if !present() {
			t.Error("leaving twice took the other one along")
		}
		leave2()
		if present() {
			t.Error("somebody is still there")
		}
		stop()
		leave3, _ := g.Join(t.Context(), "a")
		leave3()
		if fmt.Sprint(news) != "[atrue afalse]" {
			t.Errorf("news %v", news)
		}
	})
}

func TestNoticesReachEverybody(t *testing.T) {
	forEachGrid(t, func(t *testing.T, g grid.Grid, p pace) {
		var one, two []grid.Notice
		stop := g.OnNotice(func(n grid.Notice) { one = append(one, n) })
		defer g.OnNotice(func(n grid.Notice) { two = append(two, n) })()
		n := grid.Notice{Scope: grid.ScopeApp, ID: "x"}
		if err := g.Notify(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		stop()
		g.Notify(t.Context(), n)
		p.settle(func() bool { return len(two) == 2 })
		if len(one) != 1 || len(two) != 2 || two[1] != n {
			t.Errorf("got %v and %v", one, two)
		}
	})
}

func TestSwapAcquiresRenewsAndReleases(t *testing.T) {
	forEachGridThatForgets(t, func(t *testing.T, g grid.Grid, p pace) {
		value := func() string {
			t.Helper()
			is, err := g.Value(t.Context(), "lease")
			if err != nil {
				t.Fatal(err)
			}
			return is
		}
		swap := func(old, new, want string) {
			t.Helper()
			got, err := g.Swap(t.Context(), "lease", old, new, p.ttl)
			if err != nil || got != want {
				t.Errorf("Swap(%q, %q) = %q, %v; want %q", old, new, got, err, want)
			}
			if read := value(); read != want {
				t.Errorf("Value = %q after Swap(%q, %q); want %q", read, old, new, want)
			}
		}
		swap("", "me", "me")
		swap("", "you", "me")
		time.Sleep(p.ttl / 2)
		renewed := time.Now()
		swap("me", "me", "me")
		swap("", "you", "me") // what is refused renews nothing
		swap("you", "", "me")
		p.gone(t, renewed, func() bool { return value() == "" })
		swap("me", "me", "")
		swap("", "you", "you")
		swap("you", "", "")
		swap("", "me", "me")
	})
}

func TestCountersAddUpAndForget(t *testing.T) {
	forEachGridThatForgets(t, func(t *testing.T, g grid.Grid, p pace) {
		add := func(delta int64) int64 {
			t.Helper()
			sum, err := g.Add(t.Context(), "c", delta, p.ttl)
			if err != nil {
				t.Fatal(err)
			}
			return sum
		}
		want := func(delta, want int64) {
			t.Helper()
			if got := add(delta); got != want {
				t.Errorf("Add(%d) = %d, want %d", delta, got, want)
			}
		}
		want(0, 0)
		want(5, 5)
		time.Sleep(p.ttl / 2)
		last := time.Now() // the TTL counts from the last addition
		want(-2, 3)
		p.gone(t, last, func() bool {
			sum := add(0)
			if sum != 0 && sum != 3 {
				t.Fatalf("the sum is %d", sum)
			}
			return sum == 0
		})
		want(1, 1)
	})
}

func TestMemoryForgetsWhatExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := grid.NewMemory(grid.MemoryOptions{})
		defer g.Close()
		for i := range 10_000 {
			g.Swap(t.Context(), fmt.Sprint("claim", i), "", "x", time.Second)
			time.Sleep(10 * time.Millisecond)
		}
		if n := grid.Values(g); n > 2048 {
			t.Errorf("%d values are kept of which 100 are alive", n)
		}
	})
}

func TestDocumentsAreMeasuredAsTheyAreStored(t *testing.T) {
	forEachGrid(t, func(t *testing.T, g grid.Grid, _ pace) {
		var known grid.Lengths
		topics := []string{"a", "b", "never"}
		want := func(what string, sum int64) {
			t.Helper()
			for name, known := range map[string]*grid.Lengths{"from what is known": &known, "anew": {}} {
				if got, err := g.Measure(t.Context(), topics, known); err != nil || got != sum {
					t.Errorf("%s, %s: %d bytes, %v; want %d", what, name, got, err, sum)
				}
			}
		}
		want("nothing", 0)
		first := put(t, g, "a", freshet.Position{}, "123")
		put(t, g, "b", freshet.Position{}, strings.Repeat("long", 1000))
		put(t, g, "somebody else's", freshet.Position{}, "x")
		want("two documents", 4003)
		second := put(t, g, "a", first, "12345")
		want("a longer one", 4005)
		said := grid.Document{Content: grid.Raw("[[1],[12]]"), Length: 4, At: time.Now()}
		if _, err := g.Put(t.Context(), "a", second, said); err != nil {
			t.Fatal(err)
		}
		want("one that says how long it is", 4004)
		if err := g.Delete(t.Context(), "b"); err != nil {
			t.Fatal(err)
		}
		want("after a deletion", 4)
		topics = topics[1:]
		want("without a topic that is gone", 0)
		put(t, g, "b", freshet.Position{}, "1")
		want("after it came back", 1)
	})
}

func TestWhatExpiredIsNotMeasured(t *testing.T) {
	forEachGridThatForgets(t, func(t *testing.T, g grid.Grid, p pace) {
		began := time.Now()
		put(t, g, "a", freshet.Position{}, "123")
		var known grid.Lengths
		measure := func() int64 {
			n, err := g.Measure(t.Context(), []string{"a"}, &known)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		if n := measure(); n != 3 && time.Since(began) < p.ttl {
			t.Errorf("%d bytes before it expires", n)
		}
		time.Sleep(p.ttl)
		p.settle(func() bool { return measure() == 0 })
		if n := measure(); n != 0 {
			t.Errorf("%d bytes after it expired", n)
		}
	})
}
