package content

import (
	"encoding/json"
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
	doc, err := jsonpatch.Parse(stored, r.storedLimits())
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

// storeDelta writes what leads from old to s as [[milliseconds,…],[item,…],[identifier of a removed item,…]], or returns nil if
// the one was not made from the other.
func (s *Items) storeDelta(old *Items) []byte {
	if s.history != old.history || old.serial > s.serial {
		return nil
	}
	var changed []*entry
	var removed []string
	old.each(s, func(before, after *entry) {
		switch {
		case after == nil:
			removed = append(removed, before.id)
		case before == nil || before.doc != after.doc || before.seen != after.seen:
			changed = append(changed, after)
		}
	})
	out := []byte(`[[`)
	for i, e := range changed {
		if i > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendInt(out, e.seen, 10)
	}
	out = append(out, `],[`...)
	for i, e := range changed {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, e.doc.Bytes()...)
	}
	out = append(out, `],`...)
	names, err := json.Marshal(append([]string{}, removed...))
	if err != nil {
		return nil // strings can always be written
	}
	return append(append(out, names...), ']')
}

// each calls fn for every item that the states do not share a chunk of, in order: with nil where an item is in one of them only.
func (s *Items) each(next *Items, fn func(before, after *entry)) {
	merge := func(a, b []entry) {
		for len(a) > 0 || len(b) > 0 {
			switch {
			case len(b) == 0 || len(a) > 0 && a[0].serial < b[0].serial:
				fn(&a[0], nil)
				a = a[1:]
			case len(a) == 0 || b[0].serial < a[0].serial:
				fn(nil, &b[0])
				b = b[1:]
			default:
				fn(&a[0], &b[0])
				a, b = a[1:], b[1:]
			}
		}
	}
	s.unshared(next, merge)
}

// loadDelta applies what storeDelta wrote.
func (r Rules) loadDelta(prev *Items, delta []byte) (*Items, error) {
	doc, err := jsonpatch.Parse(delta, r.storedLimits())
	if err != nil {
		return nil, fmt.Errorf("stored items: %w", err)
	}
	times, batch, removed, err := r.unpackDelta(doc.Root())
	if err != nil {
		return nil, err
	}
	e := prev.edit()
	for v := range removed.Elements() {
		if serial, ok := prev.index.find(v.Text()); ok {
			e.remove(prev.vector.entry(serial))
		}
	}
	for i, item := range batch.items {
		e.put(item.id, item.value, times[i])
	}
	return e.done(), nil
}

func (r Rules) unpackDelta(root jsonpatch.Value) (times []int64, b batch, removed jsonpatch.Value, err error) {
	if root.Kind() != jsonpatch.Array || root.Len() != 3 {
		return nil, b, removed, errStored
	}
	var parts []jsonpatch.Value
	for v := range root.Elements() {
		parts = append(parts, v)
	}
	if parts[2].Kind() != jsonpatch.Array {
		return nil, b, removed, errStored
	}
	for v := range parts[2].Elements() {
		if v.Kind() != jsonpatch.String {
			return nil, b, removed, errStored
		}
	}
	times, b, err = r.unpackItems(parts[0], parts[1])
	return times, b, parts[2], err
}

// storedLimits are wider than those of publications: many accepted ones make one state, and it is wrapped.
func (r Rules) storedLimits() jsonpatch.Limits {
	limits := r.limits
	limits.MaxDepth += 2
	if r.limits.MaxDepth <= 0 {
		limits.MaxDepth = jsonpatch.DefaultMaxDepth + 2
	}
	limits.MaxBytes = 0
	return limits
}

// unpack takes a stored state apart.
func (r Rules) unpack(root jsonpatch.Value) (times []int64, b batch, err error) {
	var parts []jsonpatch.Value
	for v := range root.Elements() {
		parts = append(parts, v)
	}
	if root.Kind() != jsonpatch.Array || len(parts) != 2 {
		return nil, b, errStored
	}
	return r.unpackItems(parts[0], parts[1])
}

// unpackItems reads items and the times at which they were published.
func (r Rules) unpackItems(millis, items jsonpatch.Value) (times []int64, b batch, err error) {
	if millis.Kind() != jsonpatch.Array {
		return nil, b, errStored
	}
	for v := range millis.Elements() {
		ms, err := strconv.ParseInt(string(v.Bytes()), 10, 64)
		if err != nil {
			return nil, b, errStored
		}
		times = append(times, ms)
	}
	b, err = r.batch(items)
	if err != nil || len(b.items) != len(times) || len(b.items) != items.Len() {
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
