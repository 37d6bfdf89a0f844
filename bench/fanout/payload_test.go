package main

import (
	"encoding/json"
	"testing"
)

func TestPayloadsAreJSONStringsOfTheAskedLengthThatEndWithTheirMark(t *testing.T) {
	for _, size := range []int{64, 256, 4096} {
		p := newPayloads(size)
		for seq := range uint32(2 * fillers) {
			want := mark{'3', seq * 0x01010101, 1<<62 + int64(seq)}
			text := p.append(nil, want)
			var s string
			if err := json.Unmarshal(text, &s); err != nil || len(text) != size {
				t.Fatalf("%d bytes, %v: %s", len(text), err, text)
			}
			got, ok := parseMark([]byte(s[len(s)-markLen:]))
			if !ok || got != want {
				t.Fatalf("mark %+v read as %+v, %v", want, got, ok)
			}
			if got, _, ok := lastMark(text); !ok || got != want {
				t.Fatalf("last mark of the payload is %+v, %v", got, ok)
			}
		}
	}
}

func TestWhatIsNoMarkIsRefused(t *testing.T) {
	good := string(appendMark(nil, mark{'1', 7, 9}))
	for _, bad := range []string{"", good[1:], good + "x", "x" + good[1:], good[:markLen-1] + "x", good[:5] + "G" + good[6:], good[:20] + "\n" + good[21:]} {
		if m, ok := parseMark([]byte(bad)); ok {
			t.Errorf("%q was read as %+v", bad, m)
		}
	}
}

func TestFillerHasNothingThatCouldBeTakenForAMarkOrNeedsEscaping(t *testing.T) {
	for _, c := range filler(10_000, 3) {
		if c == markBegin || c == markEnd || c == '"' || c == '\\' || c < ' ' {
			t.Fatalf("filler holds %q", c)
		}
	}
}
