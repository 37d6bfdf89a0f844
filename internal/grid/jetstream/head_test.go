package jetstream

import (
	"testing"

	"github.com/freshet-io/freshet"
)

func TestTheHeadNeverGoesBack(t *testing.T) {
	at := func(epoch string, step uint64, marks ...mark) *record {
		return &record{pos: freshet.Position{Epoch: epoch, Version: freshet.Version(step)}, step: step, marks: marks}
	}
	h := head{known: true, rec: at("a", 5, 50, 40, 30), seq: 100}
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

// TestASequenceAloneIsNoProofOfSameness: an emptied stream counts from 1 again, and may come to where the head was.
func TestASequenceAloneIsNoProofOfSameness(t *testing.T) {
	record := func(epoch string, m mark) *record {
		return &record{marks: []mark{m}, pos: freshet.Position{Epoch: epoch, Version: 1}, step: 1}
	}
	h := head{known: true, rec: record("a", 1), seq: 7}
	if got := h.relation(record("a", 1), 7); got != same {
		t.Errorf("the same message: %v", got)
	}
	if got := h.relation(record("b", 2), 7); got != backwards {
		t.Errorf("another message of the same sequence: %v", got)
	}
}
