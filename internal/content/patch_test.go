package content

import (
	"errors"
	"testing"

	"github.com/freshet-io/freshet/internal/jsonpatch"
)

func TestAPatchMakesTheNextStateOrNothing(t *testing.T) {
	rules := SnapshotRules(jsonpatch.Limits{})
	patch, err := jsonpatch.ParsePatch([]byte(`[{"op":"replace","path":"/n","value":2}]`), jsonpatch.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rules.Patch(nil, patch, jsonpatch.Limits{}); !errors.Is(err, ErrNoDocument) {
		t.Errorf("nothing was patched: %v", err)
	}
	for name, prev := range map[string]State{"a document": parse(t, []byte(`{"n":1}`)), "a text that was put away": NewText([]byte(`{"n":1}`))} {
		made, err := rules.Patch(prev, patch, jsonpatch.Limits{})
		if err != nil || string(made.State.Bytes()) != `{"n":2}` || string(made.Change.Patch) != `[{"op":"replace","path":"/n","value":2}]` {
			t.Errorf("%s: %s %s %v", name, made.State.Bytes(), made.Change.Patch, err)
		}
		again, err := rules.Patch(made.State, patch, jsonpatch.Limits{})
		if err != nil || again.State != made.State || again.Change.Kind != jsonpatch.Same {
			t.Errorf("%s: the same patch again changes it: %v", name, err)
		}
		if _, err := rules.Patch(prev, patch, jsonpatch.Limits{MaxBytes: 4}); !errors.Is(err, jsonpatch.ErrTooLong) {
			t.Errorf("%s: a document of 7 bytes passes for one of 4: %v", name, err)
		}
	}
}
