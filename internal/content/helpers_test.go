package content

import (
	"testing"
	"time"

	"github.com/freshet-io/freshet/internal/jsonpatch"
)

var start = time.UnixMilli(1_700_000_000_000)

// byID are the rules of an item topic whose items have a member "id".
var byID = ItemRules([]string{"id"}, jsonpatch.Limits{})

func parse(t testing.TB, text []byte) *jsonpatch.Document {
	t.Helper()
	d, err := jsonpatch.Parse(text, jsonpatch.Limits{})
	if err != nil {
		t.Fatalf("%.300s: %v", text, err)
	}
	return d
}

// publish publishes and fails on errors.
func publish(t testing.TB, r Rules, prev State, body string, at time.Time) Publication {
	t.Helper()
	p, err := r.Publish(prev, []byte(body), at)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// items publishes bodies one after another.
func items(t testing.TB, r Rules, bodies ...string) *Items {
	t.Helper()
	var s State
	for _, body := range bodies {
		s = publish(t, r, s, body, start).State
	}
	return s.(*Items)
}

// checkChange applies a change to the old document and compares with the new one.
func checkChange(t testing.TB, old, new []byte, c jsonpatch.Change) {
	t.Helper()
	switch c.Kind {
	case jsonpatch.Same:
		if !jsonpatch.Equal(parse(t, old), parse(t, new)) {
			t.Fatalf("no change, but %s became %s", old, new)
		}
	case jsonpatch.Patched:
		got, err := jsonpatch.Apply(parse(t, old), c.Patch, jsonpatch.Limits{})
		if err != nil {
			t.Fatalf("%v\nold   %s\nnew   %s\npatch %s", err, old, new, c.Patch)
		}
		if !jsonpatch.Equal(got, parse(t, new)) {
			t.Fatalf("got %s\nold   %s\nnew   %s\npatch %s", got.Bytes(), old, new, c.Patch)
		}
		if len(c.Patch) > wholeAbove && len(c.Patch) > len(new) {
			t.Fatalf("the patch has %d bytes, the document %d", len(c.Patch), len(new))
		}
	}
}
