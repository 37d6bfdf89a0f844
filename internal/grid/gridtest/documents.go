package gridtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
)

var documentsContract = []clause[grid.Documents]{
	{name: "TheNewestDocumentIsWhatWasPutLast", test: theNewestDocumentIsWhatWasPutLast},
	{name: "PutRefusesALostRace", test: putRefusesALostRace},
	{name: "ConcurrentPutsAreOneOrder", test: concurrentPutsAreOneOrder},
	{name: "WatchBeginsWithThePresent", test: watchBeginsWithThePresent},
	{name: "ExpiryAndDeletionEndTheEpoch", forgets: true, test: expiryAndDeletionEndTheEpoch},
	{name: "RenewalKeepsThePositionAndTheDocumentAlive", forgets: true, test: renewalKeepsThePositionAndTheDocumentAlive},
	{name: "ARenewalIsNotOverwrittenByWhatWasMadeBeforeIt", test: aRenewalIsNotOverwrittenByWhatWasMadeBeforeIt},
	{name: "ANamedDocumentIsPutOnce", test: aNamedDocumentIsPutOnce},
	{name: "DocumentsAreMeasuredAsTheyAreStored", test: documentsAreMeasuredAsTheyAreStored},
	{name: "WhatExpiredIsNotMeasured", forgets: true, test: whatExpiredIsNotMeasured},
}

func theNewestDocumentIsWhatWasPutLast(t *testing.T, g grid.Documents, p Pace) {
	if d := Document(t, g, "a"); !d.IsZero() {
		t.Fatalf("a new topic has %v", d.Position)
	}
	first := Put(t, g, "a", freshet.Position{}, "1")
	second := Put(t, g, "a", first, "2")
	if first.Epoch == "" || second.Epoch != first.Epoch || second.Version <= first.Version {
		t.Errorf("positions %v then %v", first, second)
	}
	if p, ok := freshet.ParsePosition(second.String()); !ok || p != second {
		t.Errorf("%q does not survive its own text form", second)
	}
	d := Document(t, g, "a")
	if Body(d) != "2" || d.Position != second {
		t.Errorf("got %s at %v", Body(d), d.Position)
	}
	if d := Document(t, g, "b"); !d.IsZero() {
		t.Error("another topic got it too")
	}
}

func putRefusesALostRace(t *testing.T, g grid.Documents, p Pace) {
	first := Put(t, g, "a", freshet.Position{}, "1")
	second := Put(t, g, "a", first, "2")
	for _, expected := range []freshet.Position{{}, first, {Epoch: "other", Version: second.Version}} {
		if _, err := g.Put(t.Context(), "a", expected, grid.Document{Content: grid.Raw("x"), At: time.Now()}); !errors.Is(err, grid.ErrConflict) {
			t.Errorf("expecting %v: got %v", expected, err)
		}
	}
	if d := Document(t, g, "a"); Body(d) != "2" {
		t.Errorf("a refused put left %s", Body(d))
	}
}

func concurrentPutsAreOneOrder(t *testing.T, g grid.Documents, p Pace) {
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
	if last := Document(t, g, "a").Position.Version; seen[len(seen)-1] != last {
		t.Errorf("the watch ended at %d, the topic at %d", seen[len(seen)-1], last)
	}
}

func watchBeginsWithThePresent(t *testing.T, g grid.Documents, p Pace) {
	pos := Put(t, g, "a", freshet.Position{}, "1")
	var got []string
	stop, err := g.Watch(t.Context(), "a", func(d grid.Document) { got = append(got, Body(d)) })
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0] != "1" {
		t.Fatalf("before Watch returned: %q", got)
	}
	pos = Put(t, g, "a", pos, "2")
	stop()
	Put(t, g, "a", pos, "3")
	if len(got) != 2 || got[1] != "2" {
		t.Errorf("got %q", got)
	}
}

func expiryAndDeletionEndTheEpoch(t *testing.T, g grid.Documents, p Pace) {
	w := Watch(t, g, "a")
	first := Put(t, g, "a", freshet.Position{}, "1")
	time.Sleep(p.TTL / 2)
	last := time.Now() // the TTL counts from the last publication
	first = Put(t, g, "a", first, "2")
	p.Gone(t, last, func() bool {
		d := Document(t, g, "a")
		return d.IsZero()
	})
	p.Settle(func() bool { return len(w.States()) == 4 })
	second := Put(t, g, "a", freshet.Position{}, "3")
	if second.Epoch == first.Epoch {
		t.Error("the epoch survived expiry")
	}
	if err := g.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	third := Put(t, g, "a", freshet.Position{}, "4")
	if third.Epoch == second.Epoch {
		t.Error("the epoch survived deletion")
	}
	if got, want := w.States(), []bool{false, true, true, false, true, false, true}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the watch saw %v, want %v", got, want)
	}
}

func renewalKeepsThePositionAndTheDocumentAlive(t *testing.T, g grid.Documents, p Pace) {
	first := Put(t, g, "a", freshet.Position{}, "1")
	time.Sleep(p.TTL / 2)
	renewed := time.Now()
	again, err := g.Put(t.Context(), "a", first, grid.Document{Content: grid.Raw("1"), At: time.Now(), Renewal: true})
	if err != nil || again != first {
		t.Fatalf("renewed at %v, %v; want %v", again, err, first)
	}
	p.Gone(t, renewed, func() bool {
		d := Document(t, g, "a")
		if !d.IsZero() && d.Position != first {
			t.Fatalf("got %v", d.Position)
		}
		return d.IsZero()
	})
}

func aRenewalIsNotOverwrittenByWhatWasMadeBeforeIt(t *testing.T, g grid.Documents, p Pace) {
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
}

// TestANamedDocumentIsPutOnce, however much is put after it, until its outcome is known otherwise.
func aNamedDocumentIsPutOnce(t *testing.T, g grid.Documents, p Pace) {
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
		pos = Put(t, g, "a", pos, fmt.Sprint(i))
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
	if d := Document(t, g, "a"); Body(d) != "y" {
		t.Errorf("the document is %s", Body(d))
	}
	pos = second
	for i := range 64 { // as many others as are remembered
		if pos, err = named(pos, fmt.Sprint("other", i)); err != nil {
			t.Fatal(err)
		}
	}
	recall("y", freshet.Position{})
	recall("other0", freshet.Position{Epoch: second.Epoch, Version: second.Version + 1})
}

func documentsAreMeasuredAsTheyAreStored(t *testing.T, g grid.Documents, _ Pace) {
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
	first := Put(t, g, "a", freshet.Position{}, "123")
	Put(t, g, "b", freshet.Position{}, strings.Repeat("long", 1000))
	Put(t, g, "somebody else's", freshet.Position{}, "x")
	want("two documents", 4003)
	second := Put(t, g, "a", first, "12345")
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
	Put(t, g, "b", freshet.Position{}, "1")
	want("after it came back", 1)
}

func whatExpiredIsNotMeasured(t *testing.T, g grid.Documents, p Pace) {
	began := time.Now()
	Put(t, g, "a", freshet.Position{}, "123")
	var known grid.Lengths
	measure := func() int64 {
		n, err := g.Measure(t.Context(), []string{"a"}, &known)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := measure(); n != 3 && time.Since(began) < p.TTL {
		t.Errorf("%d bytes before it expires", n)
	}
	time.Sleep(p.TTL)
	p.Settle(func() bool { return measure() == 0 })
	if n := measure(); n != 0 {
		t.Errorf("%d bytes after it expired", n)
	}
}
