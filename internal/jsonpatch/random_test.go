package jsonpatch

import (
	"testing"
)

// checkStep checks everything that must hold between a document and the text of its next version.
func checkStep(t testing.TB, a *Document, next string) *Document {
	t.Helper()
	b := mustParse(t, next)
	guided, err := ParseNext(a, []byte(next), Limits{})
	if err != nil {
		t.Fatalf("ParseNext refuses what Parse takes: %v\nold %s\nnew %s", err, a.text, next)
	}
	checkTape(t, guided)
	checkSame(t, guided.text, []byte(next))
	change := Diff(a, b)
	doc, fast, err := Next(a, []byte(next), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if (fast.Kind == Same) != (change.Kind == Same) {
		t.Fatalf("Next and Diff differ\nold %s\nnew %s\n%s\n%s", a.text, next, fast.Patch, change.Patch)
	}
	checkChange(t, a, b, change)
	checkChange(t, a, b, fast)
	if !Equal(doc, b) {
		t.Fatalf("Next returns %s for %s", doc.text, next)
	}
	return doc
}

// checkChange applies a change and compares.
func checkChange(t testing.TB, a, b *Document, change Change) {
	t.Helper()
	switch change.Kind {
	case Same:
		checkSame(t, a.text, b.text)
	case Patched:
		got, err := Apply(a, change.Patch, Limits{})
		if err != nil {
			t.Fatalf("Apply: %v\nold %s\nnew %s\npatch %s", err, a.text, b.text, change.Patch)
		}
		checkTape(t, got)
		checkSame(t, got.text, b.text)
		checkPatch(t, change.Patch, len(b.text))
	case Whole:
	}
}

// checkPatch checks the form that every patch of ours has.
func checkPatch(t testing.TB, patch []byte, document int) {
	t.Helper()
	if len(patch) > wholeAbove && len(patch) > document {
		t.Fatalf("the patch has %d bytes, the document %d", len(patch), document)
	}
	ops := mustParse(t, string(patch))
	if ops.Root().Len() == 0 {
		t.Fatal("an empty patch")
	}
	for op := range ops.Root().Elements() {
		switch memberText(op, "op") {
		case "add", "replace", "remove":
		default:
			t.Fatalf("operation %s", op.Bytes())
		}
		if memberText(op, "path") == "" {
			t.Fatalf("root path in %s", patch)
		}
	}
}

func TestEveryVersionFollowsFromTheOneBeforeByItsPatch(t *testing.T) {
	for seed := range uint64(400) {
		m := newMaker(seed)
		v := m.value(4)
		doc := mustParse(t, text(v))
		for range 4 {
			v = m.changed(v, 4)
			next := text(v)
			if m.IntN(3) == 0 {
				next = m.spaced(next)
			}
			doc = checkStep(t, doc, next)
		}
	}
}
