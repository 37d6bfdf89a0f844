package diff

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/freshet-io/freshet/internal/jsonpatch"
)

func all() []Stream { return append(Everyday(), Hostile()...) }

func benchmark(b *testing.B, contenders ...Contender) {
	for _, s := range all() {
		b.Run(s.Name, func(b *testing.B) {
			for _, c := range contenders {
				b.Run(c.Name, func(b *testing.B) {
					step := c.Start(s)
					b.SetBytes(int64(s.Bytes()))
					b.ReportAllocs()
					i := 1
					for b.Loop() {
						step(i)
						if i++; i == len(s.Versions) {
							i = 1
						}
					}
				})
			}
		})
	}
}

// BenchmarkStep is one publication: the new text in, the patch out.
func BenchmarkStep(b *testing.B) {
	benchmark(b, Ours, OursPlain, WI2L, WI2LCached, SonicValid, JSONValid)
}

// BenchmarkSmall is the peer at its smallest patches. It takes seconds a step on long arrays.
func BenchmarkSmall(b *testing.B) { benchmark(b, WI2LSmall) }

// total returns the bytes of all patches of a stream.
func total(c Contender, s Stream) int {
	step, n := c.Start(s), 0
	for i := 1; i < len(s.Versions); i++ {
		n += len(step(i))
	}
	return n
}

// peerBytes are the bytes of the peer's patches. They are recorded, because its smallest ones take minutes to make; the
// corpus is always the same.
func peerBytes(t *testing.T) map[string]PeerBytes {
	text, err := os.ReadFile("testdata/peer.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded map[string]PeerBytes
	if err := json.Unmarshal(text, &recorded); err != nil {
		t.Fatal(err)
	}
	return recorded
}

func TestPatchesAreAtMostTwoPercentLongerThanTheBestPeers(t *testing.T) {
	recorded := peerBytes(t)
	for _, s := range all() {
		peer, ok := recorded[s.Name]
		if !ok {
			t.Errorf("%s: no record of the peer", s.Name)
			continue
		}
		best := min(peer.Defaults, peer.Smallest)
		if ours := total(Ours, s); float64(ours) > 1.02*float64(best) {
			t.Errorf("%s: %d bytes, the peer %d", s.Name, ours, best)
		}
	}
}

func TestTheRecordOfThePeerIsRight(t *testing.T) {
	recorded := peerBytes(t)
	for _, s := range all() {
		if s.Bytes() > 12_000 {
			continue // the peer is too slow
		}
		if got := (PeerBytes{total(WI2L, s), total(WI2LSmall, s)}); got != recorded[s.Name] {
			t.Errorf("%s: %+v is recorded, %+v is right: run figures with -record", s.Name, recorded[s.Name], got)
		}
	}
}

func TestAStepAllocatesABoundedNumberOfTimes(t *testing.T) {
	for _, s := range all() {
		step, i := Ours.Start(s), 1
		got := testing.AllocsPerRun(2*(len(s.Versions)-1), func() {
			step(i)
			if i++; i == len(s.Versions) {
				i = 1
			}
		})
		// Tape, document, patch, and what a garbage collection may have taken from the pools. Documents here have up to
		// 60,000 nodes.
		if got > 40 {
			t.Errorf("%s: %v allocations a step", s.Name, got)
		}
	}
}

func TestEveryStepLeadsToTheNextVersion(t *testing.T) {
	for _, s := range all() {
		prev := must(jsonpatch.Parse(s.Versions[0], jsonpatch.Limits{}))
		for i, v := range s.Versions[1:] {
			want := must(jsonpatch.Parse(v, jsonpatch.Limits{}))
			next, change, err := jsonpatch.Next(prev, v, jsonpatch.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			got := next
			if change.Kind == jsonpatch.Patched {
				if got, err = jsonpatch.Apply(prev, change.Patch, jsonpatch.Limits{}); err != nil {
					t.Fatalf("%s, version %d: %v", s.Name, i+1, err)
				}
			}
			if !jsonpatch.Equal(got, want) || !jsonpatch.Equal(next, want) {
				t.Fatalf("%s, version %d: another document", s.Name, i+1)
			}
			prev = next
		}
	}
}
