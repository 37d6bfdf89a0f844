package content

import (
	"slices"
	"strconv"
	"strings"

	"github.com/freshet-io/freshet/internal/jsonpatch"
)

// A Filter names the items that a subscriber wants to see: by string identifier, or by the decimal text of a numeric
// one. Filters that list the same identifiers are the same.
type Filter struct {
	ids []string // sorted, each once
}

// ParseFilter reads a comma-separated list of identifiers. Nothing is trimmed; empty parts are left out.
func ParseFilter(text string) Filter {
	return NewFilter(strings.Split(text, ",")...)
}

// NewFilter returns the filter of these identifiers. Empty ones are left out.
func NewFilter(ids ...string) Filter {
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == "" })
	slices.Sort(ids)
	return Filter{ids: slices.Compact(ids)}
}

// Key returns a text that only filters of the same identifiers have.
func (f Filter) Key() string {
	var b strings.Builder
	for _, id := range f.ids {
		b.WriteString(strconv.Itoa(len(id)))
		b.WriteByte(':')
		b.WriteString(id)
	}
	return b.String()
}

// serials returns the serials of the listed items that a state has, in order.
func (f Filter) serials(s *Items) []uint64 {
	var found []uint64
	for _, id := range f.ids {
		if serial, ok := s.index.find(id); ok {
			found = append(found, serial)
		}
	}
	slices.Sort(found)
	return found
}

// Filtered returns the document that a subscriber with a filter sees.
func (s *Items) Filtered(f Filter) []byte {
	return s.subset(f.serials(s))
}

// subset returns an array of the items with these serials, which must be there.
func (s *Items) subset(serials []uint64) []byte {
	out := []byte{'['}
	for _, serial := range serials {
		out = appendElement(out, s.vector.entry(serial).doc.Bytes())
	}
	return append(out, ']')
}

// FilteredDiff returns the change of what a subscriber with a filter sees, from one state to another. Its cost is that
// of the filter's items; for a whole topic's subscribers use Views.
func FilteredDiff(old, new *Items, f Filter) jsonpatch.Change {
	before, after := f.serials(old), f.serials(new)
	d := Delta{old: old, new: new, foreign: old.history != new.history || old.serial > new.serial}
	d.compare(old.entries(before), new.entries(after))
	if d.foreign {
		return jsonpatch.Change{Kind: jsonpatch.Whole}
	}
	w := patchWriter{position: func(e *entry) int { return find(before, e.serial) }}
	for i := range d.changes {
		w.changes = append(w.changes, &d.changes[i])
	}
	return w.change(new.subsetLen(after))
}

// entries returns the items with these serials.
func (s *Items) entries(serials []uint64) []entry {
	found := make([]entry, len(serials))
	for i, serial := range serials {
		found[i] = *s.vector.entry(serial)
	}
	return found
}

// subsetLen returns the length of what subset returns.
func (s *Items) subsetLen(serials []uint64) int {
	bytes := 0
	for _, serial := range serials {
		bytes += s.vector.entry(serial).doc.Len()
	}
	return arrayLen(len(serials), bytes)
}

// find returns the position of a serial that is there.
func find(serials []uint64, serial uint64) int {
	at, _ := slices.BinarySearch(serials, serial)
	return at
}
