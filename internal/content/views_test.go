package content

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"weak"

	"github.com/freshet-io/freshet/internal/jsonpatch"
)

func TestAFilterIsASetOfIdentifiers(t *testing.T) {
	if ParseFilter("b,a,,b").Key() != NewFilter("a", "b").Key() {
		t.Fatal("order or repetition counts")
	}
	if NewFilter("a,b").Key() == NewFilter("a", "b").Key() || NewFilter("1:a").Key() == NewFilter("a").Key() {
		t.Fatal("different filters have one key")
	}
	if len(ParseFilter("").ids) > 0 || ParseFilter(" a").Key() == ParseFilter("a").Key() {
		t.Fatal("empty or trimmed")
	}
}

func TestASubscriberSeesItsItemsOnly(t *testing.T) {
	s := items(t, byID, `[{"id":"a"},{"id":"b","text":"a text that is not sent again","v":1},{"id":3},{"id":"d"}]`)
	views := NewViews(s)
	view := views.Open(ParseFilter("3,b,x"))
	if got := string(view.Bytes()); got != `[{"id":"b","text":"a text that is not sent again","v":1},{"id":3}]` || got != string(s.Filtered(ParseFilter("3,b,x"))) {
		t.Fatal(got)
	}
	for _, test := range []struct{ name, body, patch string }{
		{"a change of another item is no event", `[{"id":"a","v":1}]`, ``},
		{"indexes are those of the view", `[{"id":"b","text":"a text that is not sent again","v":2}]`, `[{"op":"replace","path":"/0/v","value":2}]`},
		{"a numeric identifier is named by its decimal text", `[{"id":3.0,"v":1}]`, `[{"op":"add","path":"/1/v","value":1}]`},
		{"a listed item that appears is added", `[{"id":"y"},{"id":"x"}]`, `[{"op":"add","path":"/-","value":{"id":"x"}}]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := view.Bytes()
			next := publish(t, byID, s, test.body, start).State.(*Items)
			changes := views.Advance(s.Delta(next))
			if test.patch == "" && len(changes) != 0 || test.patch != "" && (len(changes) != 1 || string(changes[0].Change.Patch) != test.patch) {
				t.Fatalf("%v", changes)
			}
			if len(changes) > 0 {
				checkChange(t, before, view.Bytes(), changes[0].Change)
			}
			s = next
		})
	}
}

func TestALongFilteredPatchGivesWayToTheView(t *testing.T) {
	item := func(v int) string {
		return `[{"id":"a","list":[` + strings.TrimSuffix(strings.Repeat(fmt.Sprintf("%d,", v), 900), ",") + `]},{"id":"b"}]`
	}
	s := items(t, byID, item(1))
	next := publish(t, byID, s, `[{"id":"z","list":"`+strings.Repeat("z", 5000)+`"}]`, start).State.(*Items)
	views := NewViews(s)
	views.Open(NewFilter("z"))
	if c := views.Advance(s.Delta(next)); len(c) != 1 || c[0].Change.Kind != jsonpatch.Whole {
		t.Fatalf("%v", c)
	}
}

func TestViewsAreSharedAndEnd(t *testing.T) {
	s := items(t, byID, `[{"id":"a"},{"id":"b"}]`)
	views := NewViews(s)
	one, two, other := views.Open(ParseFilter("a,b")), views.Open(ParseFilter("b,a")), views.Open(ParseFilter("a"))
	if one != two || one == other || views.Len() != 2 {
		t.Fatal("equal filters have different views")
	}
	next := publish(t, byID, s, `[{"id":"b","v":1}]`, start).State.(*Items)
	views.Close(one)
	if c := views.Advance(s.Delta(next)); len(c) != 1 || c[0].View != two {
		t.Fatalf("%v", c)
	}
	views.Close(two)
	views.Close(other)
	if views.Len() != 0 || len(views.byID) != 0 {
		t.Fatal("something is left")
	}
}

func TestAForeignStateReloadsEveryView(t *testing.T) {
	s, foreign := items(t, byID, `[{"id":"a"}]`), items(t, byID, `[{"id":"a","v":2},{"id":"b"}]`)
	views := NewViews(s)
	view := views.Open(ParseFilter("a"))
	changes := views.Advance(s.Delta(foreign))
	if len(changes) != 1 || changes[0].Change.Kind != jsonpatch.Whole || string(view.Bytes()) != `[{"id":"a","v":2}]` {
		t.Fatalf("%v %s", changes, view.Bytes())
	}
}

// Ten thousand filters, each of twenty items: what a revision costs must not depend on those it does not concern.
func TestARevisionCostsOnlyTheViewsItConcerns(t *testing.T) {
	var body strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&body, `,{"id":"i%d","v":0}`, i)
	}
	s := items(t, byID, "["+body.String()[1:]+"]")
	views := NewViews(s)
	for f := range 10_000 {
		ids := make([]string, 0, 20)
		for k := range 20 {
			ids = append(ids, fmt.Sprintf("i%d", (f*7+k*101)%2000))
		}
		views.Open(NewFilter(ids...))
	}
	concerned := len(views.byID["i5"])
	next := publish(t, byID, s, `[{"id":"i5","v":1}]`, start).State.(*Items)
	delta, back := s.Delta(next), next.Delta(publish(t, byID, next, `[{"id":"i5","v":0}]`, start).State.(*Items))
	if got := len(views.Advance(delta)); got != concerned || got == 0 || got > 500 {
		t.Fatalf("%d views changed, %d list the item", got, concerned)
	}
	views.Advance(back)
	unseen := publish(t, byID, s, `[{"id":"nobody lists this"}]`, start).State.(*Items)
	nothing := s.Delta(unseen)
	if n := testing.AllocsPerRun(10, func() { views.Advance(nothing) }); n > 2 {
		t.Fatalf("%v allocations for no view", n)
	}
}

// One item of a hundred thousand changes: the states share the rest.
func TestAChangedItemDoesNotCopyTheOthers(t *testing.T) {
	var body strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&body, `,{"id":%d,"v":0}`, i)
	}
	s := items(t, byID, "["+body.String()[1:]+"]")
	next := publish(t, byID, s, `[{"id":50000,"v":1}]`, start.Add(1)).State.(*Items)
	shared := 0
	for i, c := range next.vector.chunks {
		if c == s.vector.chunks[i] {
			shared++
		}
	}
	if shared != len(s.vector.chunks)-1 {
		t.Fatalf("%d of %d chunks are shared", shared, len(s.vector.chunks))
	}
	if c := s.Delta(next).Change(); string(c.Patch) != `[{"op":"replace","path":"/50000/v","value":1}]` {
		t.Fatalf("%s", c.Patch)
	}
}

// TestAQuietViewKeepsNoOldState: what a subscriber costs does not depend on how long its items have been the same.
func TestAQuietViewKeepsNoOldState(t *testing.T) {
	s := items(t, byID, `[{"id":"quiet","v":1}]`)
	views := NewViews(s)
	defer runtime.KeepAlive(views)
	view := views.Open(NewFilter("quiet"))
	item := weak.Make(&s.vector.chunks[0].entries[0])
	var state weak.Pointer[Items]
	for v := range 10 {
		body := fmt.Sprintf(`[{"id":"busy","v":%d}]`, v)
		if v == 0 {
			body = `[{"id":"quiet","v":2}]`
		}
		next := publish(t, byID, s, body, start).State.(*Items)
		views.Advance(s.Delta(next))
		s = next
		if v == 0 {
			state = weak.Make(s)
		}
	}
	runtime.GC()
	if state.Value() != nil {
		t.Error("the state in which the item last changed is kept")
	}
	if item.Value() != nil {
		t.Error("the item is kept as it was before")
	}
	if got := string(view.Bytes()); got != `[{"id":"quiet","v":2}]` {
		t.Errorf("the view is %s", got)
	}
}

func TestViewsBeyondTheBoundComeLate(t *testing.T) {
	s := items(t, byID, `[{"id":"a","v":1},{"id":"b","v":1},{"id":"c","v":1}]`)
	views := NewViews(s)
	one, all := views.Open(NewFilter("a")), views.Open(NewFilter("a", "b", "c"))
	next := publish(t, byID, s, `[{"id":"a","v":2},{"id":"b","v":2},{"id":"c","v":2}]`, start).State.(*Items)
	changes, late := views.AdvanceWithin(s.Delta(next), 3)
	if len(changes) != 1 || changes[0].View != one || len(late) != 1 || late[0] != all {
		t.Fatalf("%v, late: %v", changes, late)
	}
	last := publish(t, byID, next, `[{"id":"b","v":3}]`, start).State.(*Items)
	if changes, late := views.AdvanceWithin(next.Delta(last), 3); len(changes) != 0 || len(late) != 0 {
		t.Errorf("a view that is late is late again, or on time: %v, %v", changes, late)
	}
	if got, want := string(all.Bytes()), `[{"id":"a","v":2},{"id":"b","v":3},{"id":"c","v":2}]`; got != want || all.Len() != len(want) {
		t.Errorf("a late view that is looked at shows %s", got)
	}
	end := publish(t, byID, last, `[{"id":"b","v":4}]`, start).State.(*Items)
	if changes, _ := views.AdvanceWithin(last.Delta(end), 3); len(changes) != 1 || changes[0].View != all {
		t.Errorf("a view that caught up is not on time: %v", changes)
	}
	foreign := items(t, byID, `[{"id":"a"}]`)
	if changes, late := views.AdvanceWithin(end.Delta(foreign), 0); len(changes) != 0 || len(late) != 2 {
		t.Errorf("from a foreign state: %v, late: %v", changes, late)
	}
}
