package jetstream

import (
	"context"
	"errors"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
)

// Put implements grid.Documents.
func (d *documents) Put(ctx context.Context, topic string, expected freshet.Position, doc grid.Document) (freshet.Position, error) {
	s, err := d.topics.acquire(topic)
	if err != nil {
		return freshet.Position{}, err
	}
	defer d.topics.release(s)
	for range maxTries {
		h := s.snapshot()
		if !h.isAt(expected, &doc) {
			if h, err = d.look(ctx, s); err != nil {
				return freshet.Position{}, err
			}
		}
		if pos, is := h.outcomes().Find(doc.Once); is {
			return pos, grid.ErrRepeated
		}
		if !h.isAt(expected, &doc) {
			return freshet.Position{}, grid.ErrConflict
		}
		pos, err := d.put(ctx, s, h, doc)
		if !errors.Is(err, grid.ErrConflict) {
			return pos, err
		}
		// Perhaps only the sequence is another one: a renewal, or the last trace of a document that expired.
		if _, err := d.look(ctx, s); err != nil {
			return freshet.Position{}, err
		}
	}
	return freshet.Position{}, grid.ErrConflict
}

// put writes a document in place of the head.
func (d *documents) put(ctx context.Context, s *slot, h head, doc grid.Document) (freshet.Position, error) {
	m := newMark()
	rec := d.successor(&h, doc, m)
	obsolete, err := d.contents.fill(ctx, s.topic, &h, rec, doc)
	if err != nil {
		return freshet.Position{}, err
	}
	doc.Position = rec.pos
	s.mu.Lock()
	s.own[m] = &doc
	s.mu.Unlock()
	w := d.write(s, rec, h.seq, h.mark())
	if !h.none() {
		w.newestOwn = newestOf(d.writer, h.rec.pos.Epoch)
	}
	seq, err := s.stream.store(ctx, w)
	s.mu.Lock()
	delete(s.own, m)
	if err == nil && s.head.relation(rec, seq) == newer {
		s.adopt(rec, seq, doc.Content)
	}
	s.mu.Unlock()
	if err == nil && obsolete {
		d.contents.parts.drop(s.topic, rec, seq)
	}
	if errors.Is(err, errOvertaken) {
		err = nil // it was stored, in order
	}
	if errors.Is(err, grid.ErrUnknown) {
		err = freshet.Wrap(freshet.Unavailable, err, "The cluster did not say in time whether the publication was stored; read the document before you publish it again, "+
			"or repeat it with the same Idempotency-Key if it had one")
	}
	if err != nil {
		return freshet.Position{}, err
	}
	return rec.pos, nil
}

// successor is the record that comes after the head, without its content.
func (d *documents) successor(h *head, doc grid.Document, m mark) *record {
	rec := d.next(h, doc, m)
	rec.outcomes = h.outcomes().With(&doc, rec.pos)
	var before writers
	if h.rec != nil {
		before = h.rec.writers
	}
	rec.writers = before.with(d.writer, m)
	return rec
}

func (d *documents) next(h *head, doc grid.Document, m mark) *record {
	rec := &record{at: doc.At, marks: []mark{m}, length: doc.Length, trace: doc.Trace}
	if h.rec != nil {
		rec.marks = follow(m, h.rec.marks)
	}
	switch {
	case h.none():
		rec.pos, rec.step, rec.change = freshet.Position{Epoch: d.epochs.Next(), Version: 1}, 1, changeWhole
		return rec
	case doc.Renewal:
		rec.pos, rec.step = h.rec.pos, h.rec.step+1
		return rec
	}
	rec.pos, rec.step = freshet.Position{Epoch: h.rec.pos.Epoch, Version: h.rec.pos.Version + 1}, h.rec.step+1
	if doc.PatchFrom == h.rec.pos {
		rec.change, rec.patch = changeWhole, doc.Patch
		if doc.Patch != nil {
			rec.change = changePatched
		}
	}
	return rec
}

// ttlSlack is how long the server keeps a message after it expired for us, whose clocks may differ.
const ttlSlack = time.Minute

// write stores a record in place of a message. The record's own mark is the first of its marks.
func (d *documents) write(s *slot, rec *record, expected uint64, replaces mark) *write {
	w := &write{subject: s.subject, expected: expected, mark: rec.mark(), replaces: replaces, header: rec.header(), body: rec.encode()}
	if d.life.ttl > 0 {
		w.ttl = max(0, d.life.left(rec.at)) + ttlSlack
	}
	return w
}
