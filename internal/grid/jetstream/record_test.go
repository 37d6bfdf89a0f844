package jetstream

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/google/go-cmp/cmp"
)

func sample() *record {
	return &record{
		marks: []mark{3, 2, 1}, pos: freshet.Position{Epoch: "e1", Version: 7}, step: 9, at: time.UnixMilli(1_700_000_000_123),
		change: changePatched, patch: []byte(`[{"op":"remove","path":"/a"}]`),
		base: blob{inline: []byte(strings.Repeat("compressible ", 500))}, baseAt: time.UnixMilli(1_700_000_000_000),
		segments: []blob{{ref: 5, parts: 2, length: 1 << 20}}, deltas: [][]byte{[]byte("d1"), []byte(strings.Repeat("d2", 1000))},
	}
}

func TestARecordSurvivesTheWire(t *testing.T) {
	for name, change := range map[string]func(*record){
		"everything":    func(*record) {},
		"base in parts": func(r *record) { r.base = blob{ref: 1, parts: 3, length: 99} },
		"nothing special": func(r *record) {
			r.segments, r.deltas, r.patch, r.change, r.marks = nil, nil, []byte{}, changeUnknown, nil
		},
	} {
		want := sample()
		change(want)
		body := want.encode()
		got, err := decodeRecord(body)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(record{}, blob{})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if name == "everything" && len(body) > 500 {
			t.Errorf("8 KB of the same words take %d bytes", len(body))
		}
	}
}

func TestAPackedBaseIsNotPackedAgain(t *testing.T) {
	plain, packed := sample(), sample()
	packed.base = blob{packed: appendPacked(nil, plain.base.inline)}
	if !bytes.Equal(plain.encode(), packed.encode()) {
		t.Error("they differ")
	}
}

func TestNonsenseIsRefusedWithoutPanic(t *testing.T) {
	good := sample().encode()
	for range 20_000 {
		bad := bytes.Clone(good)
		for range 1 + rand.IntN(4) {
			bad[rand.IntN(len(bad))] = byte(rand.IntN(256))
		}
		_, _ = decodeRecord(bad[:rand.IntN(len(bad)+1)])
	}
	if _, err := decodeRecord([]byte{99, 0}); err == nil {
		t.Error("another format is read")
	}
}

func FuzzDecodeRecord(f *testing.F) {
	f.Add(sample().encode())
	f.Add([]byte{format, 0})
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := decodeRecord(body)
		if err != nil || r.isTombstone() {
			return
		}
		if again, err := decodeRecord(r.encode()); err != nil || again.pos != r.pos || again.step != r.step {
			t.Errorf("%v becomes %v, %v", r, again, err)
		}
	})
}
