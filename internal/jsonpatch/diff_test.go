package jsonpatch

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	evanphx "github.com/evanphx/json-patch/v5"
	"pgregory.net/rapid"
)

func TestAChangeIsTheSmallestSensiblePatch(t *testing.T) {
	rows := make([]string, 60)
	for i := range rows {
		rows[i] = fmt.Sprintf(`{"id":%d,"name":"row number %d","price":%d.5}`, i, i, i*3)
	}
	table := "[" + strings.Join(rows, ",") + "]"
	zeros := "0" + strings.Repeat(",0", 29)
	for _, test := range []struct{ name, old, new, patch string }{
		{"a member is replaced", `{"a":1,"b":2}`, `{"a":1,"b":3}`, `[{"op":"replace","path":"/b","value":3}]`},
		{"a member is added", `{"a":1}`, `{"a":1,"b":{"c":2}}`, `[{"op":"add","path":"/b","value":{"c":2}}]`},
		{"a member is removed", `{"a":1,"b":2}`, `{"b":2}`, `[{"op":"remove","path":"/a"}]`},
		{"a member changes inside", `{"a":{"b":"a long text that stays as it is","c":1}}`, `{"a":{"b":"a long text that stays as it is","c":2}}`,
			`[{"op":"replace","path":"/a/c","value":2}]`},
		{"replacing is shorter than changing inside", `{"a":{"b":1,"c":2}}`, `{"a":{"b":3,"c":4}}`, `[{"op":"replace","path":"/a","value":{"b":3,"c":4}}]`},
		{"another kind replaces", `{"a":[1]}`, `{"a":{"b":1}}`, `[{"op":"replace","path":"/a","value":{"b":1}}]`},
		{"null is a value", `{"a":1}`, `{"a":null}`, `[{"op":"replace","path":"/a","value":null}]`},
		{"a key is escaped in the path", `{"a/b~c":1,"\"":{"é":0}}`, `{"a/b~c":2,"\"":{"é":1}}`,
			`[{"op":"replace","path":"/a~1b~0c","value":2},{"op":"replace","path":"/\"/é","value":1}]`},
		{"an escaped slash in a key is a slash", `{"a\/b":1}`, `{"a\u002fb":2}`, `[{"op":"replace","path":"/a~1b","value":2}]`},
		{"a lone surrogate in a key stays one", `{"/\ud800":1}`, `{"/\ud800":2}`, `[{"op":"replace","path":"/~1\ud800","value":2}]`},
		{"the empty key is a key", `{"":1,"a":1}`, `{"":2,"a":1}`, `[{"op":"replace","path":"/","value":2}]`},
		{"values are carried as written", `{"a":1}`, `{"a":[1.50,"\u0041",1e400]}`, `[{"op":"replace","path":"/a","value":[1.50,"\u0041",1e400]}]`},
		{"an element in front is one add", table, `[{"id":-1},` + table[1:], `[{"op":"add","path":"/0","value":{"id":-1}}]`},
		{"an element at the end is added at the end", `[1,2]`, `[1,2,3]`, `[{"op":"add","path":"/-","value":3}]`},
		{"the first element goes", table, "[" + strings.Join(rows[1:], ",") + "]", `[{"op":"remove","path":"/0"}]`},
		{"a window slides", `["aaaaaaaaaa","bbbbbbbbbb","cccccccccc"]`, `["bbbbbbbbbb","cccccccccc","dddddddddd"]`,
			`[{"op":"remove","path":"/0"},{"op":"add","path":"/-","value":"dddddddddd"}]`},
		{"an element changes inside", table, strings.Replace(table, `"price":15.5`, `"price":16.5`, 1), `[{"op":"replace","path":"/5/price","value":16.5}]`},
		{"an element goes and another changes inside", table, strings.Replace("["+strings.Join(append(append([]string{}, rows[:3]...), rows[4:]...), ",")+"]", `"price":15.5`, `"price":16.5`, 1),
			`[{"op":"remove","path":"/3"},{"op":"replace","path":"/4/price","value":16.5}]`},
		{"a changed element beside an inserted one is still changed inside", table,
			strings.Replace(table, rows[5], `{"id":-1,"name":"a new one","price":0},`+strings.Replace(rows[5], "15.5", "16.5", 1), 1),
			`[{"op":"add","path":"/5","value":{"id":-1,"name":"a new one","price":0}},{"op":"replace","path":"/6/price","value":16.5}]`},
		{"one comes in front, one goes at the end, and all others change a little", ages(0, 30), ages(1, 30), "[" + agesPatch(30) + "]"},
		{"repeated elements are no problem", `[0,0,0,0,1,0,0,0,0,0]`, `[0,0,0,0,0,0,0,0,0]`, `[{"op":"remove","path":"/4"}]`},
		{"an element in front of equal ones is one add", "[" + zeros + "]", `["new",` + zeros + "]", `[{"op":"add","path":"/0","value":"new"}]`},
		{"an element between equal ones is one add", "[1," + zeros + ",2]", `[1,0,"new",` + zeros[2:] + ",2]", `[{"op":"add","path":"/2","value":"new"}]`},
		{"an element between equal ones goes", `[{"t":1},"old",{"t":1},{"t":1},` + table[1:], `[{"t":1},{"t":1},{"t":1},` + table[1:], `[{"op":"remove","path":"/1"}]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			a, b := mustParse(t, test.old), mustParse(t, test.new)
			if change := Diff(a, b); change.Kind != Patched || string(change.Patch) != test.patch {
				t.Errorf("Diff: %d %s", change.Kind, change.Patch)
			}
			_, change, err := Next(a, []byte(test.new), Limits{})
			if err != nil || change.Kind != Patched || string(change.Patch) != test.patch {
				t.Errorf("Next: %d %s %v", change.Kind, change.Patch, err)
			}
			checkStep(t, a, test.new)
		})
	}
}

// ages returns a list of items, newest first, that tell their age.
func ages(from, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,{"title":"the item that came as number %d","author":"somebody","age":%d}`, 100+from-i, i)
	}
	return "[" + b.String()[1:] + "]"
}

