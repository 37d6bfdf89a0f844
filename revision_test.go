package freshet

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestAPositionIsReadBackAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Position{Epoch: rapid.StringMatching(`[0-9a-z]{1,40}`).Draw(t, "epoch"), Version: Version(rapid.Uint64().Draw(t, "version"))}
		if got, ok := ParsePosition(p.String()); !ok || got != p {
			t.Fatalf("%v was read as %v, %v", p, got, ok)
		}
	})
	if p := (Position{Epoch: "e", Version: math.MaxUint64}); p.String() != "e-18446744073709551615" || p.IsZero() {
		t.Error(p)
	}
	if !(Position{}).IsZero() {
		t.Error("zero")
	}
}

func TestWhatWeDidNotMakeIsNoPosition(t *testing.T) {
	for _, text := range []string{"", "-", "e", "e-", "-1", "e-x", "e--1", "e-+1", "e- 1", "e-01", "E-1", "é-1", "e-1\n", "e-1-2", "e-18446744073709551616",
		"e-\u0663", "e\x00-1", strings.Repeat("e", 64) + "-1", "*"} {
		if p, ok := ParsePosition(text); ok {
			t.Errorf("%q was read as %v", text, p)
		}
	}
}

func FuzzPosition(f *testing.F) {
	f.Add("e-1")
	f.Add("e-01")
	f.Fuzz(func(t *testing.T, text string) {
		if p, ok := ParsePosition(text); ok && p.String() != text {
			t.Errorf("%q was read as %v", text, p)
		}
	})
}

func TestIdentifiersAreOfOneForm(t *testing.T) {
	last := ""
	for range 100 {
		id := NewID()
		if !IsID(id) || id <= last {
			t.Errorf("%q after %q", id, last)
		}
		last = id
	}
	for _, text := range []string{"", "x", strings.ToUpper(last), last + "\n", last[:35], "{" + last[1:35] + "}", strings.ReplaceAll(last, "-", "_"), strings.Replace(last, "-", "0", 1)} {
		if IsID(text) {
			t.Errorf("%q is an identifier", text)
		}
	}
}
