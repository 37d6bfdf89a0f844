package screen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/freshet-io/freshet/internal/histogram"
)

func TestRecordsReadAsATable(t *testing.T) {
	const doc = `{"quotes":[{"s":"ACME","p":101.50},{"s":"INIT","p":47}],"empty":[],"none":{},"text":"a, \"b\": [c]","n":1e400}`
	want := []string{
		`{`,
		`  "quotes": [`,
		`    {"s": "ACME", "p": 101.50},`,
		`    {"s": "INIT", "p": 47}`,
		`  ],`,
		`  "empty": [],`,
		`  "none": {},`,
		`  "text": "a, \"b\": [c]",`,
		`  "n": 1e400`,
		`}`,
	}
	if diff := cmp.Diff(want, Lines([]byte(doc), 40)); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
	if got := Lines([]byte(doc), 500); len(got) != 1 {
		t.Errorf("a wide terminal shows %d lines", len(got))
	}
}

func TestLayingOutChangesNothingButSpace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := anything(3).Draw(t, "value")
		var doc bytes.Buffer
		enc := json.NewEncoder(&doc)
		if err := enc.Encode(value); err != nil {
			t.Fatal(err)
		}
		compact := bytes.TrimSpace(doc.Bytes())
		lines := Lines(compact, rapid.IntRange(1, 120).Draw(t, "width"))
		var again bytes.Buffer
		if err := json.Compact(&again, []byte(strings.Join(lines, "\n"))); err != nil || !bytes.Equal(again.Bytes(), compact) {
			t.Fatalf("%v\n%s\nbecame\n%s", err, compact, strings.Join(lines, "\n"))
		}
	})
}

// anything is any JSON value of printable text.
func anything(depth int) *rapid.Generator[any] {
	leaf := rapid.OneOf(rapid.Just(any(nil)), rapid.Map(rapid.Float64Range(-1e6, 1e6), func(f float64) any { return f }),
		rapid.Map(rapid.StringMatching(`[ -~é☃]*`), func(s string) any { return s }), rapid.Map(rapid.Bool(), func(b bool) any { return b }))
	if depth == 0 {
		return leaf
	}
	inner := anything(depth - 1)
	return rapid.OneOf(leaf, rapid.Map(rapid.SliceOfN(inner, 0, 5), func(l []any) any { return l }),
		rapid.Map(rapid.MapOfN(rapid.StringMatching(`[ -~]*`), inner, 0, 5), func(m map[string]any) any { return m }))
}

func TestNothingInADocumentSteersTheTerminal(t *testing.T) {
	for _, text := range []string{"\u009b31m", "\x7f", "\u202e", "\u0085"} {
		lines := Lines(fmt.Appendf(nil, `{"%s":"%s"}`, text, text), 80)
		if strings.Contains(strings.Join(lines, ""), text) {
			t.Errorf("%q goes through", text)
		}
	}
}

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func rowsOf(v *View, height int, now time.Time) []string {
	rows, _, _, _ := v.Rows(height, Coloured, now)
	return rows
}

func TestOnlyWhatChangedIsMarked(t *testing.T) {
	var v View
	v.Update([]byte(`[{"id":"a","price":101.5},{"id":"b","price":47}]`), 30, noon)
	v.Update([]byte(`[{"id":"a","price":102.5},{"id":"b","price":47}]`), 30, noon.Add(time.Second))
	want := []string{"  [", "*   {\"id\": \"a\", \"price\": \x1b[7m102.5\x1b[0m},", `    {"id": "b", "price": 47}`, "  ]"}
	if diff := cmp.Diff(want, rowsOf(&v, 10, noon.Add(time.Second))); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
	if !v.Fading(noon.Add(2 * time.Second)) {
		t.Error("nothing fades")
	}
	later := noon.Add(time.Minute)
	if got := strings.Join(rowsOf(&v, 10, later), ""); strings.ContainsAny(got, "*\x1b") || v.Fading(later) {
		t.Errorf("a minute later it shows %q", got)
	}
}

