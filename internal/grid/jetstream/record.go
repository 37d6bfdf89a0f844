package jetstream

import (
	"encoding/binary"
	"strconv"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/nats-io/nats.go"
)

// record is a topic's newest document as the stream keeps it: a base, and the steps that lead on from there.
type record struct {
	marks []mark
	pos   freshet.Position
	step  uint64 // counts writes within the epoch; unlike the version it also counts renewals
	at    time.Time

	change changeKind // from the version before
	patch  []byte

	// What stands in the header of the message, where nodes that know nothing of it overlook it.
	length   int    // of the document
	trace    string // of the publication
	outcomes grid.Outcomes
	writers  writers

	base     blob
	baseAt   time.Time // when the base was written
	segments []blob    // deltas that were put aside, oldest first
	deltas   [][]byte  // the newest, oldest first; the last one leads to this step
}

type changeKind byte

const (
	changeUnknown changeKind = iota // compare
	changeWhole                     // no patch leads here
	changePatched
)

// blob is bytes that stand in the message itself, or in messages of their own if they are too long.
type blob struct {
	inline []byte
	packed []byte // the same as it stands in the message; only while it is being written
	ref    mark
	parts  int // 0: inline
	length int // of all parts
}

// isTombstone reports whether there is no document: the message says that it was deleted, or there is no message.
func (r *record) isTombstone() bool { return r.pos.IsZero() }

// covers reports whether the deltas in the message itself lead on from a step.
func (r *record) covers(step uint64) bool {
	return step < r.step && r.step-step <= uint64(len(r.deltas))
}

// mark is the mark of the write that made the message, or 0 if the server made it.
func (r *record) mark() mark {
	if len(r.marks) == 0 {
		return 0
	}
	return r.marks[0]
}

// markAt is the mark of the write that made a step, if the message still tells.
func (r *record) markAt(step uint64) (mark, bool) {
	if step > r.step || r.step-step >= uint64(len(r.marks)) {
		return 0, false
	}
	return r.marks[r.step-step], true
}

// strip drops what is only needed once: the document, its patch and who follows it.
func (r *record) strip() { r.base.inline, r.base.packed, r.patch, r.trace = nil, nil, nil, "" }

func (r *record) encode() []byte {
	out := appendBytes(nil, []byte(r.pos.Epoch))
	out = binary.AppendUvarint(out, uint64(r.pos.Version))
	out = binary.AppendUvarint(out, r.step)
	out = binary.AppendVarint(out, r.at.UnixMilli())
	out = append(out, byte(r.change))
	out = appendPacked(out, r.patch)
	out = r.base.append(out)
	out = binary.AppendVarint(out, r.baseAt.UnixMilli())
	out = binary.AppendUvarint(out, uint64(len(r.segments)))
	for i := range r.segments {
		out = r.segments[i].append(out)
	}
	return seal(r.marks, appendList(out, r.deltas))
}

func decodeRecord(body []byte) (*record, error) {
	if len(body) == 0 { // removed by hand
		return &record{}, nil
	}
	marks, payload, err := unseal(body)
	if err != nil {
		return nil, err
	}
	r := &record{marks: marks}
	if len(payload) == 0 {
		return r, nil
	}
	in := reader{rest: payload}
	r.pos.Epoch = string(in.bytes())
	r.pos.Version = freshet.Version(in.uvarint())
	r.step = in.uvarint()
	r.at = time.UnixMilli(in.varint())
	r.change = changeKind(in.byte())
	r.patch = in.packed()
	r.base = in.blob()
	r.baseAt = time.UnixMilli(in.varint())
	for n := in.uvarint(); n > 0 && in.err == nil; n-- {
		r.segments = append(r.segments, in.blob())
	}
	r.deltas = in.list()
	if in.err != nil || len(in.rest) > 0 || r.pos.IsZero() {
		return nil, errFormat
	}
	return r, nil
}

func (b *blob) append(out []byte) []byte {
	out = binary.AppendUvarint(out, uint64(b.parts))
	switch {
	case b.parts == 0 && b.packed != nil:
		return append(out, b.packed...)
	case b.parts == 0:
		return appendPacked(out, b.inline)
	}
	out = binary.BigEndian.AppendUint64(out, uint64(b.ref))
	return binary.AppendUvarint(out, uint64(b.length))
}

// Headers of a document's message, beside what stands in it. Nodes that know nothing of one overlook it.
const (
	traceHeader   = "traceparent" // the name and form that other programs on the same servers know
	onceHeader    = "freshet-once"
	writersHeader = "freshet-writers"
	lengthHeader  = "Freshet-Length" // which items in steps do not tell
)

// header returns what stands in the headers of the record's message.
func (r *record) header() [][2]string {
	length := ""
	if r.length > 0 {
		length = strconv.Itoa(r.length)
	}
	return [][2]string{{traceHeader, r.trace}, {onceHeader, r.outcomes.String()}, {writersHeader, r.writers.String()}, {lengthHeader, length}}
}

// record reads the message of a topic.
func (m *message) record() (*record, error) {
	rec, err := decodeRecord(m.data)
	if err != nil {
		return nil, err
	}
	h := m.headers()
	rec.trace, rec.outcomes, rec.writers, rec.length = h.Get(traceHeader), grid.ParseOutcomes(h.Get(onceHeader)), parseWriters(h.Get(writersHeader)), lengthIn(h)
	return rec, nil
}

func lengthIn(header nats.Header) int {
	n, err := strconv.Atoi(header.Get(lengthHeader))
	if err != nil || n < 0 {
		return 0
	}
	return n
}
