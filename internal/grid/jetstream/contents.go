package jetstream

import (
	"context"
	"slices"

	"github.com/freshet-io/freshet/internal/grid"
)

// contents puts what documents say into messages, and takes it out: the whole document, or a base and the steps that lead on from it.
type contents struct {
	link  *link
	life  *lifetime
	parts *parts
}

const (
	// stepsInside is how many bytes of deltas a message carries along before they are put aside.
	stepsInside = 2 << 10
	// wholeBelow is the size up to which a document is not worth taking apart.
	wholeBelow  = 4 << 10
	maxSegments = 64

	// headRoom is for all but the longest part of a message: headers, the references, the newest deltas.
	headRoom = 32 << 10
)

// fill gives the record its content: the whole document, or what changed. It reports whether older parts are of no use any
// more.
func (c *contents) fill(ctx context.Context, topic string, h *head, rec *record, doc grid.Document) (obsolete bool, err error) {
	content, incremental := doc.Content.(grid.Incremental)
	if incremental && c.extendable(h) {
		if delta := content.Delta(); delta != nil && len(delta) < h.rec.base.length/2 {
			return false, c.extend(ctx, topic, h, rec, delta)
		}
	}
	whole := appendPacked(nil, doc.Content.Bytes())
	rec.baseAt = c.life.clock.now()
	limit := c.link.maxPayload - headRoom
	if len(rec.patch) > limit/4 {
		rec.change, rec.patch = changeUnknown, nil
	}
	limit -= len(rec.patch)
	obsolete = h.rec != nil && (h.rec.base.parts > 0 || len(h.rec.segments) > 0)
	if len(whole) <= limit && (!incremental || len(whole) <= wholeBelow) {
		rec.base = blob{packed: whole}
		return obsolete, nil
	}
	rec.base, err = c.parts.upload(ctx, topic, whole)
	return obsolete, err
}

// extendable reports whether the record may go on from the base of the head.
func (c *contents) extendable(h *head) bool {
	if h.none() || h.rec.base.parts == 0 || len(h.rec.segments) >= maxSegments {
		return false
	}
	// Parts must outlive every message that refers to them.
	if c.life.ttl > 0 && c.life.clock.now().Sub(h.rec.baseAt) > c.life.ttl {
		return false
	}
	steps := 0
	for i := range h.rec.segments {
		steps += h.rec.segments[i].length
	}
	return steps < h.rec.base.length/2
}

// extend makes the record one step more than the head. The newest delta stays in the message if it can, for the nodes that
// follow; those before it are put aside now and then.
func (c *contents) extend(ctx context.Context, topic string, h *head, rec *record, delta []byte) error {
	rec.base, rec.baseAt, rec.segments = h.rec.base, h.rec.baseAt, slices.Clip(h.rec.segments)
	inside, aside := h.rec.deltas, [][]byte(nil)
	size := 0
	for _, d := range inside {
		size += len(d)
	}
	switch {
	case len(delta) > c.link.maxPayload/4:
		inside, aside = nil, append(slices.Clip(inside), delta)
	case size > stepsInside:
		inside, aside = [][]byte{delta}, inside
	default:
		inside = append(slices.Clip(inside), delta)
	}
	rec.deltas = inside
	if len(rec.patch) > c.link.maxPayload/4 {
		rec.change, rec.patch = changeUnknown, nil
	}
	if len(aside) == 0 {
		return nil
	}
	segment, err := c.parts.upload(ctx, topic, appendList(nil, aside))
	rec.segments = append(rec.segments, segment)
	return err
}

// of puts together what a record says.
func (c *contents) of(ctx context.Context, topic string, r *record) (grid.Content, error) {
	if r.isTombstone() {
		return nil, nil
	}
	whole := r.base.inline
	if r.base.parts > 0 {
		all, err := c.parts.download(ctx, topic, &r.base)
		if err != nil {
			return nil, err
		}
		in := reader{rest: all}
		if whole = in.packed(); in.err != nil {
			return nil, in.err
		}
	}
	var deltas [][]byte
	for i := range r.segments {
		all, err := c.parts.download(ctx, topic, &r.segments[i])
		if err != nil {
			return nil, err
		}
		in := reader{rest: all}
		if deltas = append(deltas, in.list()...); in.err != nil {
			return nil, in.err
		}
	}
	if deltas = append(deltas, r.deltas...); len(deltas) > 0 {
		return grid.Steps{Base: whole, Deltas: deltas}, nil
	}
	return grid.Raw(whole), nil
}
