package content

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/freshet-io/freshet/internal/jsonpatch"
	"pgregory.net/rapid"
)

func TestItemsFollowThePublications(t *testing.T) {
	for _, test := range []struct {
		name   string
		path   []string
		bodies []string
		want   string
		patch  string // of the last publication
	}{
		{"items stand in order of first appearance", nil, []string{`[{"id":"b"},{"id":"a"}]`, `[{"id":"c"},{"id":"a","v":1}]`},
			`[{"id":"b"},{"id":"a","v":1},{"id":"c"}]`, `[{"op":"add","path":"/1/v","value":1},{"op":"add","path":"/-","value":{"id":"c"}}]`},
		{"an item becomes exactly the published one", nil, []string{`[{"id":"a","gone":"with the wind","n":1}]`, `[{"id":"a","n":2}]`},
			`[{"id":"a","n":2}]`, `[{"op":"replace","path":"/0","value":{"id":"a","n":2}}]`},
		{"a small change in a large item is one operation", nil, []string{`[{"id":"a","text":"a text that is too long to be sent again","n":1}]`, `[{"id":"a","text":"a text that is too long to be sent again","n":2}]`},
			`[{"id":"a","text":"a text that is too long to be sent again","n":2}]`, `[{"op":"replace","path":"/0/n","value":2}]`},
		{"items not in the publication stay", nil, []string{`[{"id":"a"},{"id":"b"}]`, `[{"id":"b","v":1}]`}, `[{"id":"a"},{"id":"b","v":1}]`,
			`[{"op":"add","path":"/1/v","value":1}]`},
		{"an empty array changes nothing", nil, []string{`[{"id":"a"}]`, `[]`}, `[{"id":"a"}]`, ``},
		{"items without identifier are discarded", nil, []string{`[{"id":"a"},{"Id":"b"},{"id":null},{"id":true},{"id":[1]},{"id":{}}]`}, `[{"id":"a"}]`, ``},
		{"of equal identifiers in one publication the last wins", nil, []string{`[{"id":"a","v":1},{"id":"b"},{"id":"a","v":2}]`}, `[{"id":"a","v":2},{"id":"b"}]`, ``},
		{"what was published twice and came out the same is no change", nil, []string{`[{"id":"a","v":1}]`, `[{"id":"a","v":2},{"id":"a","v":1.0}]`}, `[{"id":"a","v":1}]`, ``},
		{"a number is named by its value", nil, []string{`[{"id":1}]`, `[{"id":1.0,"v":1}]`, `[{"id":10e-1,"v":2}]`}, `[{"id":10e-1,"v":2}]`, `[{"op":"replace","path":"/0/v","value":2}]`},
		{"a number and its text are one identifier", nil, []string{`[{"id":7,"v":1}]`, `[{"id":"7","v":1}]`}, `[{"id":"7","v":1}]`, `[{"op":"replace","path":"/0/id","value":"7"}]`},
		{"an identifier may be escaped", nil, []string{`[{"id":"a","v":1}]`, `[{"\u0069d":"\u0061","v":2}]`}, `[{"\u0069d":"\u0061","v":2}]`, `[{"op":"replace","path":"/0/v","value":2}]`},
		{"the path may be nested", []string{"Identifier", "Symbol"}, []string{`[{"Identifier":{"Symbol":"x"}},{"Identifier":{"symbol":"y"}},{"Identifier":"x"}]`}, `[{"Identifier":{"Symbol":"x"}}]`, ``},
		{"the empty identifier is one", nil, []string{`[{"id":""}]`, `[{"id":"","v":1}]`}, `[{"id":"","v":1}]`, `[{"op":"add","path":"/0/v","value":1}]`},
		{"large numbers are told apart", nil, []string{`[{"id":9007199254740993},{"id":9007199254740992}]`}, `[{"id":9007199254740993},{"id":9007199254740992}]`, ``},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := byID
			if test.path != nil {
				r = ItemRules(test.path, jsonpatch.Limits{})
			}
			var p Publication
			for _, body := range test.bodies {
				p = publish(t, r, p.State, body, start)
			}
			if string(p.State.Bytes()) != test.want || p.State.Len() != len(test.want) {
				t.Errorf("got %s", p.State.Bytes())
			}
			if string(p.Change.Patch) != test.patch {
				t.Errorf("patch %s", p.Change.Patch)
			}
		})
	}
}

