package freshet

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheFirstCharacterOfAnItemPathSeparatesTheRest(t *testing.T) {
	for text, want := range map[string][]string{
		".Identifier.Symbol": {"Identifier", "Symbol"}, "|Identifier|Symbol": {"Identifier", "Symbol"}, ".id": {"id"}, "/a.b/c": {"a.b", "c"},
		"é名é前": {"名", "前"}, "🦫a🦫b": {"a", "b"}, ". ": {" "}, "..a": nil, ".a.": nil, ".": nil, "": nil, "a": nil, ".a\n": nil, ".\xff": nil,
		"." + strings.Repeat("a", 1023): {strings.Repeat("a", 1023)}, "." + strings.Repeat("a", 1024): nil,
	} {
		p, err := ParseItemPath(text)
		if (err == nil) != (want != nil) {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if err != nil {
			if faults := faultsOf(t, err); faults["publisher.payload.item_id_path"] == "" || p.String() != "" {
				t.Errorf("%q: %v, %q", text, err, p)
			}
			continue
		}
		if diff := cmp.Diff(want, p.Segments()); diff != "" || p.String() != text {
			t.Errorf("%q: %s, %s", text, diff, p)
		}
	}
}

func TestPathsAreEqualWhateverSeparatesThem(t *testing.T) {
	parse := func(text string) ItemPath {
		p, err := ParseItemPath(text)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	a := parse(".Identifier.Symbol")
	if !a.Equal(parse("|Identifier|Symbol")) || !a.Equal(a) || !(ItemPath{}).Equal(ItemPath{}) {
		t.Error("equal paths differ")
	}
	for _, other := range []string{".identifier.Symbol", ".Identifier", ".Identifier.Symbol.x", "|Identifier.Symbol"} {
		if a.Equal(parse(other)) {
			t.Errorf("%s equals %s", a, other)
		}
	}
	if (Payload{PayloadItem, a}).Equal(Payload{PayloadSnapshot, a}) || !(Payload{PayloadItem, a}).Equal(Payload{PayloadItem, parse("|Identifier|Symbol")}) {
		t.Error("payloads")
	}
}

func FuzzItemPath(f *testing.F) {
	for _, seed := range []string{".a", "|a|b", "", "..", "é", "\xff\xfe"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParseItemPath(text)
		if err != nil {
			return
		}
		for _, s := range p.Segments() {
			if s == "" || strings.ContainsRune(s, []rune(text)[0]) {
				t.Errorf("%q has the segment %q", text, s)
			}
		}
		if len(p.Segments()) == 0 || p.String() != text {
			t.Errorf("%q was read as %q", text, p.Segments())
		}
	})
}
