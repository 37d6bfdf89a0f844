package jsonpatch

import (
	"fmt"
	"strings"
	"testing"
)

func TestJoinedChangesAreShort(t *testing.T) {
	long := strings.Repeat("x", 200)
	for _, test := range []struct {
		name     string
		versions []string
		patch    string // by comparing the first version with the last
		joined   string // by those between
	}{
		{"what was overwritten is left out", []string{`{"a":1,"b":1}`, `{"a":2,"b":1}`, `{"a":3,"b":1}`, `{"a":4,"b":1}`},
			`[{"op":"replace","path":"/a","value":4}]`, `[{"op":"replace","path":"/a","value":4}]`},
		{"what is around it overwrites too", []string{`{"a":{"b":"` + long + `","c":1}}`, `{"a":{"b":"` + long + `","c":2}}`, `{"a":[]}`},
			`[{"op":"replace","path":"/a","value":[]}]`, `[{"op":"replace","path":"/a","value":[]}]`},
		{"a way there and back is nothing", []string{`{"a":1}`, `{"a":2}`, `{"a":1}`}, ``, `[{"op":"replace","path":"/a","value":1}]`},
		{"additions are joined as they are", []string{`[1]`, `[1,2]`, `[1,2,3]`},
			`[{"op":"add","path":"/-","value":2},{"op":"add","path":"/-","value":3}]`, `[{"op":"add","path":"/-","value":2},{"op":"add","path":"/-","value":3}]`},
		{"a value replaced before something inside it stays", []string{`{"a":1}`, `{"a":{"b":"` + long + `","c":1}}`, `{"a":{"b":"` + long + `","c":2}}`},
			`[{"op":"replace","path":"/a","value":{"b":"` + long + `","c":2}}]`,
			`[{"op":"replace","path":"/a","value":{"b":"` + long + `","c":1}},{"op":"replace","path":"/a/c","value":2}]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			docs := []*Document{mustParse(t, test.versions[0])}
			var patches [][]byte
			for i, v := range test.versions[1:] {
				next, change, err := Next(docs[i], []byte(v), Limits{})
				if err != nil {
					t.Fatal(err)
				}
				docs, patches = append(docs, next), append(patches, change.Patch)
			}
			first, last := docs[0], docs[len(docs)-1]
			change := Diff(first, last)
			if string(change.Patch) != test.patch {
				t.Errorf("%s", change.Patch)
			}
			checkChange(t, first, last, change)
			change = Join(len(last.text), patches...)
			if string(change.Patch) != test.joined {
				t.Errorf("joined %s", change.Patch)
			}
			checkChange(t, first, last, change)
		})
	}
}

func TestAJoinedChangeMayBeTheWholeDocument(t *testing.T) {
	var patches [][]byte
	for i := range 300 {
		patches = append(patches, fmt.Appendf(nil, `[{"op":"add","path":"/k%d","value":1},{"op":"remove","path":"/k%d"}]`, i, i))
	}
	c := mustParse(t, `{"a":1}`)
	if change := Join(len(c.text), patches...); change.Kind != Whole {
		t.Fatalf("%d bytes", len(change.Patch))
	}
	if change := Diff(mustParse(t, `[]`), c); change.Kind != Whole {
		t.Fatal("the root changed")
	}
}

func TestAShrinkingDocumentGivesItsMemoryBack(t *testing.T) {
	large := mustParse(t, "["+strings.Repeat("0,", 10000)+"0]")
	for _, src := range []string{`[]`, `[` + strings.Repeat("0,", 5000) + `0]`, `[` + strings.Repeat("0,", 9000) + `0]`, `[` + strings.Repeat("0,", 30000) + `0]`} {
		d, err := ParseNext(large, []byte(src), Limits{})
		if err != nil || cap(d.tape) > len(d.tape)*3/2+16 {
			t.Fatalf("%d nodes in room for %d (%v)", len(d.tape), cap(d.tape), err)
		}
	}
}
