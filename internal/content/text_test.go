package content

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/freshet-io/freshet/internal/jsonpatch"
)

func TestAStateThatWasPutAwayIsPublishedToAsBefore(t *testing.T) {
	rules := SnapshotRules(jsonpatch.Limits{})
	first, err := rules.Publish(nil, []byte(`{"a":1, "b":[1,2]}`), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	folded := Fold(first.State)
	if _, ok := folded.(*Text); !ok || string(folded.Bytes()) != string(first.State.Bytes()) || Size(folded) >= Size(first.State) {
		t.Fatalf("folded to %T of %d bytes", folded, Size(folded))
	}
	if Size(folded) != FoldedSize(first.State) {
		t.Errorf("a folded state takes %d bytes, not the %d that were foretold", Size(folded), FoldedSize(first.State))
	}
	for _, body := range []string{`{"a":2,"b":[1,2]}`, `{"a":1,"b":[1,2]}`, ` {"b":[1,2],"a":1}`, `{"a":1,"b":[]}`, `7`} {
		want, err := rules.Publish(first.State, []byte(body), time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := rules.Publish(folded, []byte(body), time.Time{})
		if err != nil || got.Change.Kind != want.Change.Kind || string(got.Change.Patch) != string(want.Change.Patch) {
			t.Errorf("%s: %v %s, want %s (%v)", body, got.Change.Kind, got.Change.Patch, want.Change.Patch, err)
		}
		if got.Change.Kind == jsonpatch.Same && got.State != folded {
			t.Errorf("%s: the same document is another state", body)
		}
		if change := rules.Diff(folded, Fold(want.State)); string(change.Patch) != string(want.Change.Patch) {
			t.Errorf("%s: Diff of folded states is %s", body, change.Patch)
		}
	}
	if _, err := rules.Publish(folded, []byte(`{`), time.Time{}); err == nil {
		t.Error("half a document was taken")
	}
	if doc, ok := rules.Unfold(folded).(*jsonpatch.Document); !ok || !jsonpatch.Equal(doc, first.State.(*jsonpatch.Document)) {
		t.Error("it cannot be unfolded")
	}
	if broken := NewText([]byte(`{`)); rules.Unfold(broken) != broken || rules.Diff(broken, first.State).Kind != jsonpatch.Whole {
		t.Error("what cannot be read is read")
	}
}

func TestSizesAreAboutWhatStatesTake(t *testing.T) {
	items := ItemRules([]string{"id"}, jsonpatch.Limits{})
	many := func(n int, item string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, ","+item, i)
		}
		return "[" + b.String()[1:] + "]"
	}
	for _, test := range []struct {
		name, body string
		rules      Rules
	}{
		{"zeros", "[0" + strings.Repeat(",0", 1<<20) + "]", SnapshotRules(jsonpatch.Limits{})},
		{"objects", many(20000, `{"id":%d,"name":"some name","price":12.5}`), SnapshotRules(jsonpatch.Limits{})},
		{"small items", many(50000, `{"id":%d}`), items},
		{"items", many(20000, `{"id":%d,"name":"some name","price":12.5,"tags":["a","b"]}`), items},
	} {
		t.Run(test.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.GC()
			runtime.ReadMemStats(&before)
			p, err := test.rules.Publish(nil, []byte(test.body), time.Now())
			if err != nil {
				t.Fatal(err)
			}
			p.State.Bytes()
			runtime.GC()
			runtime.GC()
			runtime.ReadMemStats(&after)
			took, size := float64(after.HeapAlloc)-float64(before.HeapAlloc), float64(Size(p.State))
			if size < 0.85*took || size > 1.6*took {
				t.Errorf("it took %.0f bytes and is counted as %.0f", took, size)
			}
			t.Logf("%.0f bytes, counted as %.0f", took, size)
			runtime.KeepAlive(p)
		})
	}
}
