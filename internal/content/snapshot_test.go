package content

import (
	"errors"
	"testing"

	"github.com/freshet-io/freshet/internal/jsonpatch"
)

func TestASnapshotTopicHoldsTheLastPublication(t *testing.T) {
	r := SnapshotRules(jsonpatch.Limits{})
	p := publish(t, r, nil, ` {"a": 1} `, start)
	if p.Change.Kind != jsonpatch.Whole || string(p.State.Bytes()) != `{"a":1}` {
		t.Fatalf("%v %s", p.Change, p.State.Bytes())
	}
	first := p.State
	p = publish(t, r, first, `{"a":1.0}`, start)
	if p.Change.Kind != jsonpatch.Same || p.State != first {
		t.Fatal("an equal publication changes something")
	}
	p = publish(t, r, first, `{"a":2}`, start)
	if p.Change.Kind != jsonpatch.Patched || string(p.Change.Patch) != `[{"op":"replace","path":"/a","value":2}]` {
		t.Fatalf("%v", p.Change)
	}
	if c := r.Diff(first, p.State); string(c.Patch) != string(p.Change.Patch) {
		t.Fatalf("%v", c)
	}
	if c := r.Diff(nil, p.State); c.Kind != jsonpatch.Whole {
		t.Fatalf("%v", c)
	}
	loaded, err := r.Load(first, r.Store(p.State))
	if err != nil || string(loaded.Bytes()) != `{"a":2}` {
		t.Fatal(err)
	}
}

func TestARefusedPublicationChangesNothing(t *testing.T) {
	var syntax *jsonpatch.SyntaxError
	for _, r := range []Rules{SnapshotRules(jsonpatch.Limits{}), byID} {
		prev := publish(t, r, nil, `[{"id":1}]`, start).State
		for _, s := range []State{nil, prev} {
			p, err := r.Publish(s, []byte("[\n{]"), start)
			if !errors.As(err, &syntax) || syntax.Line != 2 || p.State != nil {
				t.Fatalf("%v %v", p, err)
			}
		}
		if string(prev.Bytes()) != `[{"id":1}]` {
			t.Fatal("the state changed")
		}
	}
}
