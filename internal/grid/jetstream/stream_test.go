package jetstream

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/freshet-io/freshet/internal/grid"
)

// sequel is a write in place of a message that has marks.
func sequel(subject string, expected uint64, marks []mark) *write {
	m := newMark()
	w := &write{subject: subject, expected: expected, mark: m, body: seal(follow(m, marks), nil)}
	if len(marks) > 0 {
		w.replaces = marks[0]
	}
	return w
}

// chain stores a number of writes to a subject, one in place of the other.
func chain(t *testing.T, s *stream, subject string, count int) (writes []*write, seqs []uint64) {
	t.Helper()
	seq, marks := uint64(0), []mark(nil)
	for range count {
		w := sequel(subject, seq, marks)
		var err error
		if seq, err = s.store(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		marks = follow(w.mark, marks)
		writes, seqs = append(writes, w), append(seqs, seq)
	}
	return writes, seqs
}

func TestAWriteReplacesOnlyWhatItExpects(t *testing.T) {
	t.Parallel()
	all := newTestStreams(t)
	s, subject := all.of("a"), all.link.docSubject("a")
	writes, seqs := chain(t, s, subject, 2)
	for name, expected := range map[string]uint64{"nothing": 0, "an older one": seqs[0]} {
		if _, err := s.store(t.Context(), sequel(subject, expected, nil)); !errors.Is(err, grid.ErrConflict) {
			t.Errorf("expecting %s: %v", name, err)
		}
	}
	msg, err := s.last(t.Context(), subject)
	if err != nil || msg.seq != seqs[1] {
		t.Fatalf("the last is %d, %v; want %d", msg.seq, err, seqs[1])
	}
	if marks, _, _ := unseal(msg.data); len(marks) != 2 || marks[0] != writes[1].mark || marks[1] != writes[0].mark {
		t.Errorf("its marks are %v", marks)
	}
}

// TestAWriteThatComesAgainFindsItself: as if its answer had got lost.
func TestAWriteThatComesAgainFindsItself(t *testing.T) {
	t.Parallel()
	all := newTestStreams(t)
	s, subject := all.of("a"), all.link.docSubject("a")
	writes, seqs := chain(t, s, subject, maxMarks)
	if seq, err := s.store(t.Context(), writes[maxMarks-1]); err != nil || seq != seqs[maxMarks-1] {
		t.Errorf("the newest is stored again at %d, %v; it was at %d", seq, err, seqs[maxMarks-1])
	}
	if _, err := s.store(t.Context(), writes[0]); !errors.Is(err, errOvertaken) {
		t.Errorf("the oldest: %v", err)
	}
	never := sequel(subject, seqs[0], []mark{writes[0].mark})
	if _, err := s.store(t.Context(), never); !errors.Is(err, grid.ErrConflict) {
		t.Errorf("one that was never stored: %v", err)
	}
}

func TestAProofHoldsForTheNewestOnly(t *testing.T) {
	t.Parallel()
	all := newTestStreams(t)
	for name, c := range map[string]struct {
		stream  *stream
		subject string
	}{
		"a document": {all.of("a"), all.link.docSubject("a")},
		"a value":    {all.values, all.link.subject("val", "claim", "a")},
	} {
		_, seqs := chain(t, c.stream, c.subject, 2)
		for seq, want := range map[uint64]bool{seqs[1]: true, seqs[0]: false, 0: false} {
			if proven, err := c.stream.prove(t.Context(), c.subject, seq); err != nil || proven != want {
				t.Errorf("%s: that %d is the last of %v: %v, %v", name, seq, seqs, proven, err)
			}
		}
		if proven, err := c.stream.prove(t.Context(), c.subject+"b", 0); err != nil || !proven {
			t.Errorf("%s: that there is none: %v, %v", name, proven, err)
		}
	}
}

func TestABatchHasTheNewestOfEachSubject(t *testing.T) {
	t.Parallel()
	all := newTestStreams(t)
	s := all.documents[0]
	var subjects []string
	want := map[string]uint64{}
	for i := range 5 {
		subject := all.link.docSubject(fmt.Sprint(i))
		_, seqs := chain(t, s, subject, 1+i)
		subjects = append(subjects, subject)
		want[subject] = seqs[i]
	}
	read := func(from uint64) (map[string]uint64, uint64) {
		got := map[string]uint64{}
		upTo, err := s.batch(t.Context(), batch{LastOf: subjects, Seq: from}, func(m message) { got[m.subject] = m.seq })
		if err != nil {
			t.Fatal(err)
		}
		return got, upTo
	}
	newest := want[subjects[4]]
	if got, upTo := read(0); !maps.Equal(got, want) || upTo < newest {
		t.Errorf("got %v up to %d; want %v", got, upTo, want)
	}
	if got, _ := read(newest); !maps.Equal(got, map[string]uint64{subjects[4]: newest}) {
		t.Errorf("from the newest on: %v", got)
	}
	if got, _ := read(newest + 1); len(got) != 0 {
		t.Errorf("after the newest: %v", got)
	}
}
