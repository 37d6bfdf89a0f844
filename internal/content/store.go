package content

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/freshet-io/freshet/internal/jsonpatch"
)

var errStored = errors.New("stored items: not an array of times and an array of as many items")

// store writes the state as [[milliseconds,…],[item,…]].
func (s *Items) store() []byte {
	out := append(make([]byte, 0, s.Len()+16*s.Count()+8), `[[`...)
	for e := range s.vector.all() {
		if out[len(out)-1] != '[' {
			out = append(out, ',')
		}
		out = strconv.AppendInt(out, e.seen, 10)
	}
	out = append(out, `],`...)
	return append(append(out, s.Bytes()...), ']')
}

// loadItems makes the state that was stored. Items that are in prev too keep their serials as long as they stand in the
// order that they have there. From the first one that does not, all are taken to have gone and come back.
func (r Rules) loadItems(prev *Items, stored []byte) (*Items, error) {
	limits := r.limits
	limits.MaxDepth += 2
	if r.limits.MaxDepth <= 0 {
		limits.MaxDepth = jsonpatch.DefaultMaxDepth + 2
	}
	limits.MaxBytes = 0 // many accepted publications make one state
	doc, err := jsonpatch.Parse(stored, limits)
	if err != nil {
		return nil, fmt.Errorf("stored items: %w", err)
	}
	times, batch, err := r.unpack(doc.Root())
	if err != nil {
		return nil, err
	}
	e := prev.edit()
	kept := prev.keep(batch)
	for old := range prev.vector.all() {
		if !kept[old.id] {
			e.remove(old)
		}
	}
	for i, item := range batch.items {
		e.put(item.id, item.value, times[i])
	}
	return e.done(), nil
}

// unpack takes a stored state apart.
func (r Rules) unpack(root jsonpatch.Value) (times []int64, b batch, err error) {
	var parts []jsonpatch.Value
	for v := range root.Elements() {
		parts = append(parts, v)
	}
	if root.Kind() != jsonpatch.Array || len(parts) != 2 || parts[0].Kind() != jsonpatch.Array {
		return nil, b, errStored
	}
	for v := range parts[0].Elements() {
		ms, err := strconv.ParseInt(string(v.Bytes()), 10, 64)
		if err != nil {
			return nil, b, errStored
		}
		times = append(times, ms)
	}
	b, err = r.batch(parts[1])
	if err != nil || len(b.items) != len(times) || len(b.items) != parts[1].Len() {
		return nil, b, errStored
	}
	return times, b, nil
}

// keep returns the identifiers of the first items of a batch that stand in the order that they have in s.
func (s *Items) keep(b batch) map[string]bool {
	kept := make(map[string]bool, len(b.items))
	last := uint64(0)
	for _, item := range b.items {
		serial, ok := s.index.find(item.id)
		if !ok || serial < last {
			break
		}
		kept[item.id], last = true, serial
	}
	return kept
}