func TestAnElementInFrontMarksOneLine(t *testing.T) {
	feed := func(from int) []byte {
		var b strings.Builder
		for i := from; i > from-20; i-- {
			fmt.Fprintf(&b, `,{"id":%d,"title":"a story of some length"}`, i)
		}
		return []byte("[" + b.String()[1:] + "]")
	}
	var v View
	v.Update(feed(100), 80, noon)
	v.Update(feed(101), 80, noon.Add(time.Second))
	marked := 0
	for _, row := range rowsOf(&v, 50, noon.Add(time.Second)) {
		if strings.HasPrefix(row, "*") {
			marked++
		}
	}
	if marked != 1 {
		t.Errorf("%d lines are marked", marked)
	}
}

func TestTheViewFollowsChangesButNotTooOften(t *testing.T) {
	doc := func(changed, value int) []byte {
		var b strings.Builder
		for i := range 500 {
			n := 0
			if i == changed {
				n = value
			}
			fmt.Fprintf(&b, `,{"row":%d,"value":%d}`, i, n)
		}
		return []byte("[" + b.String()[1:] + "]")
	}
	var v View
	top := func(changed, value int, now time.Time) int {
		v.Update(doc(changed, value), 60, now)
		_, first, _, _ := v.Rows(20, Bare, now)
		return first
	}
	if at := top(-1, 0, noon); at != 1 {
		t.Errorf("it begins at %d", at)
	}
	if at := top(300, 1, noon.Add(time.Second)); at < 285 || at > 302 {
		t.Errorf("after a change in line 302 it is at %d", at)
	}
	if at := top(10, 1, noon.Add(1500*time.Millisecond)); at < 285 {
		t.Errorf("it moved again at once, to %d", at)
	}
	if at := top(10, 2, noon.Add(10*time.Second)); at > 12 {
		t.Errorf("it stays at %d", at)
	}
}

func TestOnlyRowsThatDifferAreRepainted(t *testing.T) {
	var out bytes.Buffer
	p, err := Open(&out)
	if err != nil {
		t.Fatal(err)
	}
	paint := func(columns, height int, rows ...string) string {
		out.Reset()
		if err := p.Paint(rows, columns, height); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	for _, c := range []struct{ got, want string }{
		{paint(80, 3, "a", "b", "c", "beyond"), "\x1b[2J\x1b[1;1Ha\x1b[0m\x1b[K\x1b[2;1Hb\x1b[0m\x1b[K\x1b[3;1Hc\x1b[0m\x1b[K"},
		{paint(80, 3, "a", "b", "c"), ""},
		{paint(80, 3, "a", "B", "c"), "\x1b[2;1HB\x1b[0m\x1b[K"},
		{paint(80, 3, "a"), "\x1b[2;1H\x1b[0m\x1b[K\x1b[3;1H\x1b[0m\x1b[K"},
		{paint(70, 3, "a"), "\x1b[2J\x1b[1;1Ha\x1b[0m\x1b[K"},
	} {
		if c.got != c.want {
			t.Errorf("painted %q, want %q", c.got, c.want)
		}
	}
}

func TestADistributionIsDrawn(t *testing.T) {
	var h histogram.Fine
	for i := range 1000 {
		h.Add(time.Duration(i) * 90 * time.Microsecond)
	}
	var picture strings.Builder
	if err := Draw(&picture, &h, 80); err != nil || !strings.Contains(picture.String(), "≤ 100ms") || !strings.Contains(picture.String(), "█") {
		t.Errorf("%v\n%s", err, picture.String())
	}
}

func BenchmarkUpdate(b *testing.B) {
	doc := func(n int) []byte {
		var s strings.Builder
		for i := range 500 {
			fmt.Fprintf(&s, `,{"symbol":"S%04d","price":%d.25,"volume":%d,"venue":"XPAR","time":"2026-11-15T08:00:00Z"}`, i, i+n%2*(i%100/99), i)
		}
		return []byte("[" + s.String()[1:] + "]")
	}
	docs := [][]byte{doc(0), doc(1)}
	var v View
	for i := 0; b.Loop(); i++ {
		v.Update(docs[i%2], 160, noon)
	}
}