// agesPatch is what one more item does to ages.
func agesPatch(n int) string {
	patch := `{"op":"add","path":"/0","value":{"title":"the item that came as number 101","author":"somebody","age":0}}`
	for i := 1; i < n; i++ {
		patch += fmt.Sprintf(`,{"op":"replace","path":"/%d/age","value":%d}`, i, i)
	}
	return patch + fmt.Sprintf(`,{"op":"remove","path":"/%d"}`, n)
}

func TestAnotherSpellingIsNoChange(t *testing.T) {
	old := `{"a":1,"b":"A/B","c":[1.5,{"x":null,"y":100}]}`
	for _, spelling := range []string{
		` { "c" : [ 1.50, {"y":1e2,"x":null} ], "b":"\u0041\/B", "a":1.0 } `, `{"b":"A/B","a":1e0,"c":[15e-1,{"x":null,"y":100.0}]}`,
	} {
		a := mustParse(t, old)
		d, change, err := Next(a, []byte(spelling), Limits{})
		if err != nil || change.Kind != Same || d != a || Diff(a, mustParse(t, spelling)).Kind != Same {
			t.Errorf("%s: %v %s %v", spelling, change.Kind, change.Patch, err)
		}
	}
}

func TestTheWholeDocumentIsSent(t *testing.T) {
	long := func(seed int) string {
		var b strings.Builder
		for i := range 300 {
			fmt.Fprintf(&b, `,"text %d of version %d"`, i*seed, seed)
		}
		return "[" + b.String()[1:] + "]"
	}
	for _, test := range []struct{ name, old, new string }{
		{"when the root changes its kind", `{}`, `[]`},
		{"when the root is a scalar", `1`, `2`},
		{"when the root becomes null", `{"a":1}`, `null`},
		{"when the patch is longer than 4 KiB and the document", long(3), long(7)},
	} {
		t.Run(test.name, func(t *testing.T) {
			if change := Diff(mustParse(t, test.old), mustParse(t, test.new)); change.Kind != Whole || change.Patch != nil {
				t.Fatalf("%d %s", change.Kind, change.Patch)
			}
		})
	}
	if change := Diff(mustParse(t, `[1]`), mustParse(t, `[2]`)); change.Kind != Patched {
		t.Fatal("a small document gets its patch, though that is longer")
	}
}

// checkEvanphx applies a change with an independent applier. That one takes the empty key for the object itself, and respells
// escaped surrogates; patches with either are left out.
func checkEvanphx(t testing.TB, a, b *Document, change Change) {
	t.Helper()
	if change.Kind != Patched || strings.Contains(string(a.text)+string(b.text), `\u`) || hasEmptyToken(t, change.Patch) {
		return
	}
	patch, err := evanphx.DecodePatch(change.Patch)
	if err != nil {
		t.Fatalf("evanphx refuses %s: %v", change.Patch, err)
	}
	got, err := patch.ApplyWithOptions(a.text, &evanphx.ApplyOptions{EscapeHTML: false})
	if err != nil {
		t.Fatalf("evanphx cannot apply %s to %s: %v", change.Patch, a.text, err)
	}
	checkSame(t, got, b.text)
}

// hasEmptyToken reports whether a path of a patch goes through the empty key.
func hasEmptyToken(t testing.TB, patch []byte) bool {
	for op := range mustParse(t, string(patch)).Root().Elements() {
		path, err := parsePointer(memberText(op, "path"))
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(path, "") {
			return true
		}
	}
	return false
}

