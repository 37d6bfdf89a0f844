package jsonpatch

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	evanphx "github.com/evanphx/json-patch/v5"
)

func TestOperationsDoWhatTheRFCSays(t *testing.T) {
	for _, test := range []struct{ name, doc, patch, want string }{
		{"add a member", `{"a":1}`, `[{"op":"add","path":"/b","value":[2]}]`, `{"a":1,"b":[2]}`},
		{"add replaces a member in its place", `{"a":1,"b":2}`, `[{"op":"add","path":"/a","value":3}]`, `{"a":3,"b":2}`},
		{"add an element", `[1,3]`, `[{"op":"add","path":"/1","value":2}]`, `[1,2,3]`},
		{"add at the end by index", `[1]`, `[{"op":"add","path":"/1","value":2}]`, `[1,2]`},
		{"add at the end by dash", `[1]`, `[{"op":"add","path":"/-","value":2}]`, `[1,2]`},
		{"add to an empty array", `[]`, `[{"op":"add","path":"/0","value":2}]`, `[2]`},
		{"add the root", `[1]`, `[{"op":"add","path":"","value":{"a":1}}]`, `{"a":1}`},
		{"remove a member", `{"a":1,"b":2}`, `[{"op":"remove","path":"/a"}]`, `{"b":2}`},
		{"remove the only member", `{"a":1}`, `[{"op":"remove","path":"/a"}]`, `{}`},
		{"remove an element", `[1,2,3]`, `[{"op":"remove","path":"/1"}]`, `[1,3]`},
		{"replace a member", `{"a":{"b":1}}`, `[{"op":"replace","path":"/a/b","value":null}]`, `{"a":{"b":null}}`},
		{"replace the root", `1`, `[{"op":"replace","path":"","value":2}]`, `2`},
		{"move a member", `{"a":1,"b":{}}`, `[{"op":"move","from":"/a","path":"/b/c"}]`, `{"b":{"c":1}}`},
		{"move an element", `[1,2,3]`, `[{"op":"move","from":"/0","path":"/2"}]`, `[2,3,1]`},
		{"move to itself", `{"a":1}`, `[{"op":"move","from":"/a","path":"/a"}]`, `{"a":1}`},
		{"copy", `{"a":[1]}`, `[{"op":"copy","from":"/a","path":"/b"},{"op":"add","path":"/b/-","value":2}]`, `{"a":[1],"b":[1,2]}`},
		{"copy what was changed", `{"a":[1]}`, `[{"op":"add","path":"/a/-","value":2},{"op":"copy","from":"/a","path":"/b"},{"op":"remove","path":"/a/0"}]`, `{"a":[2],"b":[1,2]}`},
		{"copy the root into itself", `{"a":1}`, `[{"op":"copy","from":"","path":"/b"}]`, `{"a":1,"b":{"a":1}}`},
		{"test passes for another spelling", `{"a":[1.0,"\u0041",{"x":1,"y":2}]}`, `[{"op":"test","path":"/a","value":[1,"A",{"y":2e0,"x":1}]}]`, `{"a":[1.0,"\u0041",{"x":1,"y":2}]}`},
		{"test passes for what was changed", `{"a":[1]}`, `[{"op":"add","path":"/a/0","value":{"b":1}},{"op":"test","path":"","value":{"a":[{"b":1.0},1]}}]`, `{"a":[{"b":1},1]}`},
		{"escaped tokens", `{"a/b":1,"m~n":2,"~1":3}`, `[{"op":"replace","path":"/a~1b","value":4},{"op":"remove","path":"/m~0n"},{"op":"replace","path":"/~01","value":5}]`, `{"a/b":4,"~1":5}`},
		{"the empty token", `{"":{"":1}}`, `[{"op":"replace","path":"//","value":2}]`, `{"":{"":2}}`},
		{"a numeric name of a member", `{"0":1}`, `[{"op":"replace","path":"/0","value":2}]`, `{"0":2}`},
		{"a name that needs escaping", `{}`, `[{"op":"add","path":"/\"\\\u0001\ud800","value":1}]`, `{"\"\\\u0001\ud800":1}`},
		{"unknown members are ignored", `{}`, `[{"op":"add","path":"/a","value":1,"xyz":[2]}]`, `{"a":1}`},
		{"an empty patch", ` [ 1 ] `, `[]`, `[1]`},
		{"numbers stay exact", `{"a":12345678901234567890.10}`, `[{"op":"add","path":"/b","value":1E400},{"op":"copy","from":"/a","path":"/c"}]`, `{"a":12345678901234567890.10,"b":1E400,"c":12345678901234567890.10}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			doc := mustParse(t, test.doc)
			before := string(doc.Bytes())
			got, err := Apply(doc, []byte(test.patch), Limits{})
			if err != nil || string(got.Bytes()) != test.want {
				t.Fatalf("%v %v", got, err)
			}
			checkTape(t, got)
			if string(doc.Bytes()) != before {
				t.Fatal("the old document changed")
			}
		})
	}
}

func TestAFailingOperationIsNamed(t *testing.T) {
	const doc = `{"a":[1,2],"b":{"c":1},"s":"x"}`
	for _, test := range []struct {
		name, patch string
		index       int
		msg         string
	}{
		{"not an array", `{"op":"add"}`, -1, "a JSON Patch must be an array of operations"},
		{"not an object", `[1]`, 0, `operation 0 ("" ""): an operation must be an object`},
		{"no op", `[{"path":"/a"}]`, 0, `operation 0 ("" "/a"): "op" is missing`},
		{"an op that is no string", `[{"op":1,"path":"/a"}]`, 0, `operation 0 ("" "/a"): "op" must be a string`},
		{"an unknown op", `[{"op":"spam","path":"/a"}]`, 0, `operation 0 ("spam" "/a"): there is no such operation`},
		{"no path", `[{"op":"remove"}]`, 0, `operation 0 (remove ""): "path" is missing`},
		{"no value", `[{"op":"add","path":"/x"}]`, 0, `operation 0 (add "/x"): "value" is missing`},
		{"no from", `[{"op":"move","path":"/x"}]`, 0, `operation 0 (move "/x"): "from" is missing`},
		{"a path without slash", `[{"op":"remove","path":"a"}]`, 0, `operation 0 (remove "a"): "path" is no JSON Pointer: it must be empty or begin with '/'`},
		{"a bad escape", `[{"op":"remove","path":"/~2"}]`, 0, `operation 0 (remove "/~2"): "path" is no JSON Pointer: '~' must be followed by '0' or '1'`},
		{"the second operation", `[{"op":"remove","path":"/b"},{"op":"remove","path":"/b"}]`, 1, `operation 1 (remove "/b"): there is no member "b"`},
		{"an index too large", `[{"op":"add","path":"/a/3","value":0}]`, 0, `operation 0 (add "/a/3"): there is no array index "3"`},
		{"an enormous index", `[{"op":"add","path":"/a/99999999999999999999999","value":0}]`, 0, `operation 0 (add "/a/99999999999999999999999"): there is no array index "99999999999999999999999"`},
		{"a leading zero", `[{"op":"remove","path":"/a/01"}]`, 0, `operation 0 (remove "/a/01"): "01" is no array index`},
		{"a signed index", `[{"op":"remove","path":"/a/+1"}]`, 0, `operation 0 (remove "/a/+1"): "+1" is no array index`},
		{"a dash to remove", `[{"op":"remove","path":"/a/-"}]`, 0, `operation 0 (remove "/a/-"): there is no element after the last one`},
		{"into a scalar", `[{"op":"add","path":"/s/x","value":0}]`, 0, `operation 0 (add "/s/x"): "/s" is neither an object nor an array`},
		{"remove the root", `[{"op":"remove","path":""}]`, 0, `operation 0 (remove ""): the whole document cannot be removed`},
		{"move into itself", `[{"op":"move","from":"/b","path":"/b/c/d"}]`, 0, `operation 0 (move "/b/c/d"): a value cannot be moved into itself`},
		{"a missing from", `[{"op":"copy","from":"/x","path":"/y"}]`, 0, `operation 0 (copy "/y"): "from": there is no member "x"`},
		{"a failed test", `[{"op":"test","path":"/b/c","value":"1"}]`, 0, `operation 0 (test "/b/c"): the value differs`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Apply(mustParse(t, doc), []byte(test.patch), Limits{})
			var failed *PatchError
			if !errors.As(err, &failed) || failed.Index != test.index || err.Error() != test.msg {
				t.Fatalf("got %v", err)
			}
		})
	}
	_, err := Apply(mustParse(t, doc), []byte(`[{"op":"test","path":"/b","value":{}}]`), Limits{})
	if !errors.Is(err, ErrTest) {
		t.Fatal("a failed test cannot be told from other failures")
	}
	var syntax *SyntaxError
	if _, err := Apply(mustParse(t, doc), []byte(`[{"op":"remove","op":"remove"}]`), Limits{}); !errors.As(err, &syntax) {
		t.Fatal("a patch that is no strict JSON is accepted")
	}
}

func TestHostilePatchesStayBounded(t *testing.T) {
	t.Run("copies that double the document are refused", func(t *testing.T) {
		var ops strings.Builder
		for i := range 40 {
			fmt.Fprintf(&ops, `{"op":"copy","from":"","path":"/%d"},`, i)
		}
		_, err := Apply(mustParse(t, `{"b":"0123456789"}`), []byte("["+strings.TrimSuffix(ops.String(), ",")+"]"), Limits{MaxBytes: 1 << 16})
		if err == nil {
			t.Fatal("accepted")
		}
	})
	t.Run("copies of what changed in between cost their text", func(t *testing.T) {
		// Each round doubles the number of arrays, which take many times their two bytes while they are open to change.
		round := `{"op":"copy","from":"/a","path":"/b"},{"op":"add","path":"/a","value":[]},` + strings.Repeat(`{"op":"copy","from":"/b","path":"/a/-"},`, 2)
		ops := strings.TrimSuffix(strings.Repeat(round, 40), ",")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Apply(mustParse(t, `{"a":["x"]}`), []byte("["+ops+"]"), Limits{MaxBytes: 1 << 20})
		runtime.ReadMemStats(&after)
		if !errors.Is(err, ErrTooLong) {
			t.Errorf("it ends with %v", err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
			t.Errorf("it took %d MiB", took>>20)
		}
	})
	t.Run("nesting made by operations is refused", func(t *testing.T) {
		ops := strings.Repeat(`{"op":"add","path":"/0","value":[]},{"op":"move","from":"/1","path":"/0/0"},`, 600)
		_, err := Apply(mustParse(t, `[[1]]`), []byte("["+strings.TrimSuffix(ops, ",")+"]"), Limits{})
		if err == nil {
			t.Fatal("accepted")
		}
	})
	t.Run("many operations on a long array are not quadratic", func(t *testing.T) {
		doc := mustParse(t, "["+strings.TrimSuffix(strings.Repeat("0,", 200_000), ",")+"]")
		ops := strings.Repeat(`{"op":"remove","path":"/0"},{"op":"add","path":"/7","value":1},`, 10_000)
		got, err := Apply(doc, []byte("["+strings.TrimSuffix(ops, ",")+"]"), Limits{})
		if err != nil || got.Root().Len() != 200_000 {
			t.Fatal(err)
		}
	})
	t.Run("many operations on a wide object are not quadratic", func(t *testing.T) {
		var ops strings.Builder
		for i := range 10_000 {
			fmt.Fprintf(&ops, `{"op":"add","path":"/k%d","value":1},`, i)
			if i%3 == 0 {
				fmt.Fprintf(&ops, `{"op":"remove","path":"/k%d"},`, i/3)
			}
		}
		if _, err := Apply(mustParse(t, `{}`), []byte("["+strings.TrimSuffix(ops.String(), ",")+"]"), Limits{}); err != nil {
			t.Fatal(err)
		}
	})
}

// A slice and a list of names are as simple as an array and an object can be; thousands of operations must agree with them.
func TestManyOperationsAgreeWithASimpleModel(t *testing.T) {
	m := newMaker(1)
	t.Run("on an array", func(t *testing.T) {
		var model []any
		var ops []any
		for i := range 6000 {
			k := m.IntN(len(model) + 1)
			if grow := i < 4000; k < len(model) && (m.IntN(4) == 0) == grow {
				model = append(model[:k:k], model[k+1:]...)
				ops = append(ops, fmt.Sprintf(`{"op":"remove","path":"/%d"}`, k))
				continue
			}
			v := any(fmt.Sprint(i))
			model = append(model[:k:k], append([]any{v}, model[k:]...)...)
			ops = append(ops, fmt.Sprintf(`{"op":"add","path":"/%d","value":%d}`, k, i))
		}
		got, err := Apply(mustParse(t, `[]`), []byte(text(ops)), Limits{})
		if err != nil || string(got.Bytes()) != text(model) {
			t.Fatalf("%v", err)
		}
	})
	t.Run("on an object", func(t *testing.T) {
		model := &object{}
		var ops []any
		for i := range 3000 {
			if k := m.IntN(len(model.keys) + 1); k < len(model.keys) && (m.IntN(4) == 0) == (i < 1500) {
				ops = append(ops, fmt.Sprintf(`{"op":"remove","path":"/%s"}`, strings.Trim(model.keys[k], `"`)))
				model.keys, model.values = append(model.keys[:k:k], model.keys[k+1:]...), append(model.values[:k:k], model.values[k+1:]...)
				continue
			}
			model.set(fmt.Sprintf(`"k%d"`, i), fmt.Sprint(i))
			ops = append(ops, fmt.Sprintf(`{"op":"add","path":"/k%d","value":%d}`, i, i))
		}
		got, err := Apply(mustParse(t, `{}`), []byte(text(ops)), Limits{})
		if err != nil || string(got.Bytes()) != text(model) {
			t.Fatalf("%v", err)
		}
	})
}