func TestDiscardedItemsAreCounted(t *testing.T) {
	p := publish(t, byID, nil, `[{"id":"a"},{"x":1},{"id":null}]`, start)
	if p.Discarded != 2 {
		t.Fatalf("%d discarded", p.Discarded)
	}
	p = publish(t, byID, nil, `[{"x":1}]`, start)
	if p.Discarded != 1 || p.State != nil || p.Change.Kind != jsonpatch.Same {
		t.Fatalf("%+v", p)
	}
}

func TestABodyThatIsNoArrayOfObjectsIsRefused(t *testing.T) {
	for body, want := range map[string]string{
		`{"id":1}`:       "the body of an item topic must be an array of objects",
		`null`:           "the body of an item topic must be an array of objects",
		`[{"id":1},[2]]`: "element 1 of the array is not an object; the body of an item topic must be an array of objects",
		`[null]`:         "element 0 of the array is not an object; the body of an item topic must be an array of objects",
	} {
		_, err := byID.Publish(nil, []byte(body), start)
		var refused *ItemError
		if !errors.As(err, &refused) || err.Error() != want {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestTheFirstPublicationIsSentWhole(t *testing.T) {
	if p := publish(t, byID, nil, `[{"id":1}]`, start); p.Change.Kind != jsonpatch.Whole {
		t.Fatalf("%v", p.Change)
	}
}

func TestOldItemsExpire(t *testing.T) {
	s := publish(t, byID, nil, `[{"id":"a"},{"id":"b"},{"id":"c"}]`, start).State
	s = publish(t, byID, s, `[{"id":"b"}]`, start.Add(time.Minute)).State // equal, but renewed
	old := s.(*Items)
	if at, ok := old.Oldest(); !ok || !at.Equal(start) {
		t.Fatal(at)
	}
	if old.Expire(start) != old {
		t.Fatal("something expired too early")
	}
	left := old.Expire(start.Add(time.Second))
	if string(left.Bytes()) != `[{"id":"b"}]` || left.Count() != 1 {
		t.Fatalf("left %s", left.Bytes())
	}
	if c := old.Delta(left).Change(); string(c.Patch) != `[{"op":"remove","path":"/2"},{"op":"remove","path":"/0"}]` {
		t.Fatalf("%s", c.Patch)
	}
	if _, ok := left.index.find("a"); ok {
		t.Fatal("a is still found")
	}
	if string(old.Bytes()) != `[{"id":"a"},{"id":"b"},{"id":"c"}]` {
		t.Fatal("the old state changed")
	}
	again := publish(t, byID, left, `[{"id":"a"}]`, start.Add(time.Hour)).State
	if string(again.Bytes()) != `[{"id":"b"},{"id":"a"}]` {
		t.Fatalf("what comes back comes last: %s", again.Bytes())
	}
	none := again.(*Items).Expire(start.Add(2 * time.Hour))
	if string(none.Bytes()) != `[]` {
		t.Fatalf("%s", none.Bytes())
	}
	if _, ok := none.Oldest(); ok {
		t.Fatal("nothing has an age")
	}
}

func TestStoredItemsAreLoadedAgain(t *testing.T) {
	s := publish(t, byID, nil, `[{"id":"a"},{"id":"b","v":[1]}]`, start).State
	s = publish(t, byID, s, `[{"id":"c"},{"id":"a","v":2}]`, start.Add(time.Minute)).State
	fresh, err := byID.Load(nil, byID.Store(s))
	if err != nil || string(fresh.Bytes()) != string(s.Bytes()) || string(byID.Store(fresh)) != string(byID.Store(s)) {
		t.Fatalf("%v %s", err, byID.Store(fresh))
	}
	if c := byID.Diff(s, fresh); c.Kind != jsonpatch.Whole {
		t.Fatal("states of different history have nothing to do with each other")
	}
	t.Run("what equals the previous state is shared with it", func(t *testing.T) {
		same, err := byID.Load(s, byID.Store(s))
		if err != nil || same != s {
			t.Fatal(err)
		}
		next := publish(t, byID, s, `[{"id":"b","v":[2]}]`, start).State.(*Items).Expire(start.Add(time.Second))
		loaded, err := byID.Load(s, byID.Store(next))
		if err != nil || string(byID.Store(loaded)) != string(byID.Store(next)) {
			t.Fatalf("%v %s", err, byID.Store(loaded))
		}
		checkChange(t, s.Bytes(), loaded.Bytes(), byID.Diff(s, loaded))
		if byID.Diff(s, loaded).Kind != jsonpatch.Patched {
			t.Fatal("the history is lost")
		}
	})
	t.Run("what stands in another order went and came back", func(t *testing.T) {
		other := items(t, byID, `[{"id":"a"},{"id":"c"},{"id":"b"},{"id":"d"}]`)
		loaded, err := byID.Load(s, byID.Store(other))
		if err != nil || string(loaded.Bytes()) != string(other.Bytes()) {
			t.Fatal(err)
		}
		checkChange(t, s.Bytes(), loaded.Bytes(), byID.Diff(s, loaded))
		checkChange(t, s.(*Items).Filtered(NewFilter("b", "c")), loaded.(*Items).Filtered(NewFilter("b", "c")), FilteredDiff(s.(*Items), loaded.(*Items), NewFilter("b", "c")))
		views := NewViews(s.(*Items))
		view := views.Open(NewFilter("b"))
		before := view.Bytes()
		for _, c := range views.Advance(s.(*Items).Delta(loaded.(*Items))) {
			checkChange(t, before, view.Bytes(), c.Change)
		}
		if string(view.Bytes()) != `[{"id":"b"}]` {
			t.Fatalf("%s", view.Bytes())
		}
	})
	for _, bad := range []string{`{}`, `[]`, `[[1],[]]`, `[[],[{"id":1}]]`, `[["x"],[{"id":1}]]`, `[[1],[{"x":1}]]`, `[[1,2],[{"id":1},{"id":1}]]`, `[`} {
		if _, err := byID.Load(nil, []byte(bad)); err == nil {
			t.Errorf("%s is loaded", bad)
		}
	}
}

func TestThereIsNoWayBackInHistory(t *testing.T) {
	a := items(t, byID, `[{"id":"a"}]`)
	b := publish(t, byID, a, `[{"id":"b"}]`, start).State.(*Items)
	other := publish(t, byID, a, `[{"id":"x"}]`, start).State.(*Items)
	for _, d := range []*Delta{b.Delta(a), b.Delta(other)} {
		if d.Same() || d.Change().Kind != jsonpatch.Whole {
			t.Fatalf("%v", d.Change())
		}
	}
	if FilteredDiff(b, a, NewFilter("a")).Kind != jsonpatch.Whole {
		t.Fatal("a filtered way back")
	}
}

// A model is an item topic as simple as can be.
type model struct {
	order []string
	items map[string]string
	seen  map[string]time.Time
}

func (m *model) publish(id, item string, at time.Time) {
	if _, ok := m.items[id]; !ok {
		m.order = append(m.order, id)
	}
	m.items[id], m.seen[id] = item, at
}

func (m *model) expire(before time.Time) {
	var left []string
	for _, id := range m.order {
		if m.seen[id].Before(before) {
			delete(m.items, id)
			continue
		}
		left = append(left, id)
	}
	m.order = left
}

// text returns the document, of all items or of those listed.
func (m *model) text(listed func(string) bool) string {
	var parts []string
	for _, id := range m.order {
		if listed(id) {
			parts = append(parts, m.items[id])
		}
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// step publishes random items to the model and returns the body.
func (m *model) step(r *rand.Rand, ids int, at time.Time) string {
	var parts []string
	for range r.IntN(6) {
		n := r.IntN(ids)
		item := fmt.Sprintf(`{"id":"i%d","v":%d,"text":"%s"}`, n, r.IntN(3), strings.Repeat("t", r.IntN(2)*40))
		m.publish(fmt.Sprintf("i%d", n), item, at)
		parts = append(parts, item)
	}
	return "[" + strings.Join(parts, ",") + "]"
}

func TestPropertyItemsAndViewsBehaveLikeTheModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		ids := rapid.SampledFrom([]int{5, 60, 600}).Draw(rt, "ids")
		m := &model{items: map[string]string{}, seen: map[string]time.Time{}}
		at := start
		all := func(string) bool { return true }
		m.publish("i0", `{"id":"i0"}`, at)
		s := items(t, byID, `[{"id":"i0"}]`)
		views := NewViews(s)
		var filters []Filter
		var open []*View
		for range 12 {
			f := randomFilter(r, ids)
			filters = append(filters, f)
			open = append(open, views.Open(f))
		}
		history, texts := []*Items{s}, []string{m.text(all)}
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			at = at.Add(time.Second)
			before := make([][]byte, len(open))
			for i, v := range open {
				before[i] = v.Bytes()
			}
			var next *Items
			if r.IntN(5) == 0 {
				limit := at.Add(-time.Duration(r.IntN(20)) * time.Second)
				m.expire(limit)
				next = s.Expire(limit)
			} else {
				next = publish(t, byID, s, m.step(r, ids, at), at).State.(*Items)
			}
			if got := string(next.Bytes()); got != m.text(all) || len(got) != next.Len() {
				t.Fatalf("got  %s\nwant %s", got, m.text(all))
			}
			delta := s.Delta(next)
			checkChange(t, s.Bytes(), next.Bytes(), delta.Change())
			checkViews(t, views.Advance(delta), open, before, filters, m)
			s = next
			history, texts = append(history, s), append(texts, m.text(all))
		}
		checkHistory(t, r, history, texts, filters)
	})
}

func randomFilter(r *rand.Rand, ids int) Filter {
	var list []string
	for range 1 + r.IntN(8) {
		list = append(list, fmt.Sprintf("i%d", r.IntN(ids)))
	}
	return NewFilter(list...)
}

// checkViews checks that each view is what its filter lets through, and that its subscribers were told if it changed.
func checkViews(t *testing.T, changes []ViewChange, open []*View, before [][]byte, filters []Filter, m *model) {
	t.Helper()
	changed := map[*View]jsonpatch.Change{}
	for _, c := range changes {
		changed[c.View] = c.Change
	}
	for i, v := range open {
		want := m.text(func(id string) bool {
			for _, listed := range filters[i].ids {
				if listed == id {
					return true
				}
			}
			return false
		})
		if string(v.Bytes()) != want {
			t.Fatalf("view %v is %s, want %s", filters[i].ids, v.Bytes(), want)
		}
		checkChange(t, before[i], v.Bytes(), changed[v])
	}
}

// checkHistory checks that old states are what they were, and that any of them can catch up with any later one.
func checkHistory(t *testing.T, r *rand.Rand, history []*Items, texts []string, filters []Filter) {
	t.Helper()
	last := history[len(history)-1]
	for i, s := range history {
		if string(s.Bytes()) != texts[i] {
			t.Fatalf("version %d became %s", i, s.Bytes())
		}
		checkChange(t, s.Bytes(), last.Bytes(), byID.Diff(s, last))
		f := filters[r.IntN(len(filters))]
		checkChange(t, s.Filtered(f), last.Filtered(f), FilteredDiff(s, last, f))
		loaded, err := byID.Load(s, byID.Store(last))
		if err != nil {
			t.Fatal(err)
		}
		checkChange(t, s.Bytes(), last.Bytes(), byID.Diff(s, loaded))
	}
}

// FuzzItems publishes any two bodies and follows the patch.
func FuzzItems(f *testing.F) {
	f.Add([]byte(`[{"id":1}]`), []byte(`[{"id":1,"v":2},{"id":"1"},{"x":0}]`))
	f.Add([]byte(`[{"id":"a","v":[1,2]}]`), []byte(`[{"id":"a","v":[2]},{"id":1e400},{"id":"\ud800"}]`))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		p, err := byID.Publish(nil, first, start)
		if err != nil || p.State == nil {
			return
		}
		q, err := byID.Publish(p.State, second, start)
		if err != nil {
			return
		}
		checkChange(t, p.State.Bytes(), q.State.Bytes(), q.Change)
		if parse(t, q.State.Bytes()).Len() != q.State.Len() {
			t.Fatal("the length is wrong")
		}
		if _, err := byID.Load(p.State, byID.Store(q.State)); err != nil {
			t.Fatal(err)
		}
	})
}