func TestAnIndependentApplierGetsTheSame(t *testing.T) {
	for seed := range uint64(250) {
		m := newMaker(seed + 1<<32)
		v := m.value(4)
		a, b := mustParse(t, text(v)), mustParse(t, text(m.changed(v, 4)))
		checkEvanphx(t, a, b, Diff(a, b))
		_, change, err := Next(a, b.text, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		checkEvanphx(t, a, b, change)
	}
}

func TestLongArraysWithFewDistinctValues(t *testing.T) {
	for seed := range uint64(60) {
		m := newMaker(seed)
		old := make([]any, m.IntN(400))
		for i := range old {
			old[i] = m.pick([]string{"0", "1", `"x"`}[:2+m.IntN(2)])
		}
		next := append([]any{}, old...)
		for range m.IntN(12) {
			k := m.IntN(len(next) + 1)
			switch {
			case m.IntN(3) == 0 && k < len(next):
				next = append(next[:k:k], next[k+1:]...)
			case m.IntN(2) == 0 && k < len(next):
				next[k] = m.pick([]string{"0", "1"})
			default:
				next = append(next[:k:k], append([]any{m.pick([]string{"0", "1"})}, next[k:]...)...)
			}
		}
		checkStep(t, mustParse(t, text(old)), text(next))
	}
}

func TestArraysOfRowsThatMoveAndChange(t *testing.T) {
	for seed := range uint64(50) {
		m := newMaker(seed)
		var rows []any
		row := func() any {
			return &object{[]string{`"id"`, `"name"`, `"v"`}, []any{fmt.Sprint(m.IntN(1000)), `"` + strings.Repeat("n", 1+m.IntN(30)) + `"`, fmt.Sprint(m.IntN(50))}}
		}
		for range 20 + m.IntN(60) {
			rows = append(rows, row())
		}
		doc := mustParse(t, text(rows))
		for range 4 {
			for range m.IntN(8) {
				k, l := m.IntN(len(rows)), m.IntN(len(rows))
				switch m.IntN(4) {
				case 0:
					rows = append(rows[:k:k], append([]any{row()}, rows[k:]...)...)
				case 1:
					rows = append(rows[:k:k], rows[k+1:]...)
				case 2:
					rows[k], rows[l] = rows[l], rows[k]
				default:
					old := rows[k].(*object)
					rows[k] = &object{old.keys, []any{old.values[0], old.values[1], fmt.Sprint(m.IntN(50))}}
				}
			}
			doc = checkStep(t, doc, text(rows))
		}
	}
}

// anyValue draws JSON values, recursively.
func anyValue(levels int) *rapid.Generator[any] {
	scalar := rapid.OneOf(rapid.SampledFrom(makerTexts), rapid.SampledFrom(makerNumbers), rapid.SampledFrom([]string{"null", "true", "false"}))
	if levels == 0 {
		return rapid.Map(scalar, func(s string) any { return s })
	}
	return rapid.Custom(func(t *rapid.T) any {
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			return scalar.Draw(t, "scalar")
		case 1, 2:
			return rapid.SliceOfN(anyValue(levels-1), 0, 6).Draw(t, "elements")
		}
		obj := &object{}
		for range rapid.IntRange(0, 6).Draw(t, "members") {
			obj.set(rapid.SampledFrom(makerTexts).Draw(t, "key"), anyValue(levels-1).Draw(t, "value"))
		}
		return obj
	})
}

func TestPropertyAPatchLeadsToTheNewDocument(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		a := mustParse(t, text(anyValue(3).Draw(r, "old")))
		next := text(anyValue(3).Draw(r, "new"))
		checkStep(t, a, next)
		b := mustParse(t, next)
		checkEvanphx(t, a, b, Diff(a, b))
	})
}

func TestPropertyJoinedChangesLeadToTheLastDocument(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		m := newMaker(rapid.Uint64().Draw(r, "seed"))
		v := m.value(3)
		first := mustParse(t, text(v))
		last := first
		var patches [][]byte
		for range rapid.IntRange(1, 6).Draw(r, "versions") {
			v = m.changed(v, 3)
			next, change, err := Next(last, []byte(text(v)), Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if change.Kind == Whole {
				first, patches = next, nil
			}
			if change.Kind == Patched {
				patches = append(patches, change.Patch)
			}
			last = next
		}
		checkChange(t, first, last, Diff(first, last))
		if len(patches) > 0 {
			checkChange(t, first, last, Join(len(last.text), patches...))
		}
	})
}

// FuzzDiff applies the change between any two documents.
func FuzzDiff(f *testing.F) {
	for i, s := range parseSeeds {
		f.Add([]byte(s), []byte(parseSeeds[(i+3)%len(parseSeeds)]))
	}
	for seed := range uint64(24) {
		m := newMaker(seed)
		v := m.value(3)
		f.Add([]byte(text(v)), []byte(text(m.changed(v, 3))))
	}
	f.Fuzz(func(t *testing.T, old, next []byte) {
		a, err := Parse(old, Limits{})
		if err != nil {
			return
		}
		b, err := Parse(next, Limits{})
		if err != nil {
			return
		}
		checkStep(t, a, string(next))
		checkEvanphx(t, a, b, Diff(a, b))
		edits := Compare(a, b)
		got, err := Apply(mustParse(t, "["+string(a.text)+"]"), append(edits.Append([]byte{'['}, "/0"), ']'), Limits{MaxDepth: 600})
		if err != nil {
			t.Fatal(err)
		}
		checkSame(t, got.text, []byte("["+string(b.text)+"]"))
	})
}
