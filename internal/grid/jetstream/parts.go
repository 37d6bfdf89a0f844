package jetstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
)

// What does not fit into one message, and what many messages in a row would repeat, stands in parts: messages of their own
// that the topic's message refers to. They are written before it and dropped after the next base. A reader who comes too late
// for them finds a newer message of the topic.

const (
	maxParts = 1024 // as many as one request can return

	// stepsInside is how many bytes of deltas a message carries along before they are put aside.
	stepsInside = 2 << 10
	// wholeBelow is the size up to which a document is not worth taking apart.
	wholeBelow  = 4 << 10
	maxSegments = 64

	// headRoom is for all but the longest part of a message: headers, the references, the newest deltas.
	headRoom = 32 << 10
)

// errParts says that parts are gone.
var errParts = errors.New("grid: parts of a document are missing")

var errLostPart = errors.New("a part of the document was not stored in time")

// fill gives the record its content: the whole document, or what changed. It reports whether older parts are of no use any
// more.
func (n *Grid) fill(ctx context.Context, s *topicSlot, h *held, rec *record, doc grid.Document) (cleanUp bool, err error) {
	content, incremental := doc.Content.(grid.Incremental)
	if incremental && n.extendable(h, rec) {
		if delta := content.Delta(); delta != nil && len(delta) < h.rec.base.length/2 {
			return false, n.extend(ctx, s, h, rec, delta)
		}
	}
	whole := appendPacked(nil, doc.Content.Bytes())
	rec.baseAt = n.Now()
	limit := n.maxPayload - headRoom
	if len(rec.patch) > limit/4 {
		rec.change, rec.patch = changeUnknown, nil
	}
	limit -= len(rec.patch)
	cleanUp = h.rec != nil && (h.rec.base.parts > 0 || len(h.rec.segments) > 0)
	if len(whole) <= limit && (!incremental || len(whole) <= wholeBelow) {
		rec.base = blob{packed: whole}
		return cleanUp, nil
	}
	rec.base, err = n.upload(ctx, s.topic, whole)
	return cleanUp, err
}

// extendable reports whether the record may go on from the held base.
func (n *Grid) extendable(h *held, rec *record) bool {
	if h.none() || h.rec.base.parts == 0 || len(h.rec.segments) >= maxSegments {
		return false
	}
	// Parts must outlive every message that refers to them.
	if n.opts.MessageTTL > 0 && n.Now().Sub(h.rec.baseAt) > n.opts.MessageTTL {
		return false
	}
	steps := 0
	for i := range h.rec.segments {
		steps += h.rec.segments[i].length
	}
	return steps < h.rec.base.length/2
}

// extend makes the record one step more than the held one. The newest delta stays in the message if it can, for the nodes that
// follow; those before it are put aside now and then.
func (n *Grid) extend(ctx context.Context, s *topicSlot, h *held, rec *record, delta []byte) error {
	rec.base, rec.baseAt, rec.segments = h.rec.base, h.rec.baseAt, slices.Clip(h.rec.segments)
	inside, aside := h.rec.deltas, [][]byte(nil)
	size := 0
	for _, d := range inside {
		size += len(d)
	}
	switch {
	case len(delta) > n.maxPayload/4:
		inside, aside = nil, append(slices.Clip(inside), delta)
	case size > stepsInside:
		inside, aside = [][]byte{delta}, inside
	default:
		inside = append(slices.Clip(inside), delta)
	}
	rec.deltas = inside
	if len(rec.patch) > n.maxPayload/4 {
		rec.change, rec.patch = changeUnknown, nil
	}
	if len(aside) == 0 {
		return nil
	}
	segment, err := n.upload(ctx, s.topic, appendList(nil, aside))
	rec.segments = append(rec.segments, segment)
	return err
}

// upload stores bytes in parts.
func (n *Grid) upload(ctx context.Context, topic string, all []byte) (blob, error) {
	size := n.maxPayload - 4<<10
	b := blob{ref: newMark(), length: len(all), parts: (len(all) + size - 1) / size}
	if b.parts > maxParts {
		return b, freshet.Errorf(freshet.TooLarge, "The document is too large for the cluster: %d bytes", len(all))
	}
	for i := range b.parts {
		part := all[i*size : min((i+1)*size, len(all))]
		w := &write{subject: n.partSubject(topic, b.ref, strconv.Itoa(i)), expected: anySequence, body: part}
		if n.opts.MessageTTL > 0 {
			w.ttl = 2*n.opts.MessageTTL + 2*ttlSlack
		}
		_, err := n.store(ctx, w, 0)
		if errors.Is(err, grid.ErrUnknown) {
			err = unknown(errLostPart) // nothing refers to it, so nothing changed
		}
		if err != nil {
			return b, err
		}
	}
	return b, nil
}

func (n *Grid) partSubject(topic string, ref mark, rest string) string {
	return n.subject("part", shardToken(shardOf(topic)), token(topic), fmt.Sprintf("%016x", uint64(ref)), rest)
}

// download is the reverse of upload. Replicas that lag behind are given up for the leader.
func (n *Grid) download(ctx context.Context, topic string, b *blob) ([]byte, error) {
	parts := make([][]byte, b.parts)
	_, err := n.batch(ctx, n.streamOf(n.docSubject(topic)), map[string]any{"multi_last": []string{n.partSubject(topic, b.ref, "*")}}, func(m message) {
		i, err := strconv.Atoi(m.subject[strings.LastIndexByte(m.subject, '.')+1:])
		if err == nil && i >= 0 && i < len(parts) {
			parts[i] = m.data
		}
	})
	if err != nil {
		n.log.Debug("parts come from the leader", "topic", topic, "err", err)
	}
	all := make([]byte, 0, b.length)
	for i, part := range parts {
		if part == nil {
			msg, err := n.last(ctx, n.partSubject(topic, b.ref, strconv.Itoa(i)))
			if err != nil {
				return nil, err
			}
			part = msg.data
		}
		all = append(all, part...)
	}
	if len(all) != b.length {
		return nil, errParts
	}
	return all, nil
}

// content puts together what a record says.
func (n *Grid) content(ctx context.Context, topic string, r *record) (grid.Content, error) {
	if r.gone() {
		return nil, nil
	}
	whole := r.base.inline
	if r.base.parts > 0 {
		all, err := n.download(ctx, topic, &r.base)
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
		all, err := n.download(ctx, topic, &r.segments[i])
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

// dropParts drops the parts that were written before those of a record. What fails here is dropped by the next one, or
// expires.
func (n *Grid) dropParts(topic string, rec *record, seq uint64) {
	filter := n.subject("part", shardToken(shardOf(topic)), token(topic), ">")
	first := n.partSubject(topic, rec.base.ref, "0")
	n.spawn(func() {
		ctx, cancel := context.WithTimeout(n.ctx, readTimeout)
		defer cancel()
		if rec.base.parts > 0 {
			msg, err := n.last(ctx, first)
			if err != nil || msg.seq == 0 {
				return
			}
			seq = msg.seq
		}
		var answer struct{}
		if err := n.api(ctx, "STREAM.PURGE."+n.streamOf(filter), map[string]any{"filter": filter, "seq": seq}, &answer); err != nil {
			n.log.Debug("old parts stay for now", "topic", topic, "err", err)
		}
	})
}