func TestMergeDoesWhatTheRFCSays(t *testing.T) {
	for _, test := range []struct{ doc, patch, want string }{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`}, {`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`}, {`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`}, {`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`}, {`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`}, {`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`}, {`["a","b"]`, `["c","d"]`, `["c","d"]`},
		{`{"a":"b"}`, `["c"]`, `["c"]`}, {`{"a":"foo"}`, `null`, `null`}, {`{"a":"foo"}`, `"bar"`, `"bar"`}, {`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`}, {`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`}, {`{"a":1,"b":2}`, `{"\u0061":3}`, `{"a":3,"b":2}`},
		{`{"a":1.0}`, `{"b":[null,{"x":null}]}`, `{"a":1.0,"b":[null,{"x":null}]}`},
	} {
		got, err := Merge(mustParse(t, test.doc), []byte(test.patch), Limits{})
		if err != nil || string(got.Bytes()) != test.want {
			t.Errorf("%s + %s: %s %v", test.doc, test.patch, got.Bytes(), err)
			continue
		}
		checkTape(t, got)
	}
}

// refMerge is RFC 7396, section 2, on the reference's trees.
func refMerge(target, patch any) any {
	p, ok := patch.(refObject)
	if !ok {
		return patch
	}
	out := refObject{}
	if t, ok := target.(refObject); ok {
		for k, v := range t {
			out[k] = v
		}
	}
	for k, v := range p {
		if v == nil {
			delete(out, k)
		} else {
			out[k] = refMerge(out[k], v)
		}
	}
	return out
}

func FuzzMerge(f *testing.F) {
	for seed := range uint64(24) {
		m := newMaker(seed)
		f.Add([]byte(text(m.value(3))), []byte(text(m.value(3))))
	}
	f.Fuzz(func(t *testing.T, doc, patch []byte) {
		d, err := Parse(doc, Limits{})
		if err != nil {
			return
		}
		if _, err := Parse(patch, Limits{}); err != nil {
			return
		}
		got, err := Merge(d, patch, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if want := refMerge(mustReference(t, doc), mustReference(t, patch)); !reflect.DeepEqual(mustReference(t, got.text), want) {
			t.Fatalf("%s + %s = %s", doc, patch, got.text)
		}
	})
}

// FuzzApply applies any patch to any document. Where an independent applier succeeds too, the results must agree; it is laxer
// and stricter than RFC 6902 in places, so failures are not compared.
func FuzzApply(f *testing.F) {
	for _, p := range []string{
		`[{"op":"add","path":"/a","value":1},{"op":"copy","from":"/a","path":"/b"}]`, `[{"op":"move","from":"/a/0","path":"/a/-"}]`, `[{"op":"test","path":"/a","value":[1,2]}]`,
		`[{"op":"remove","path":"/a/0"},{"op":"replace","path":"/b","value":{"x":[]}}]`, `[{"op":"add","path":"","value":[]},{"op":"add","path":"/-","value":{}},{"op":"add","path":"/0/~1","value":1}]`,
	} {
		f.Add([]byte(`{"a":[1,2],"b":{"c":null}}`), []byte(p))
	}
	f.Fuzz(func(t *testing.T, doc, patch []byte) {
		limits := Limits{MaxBytes: 1 << 16}
		d, err := Parse(doc, limits)
		if err != nil {
			return
		}
		before := string(d.text)
		got, err := Apply(d, patch, limits)
		if string(d.text) != before {
			t.Fatal("the old document changed")
		}
		if err != nil {
			return
		}
		checkTape(t, got)
		checkAgainstEvanphx(t, d, patch, got)
	})
}

func checkAgainstEvanphx(t *testing.T, d *Document, patch []byte, got *Document) {
	text := string(d.text) + string(patch)
	// Its test operation and its handling of null, of escapes, of empty keys and of the root have rules of their own.
	if strings.Contains(text, `\u`) || strings.Contains(text, "null") || strings.Contains(text, `"test"`) || strings.Contains(text, `"path":""`) || strings.Contains(text, `"from":""`) || strings.Contains(text, `"":`) {
		return
	}
	decoded, err := evanphx.DecodePatch(patch)
	if err != nil {
		return
	}
	options := evanphx.NewApplyOptions()
	options.SupportNegativeIndices, options.EscapeHTML = false, false
	other, err := decoded.ApplyWithOptions(d.text, options)
	if err != nil || !json.Valid(other) {
		return
	}
	checkSame(t, got.text, other)
}

func TestAPatchThatWasReadOnceAppliesToManyDocuments(t *testing.T) {
	patch, err := ParsePatch([]byte(`[{"op":"add","path":"/list/-","value":{"n":1}},{"op":"copy","from":"/list/0","path":"/first"}]`), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	merge, err := ParseMergePatch([]byte(`{"gone":null,"deep":{"n":1}}`), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for doc, want := range map[string][2]string{
		`{"list":[],"gone":1}`:           {`{"list":[{"n":1}],"gone":1,"first":{"n":1}}`, `{"list":[],"deep":{"n":1}}`},
		`{"list":[2],"deep":{"gone":1}}`: {`{"list":[2,{"n":1}],"deep":{"gone":1},"first":2}`, `{"list":[2],"deep":{"gone":1,"n":1}}`},
	} {
		for range 2 {
			patched, err := patch.Apply(mustParse(t, doc), Limits{})
			if err != nil || string(patched.Bytes()) != want[0] {
				t.Errorf("%s becomes %s by operations, %v", doc, patched.Bytes(), err)
			}
			merged, err := merge.Apply(mustParse(t, doc), Limits{})
			if err != nil || string(merged.Bytes()) != want[1] {
				t.Errorf("%s becomes %s by a merge, %v", doc, merged.Bytes(), err)
			}
		}
	}
}

func TestAPatchOfAShortArrayTakesLittleMemory(t *testing.T) {
	const runs = 100
	doc, patch := mustParse(t, `[1,2,3]`), []byte(`[{"op":"replace","path":"/0","value":4}]`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		if _, err := Apply(doc, patch, Limits{}); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / runs; each > 4<<10 {
		t.Errorf("it takes %d bytes", each)
	}
}
