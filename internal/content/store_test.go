package content

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestPropertyStepsLeadToTheSameItems: whoever loads a stored state and then every step holds what the publisher holds,
// the times included, and sees the same changes.
func TestPropertyStepsLeadToTheSameItems(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		state := State(itemsOf(nil))
		mirror, err := byID.Load(nil, byID.Store(state))
		if err != nil {
			t.Fatal(err)
		}
		now := start
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "minutes")) * time.Minute)
			var next State
			if rapid.IntRange(0, 4).Draw(t, "act") == 0 {
				next = state.(*Items).Expire(now.Add(-time.Hour))
			} else {
				id := rapid.IntRange(0, 300).Draw(t, "id")
				body := fmt.Sprintf(`[{"id":%d,"v":%d},{"id":"x%d"}]`, id, rapid.IntRange(0, 3).Draw(t, "v"), id%7)
				p, err := byID.Publish(state, []byte(body), now)
				if err != nil {
					t.Fatal(err)
				}
				next = p.State
			}
			want := byID.Diff(state, next)
			after, err := byID.LoadDelta(mirror, byID.StoreDelta(state, next))
			if err != nil {
				t.Fatal(err)
			}
			if got := byID.Diff(mirror, after); got.Kind != want.Kind || string(got.Patch) != string(want.Patch) {
				t.Fatalf("the change is %s, not %s", got.Patch, want.Patch)
			}
			if got, want := string(byID.Store(after)), string(byID.Store(next)); got != want {
				t.Fatalf("it holds\n%s, not\n%s", got, want)
			}
			state, mirror = next, after
		}
	})
}

func TestStepsAreRefusedWhereTheyDoNotBelong(t *testing.T) {
	a, b := items(t, byID, `[{"id":1}]`), items(t, byID, `[{"id":1}]`)
	if byID.StoreDelta(a, b) != nil || byID.StoreDelta(nil, a) != nil {
		t.Error("there is a step between states that were not made from one another")
	}
	for _, bad := range []string{``, `{}`, `[]`, `[[],[]]`, `[[1],[],[]]`, `[[],[],[1]]`, `[[],[],{}]`, `[["x"],[{"id":1}],[]]`, `[[1],[{"no":1}],[]]`} {
		if _, err := byID.LoadDelta(a, []byte(bad)); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
	if _, err := byID.LoadDelta(nil, []byte(`[[],[],[]]`)); err == nil {
		t.Error("a step from nowhere is taken")
	}
}
