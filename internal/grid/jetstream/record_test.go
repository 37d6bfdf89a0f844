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
		if err != nil || r.gone() {
			return
		}
		if again, err := decodeRecord(r.encode()); err != nil || again.pos != r.pos || again.step != r.step {
			t.Errorf("%v becomes %v, %v", r, again, err)
		}
	})
}

func TestHeldNeverGoesBack(t *testing.T) {
	at := func(epoch string, step uint64, marks ...mark) *record {
		return &record{pos: freshet.Position{Epoch: epoch, Version: freshet.Version(step)}, step: step, marks: marks}
	}
	h := held{known: true, rec: at("a", 5, 50, 40, 30), seq: 100}
	for _, c := range []struct {
		name string
		rec  *record
		seq  uint64
		want relation
	}{
		{"itself", at("a", 5, 50, 40, 30), 100, same},
		{"the next", at("a", 6, 60, 50, 40), 101, newer},
		{"much later", at("a", 50, 1, 2, 3), 500, newer},
		{"an older one", at("a", 4, 40, 30), 90, backwards},
		{"a later one of another past", at("a", 6, 60, 51, 40), 101, backwards},
		{"the same step by somebody else", at("a", 5, 51, 40), 99, backwards},
		{"a new epoch", at("b", 1, 70), 101, newer},
		{"an old epoch", at("b", 9, 70), 99, backwards},
		{"a deletion", &record{marks: []mark{80}}, 101, newer},
		{"nothing", &record{}, 0, backwards},
	} {
		if got := h.relation(c.rec, c.seq); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	h.expired = true
	if got := h.relation(&record{}, 0); got != newer {
		t.Errorf("what expired is cleaned up: %d", got)
	}
}

// TestASequenceAloneIsNoProofOfSameness: an emptied stream counts from 1 again, and may come to where the held message was.
func TestASequenceAloneIsNoProofOfSameness(t *testing.T) {
	record := func(epoch string, m mark) *record {
		return &record{marks: []mark{m}, pos: freshet.Position{Epoch: epoch, Version: 1}, step: 1}
	}
	h := held{known: true, rec: record("a", 1), seq: 7}
	if got := h.relation(record("a", 1), 7); got != same {
		t.Errorf("the same message: %v", got)
	}
	if got := h.relation(record("b", 2), 7); got != backwards {
		t.Errorf("another message of the same sequence: %v", got)
	}
}
