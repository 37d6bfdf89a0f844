package content

import (
	"fmt"
	"sync"
	"time"

	"github.com/freshet-io/freshet/internal/jsonpatch"
)

// An ItemError says why a body is no array of items. Its text may be shown to whoever sent the body.
type ItemError struct {
	Element int // position in the array, from 0; -1 if the body is no array
}

func (e *ItemError) Error() string {
	if e.Element < 0 {
		return "the body of an item topic must be an array of objects"
	}
	return fmt.Sprintf("element %d of the array is not an object; the body of an item topic must be an array of objects", e.Element)
}

// Items is the state of an item topic: its items in order of first appearance. It never changes; states made from one
// another share what is equal.
type Items struct {
	history *byte // the same for states made from one another: their serials are comparable
	vector  vector
	index   index
	serial  uint64 // of the next item that appears

	once sync.Once
	text []byte // made when first asked for
}

// An entry is one item. Its serial says when it first appeared, and so its place among the others.
type entry struct {
	serial uint64
	id     string
	doc    *jsonpatch.Document
	seen   int64 // when it was last published, in Unix milliseconds
}

const (
	entrySize = 48
	indexSize = 88 // of an identifier in the index, with the room that maps leave
)

// size returns how many bytes the item takes.
func (e *entry) size() int { return entrySize + indexSize + len(e.id) + e.doc.Size() }

// size returns how many bytes the items take, with the document that is made of them when somebody wants it whole.
func (s *Items) size() int { return s.vector.memory + s.Len() }

func newItems() *Items {
	return &Items{history: new(byte), serial: 1}
}

// Count returns the number of items.
func (s *Items) Count() int { return s.vector.count }

// Len returns the length of the document.
func (s *Items) Len() int { return arrayLen(s.vector.count, s.vector.bytes) }

// arrayLen returns the length of a compact array of so many elements with so many bytes.
func arrayLen(count, bytes int) int { return bytes + max(count-1, 0) + 2 }

// Bytes returns the document: an array of all items. It is shared: callers must not modify it.
func (s *Items) Bytes() []byte {
	s.once.Do(func() {
		out := append(make([]byte, 0, s.Len()), '[')
		for e := range s.vector.all() {
			out = appendElement(out, e.doc.Bytes())
		}
		s.text = append(out, ']')
	})
	return s.text
}

// appendElement appends an element to an array that is being written.
func appendElement(dst, element []byte) []byte {
	if len(dst) > 1 {
		dst = append(dst, ',')
	}
	return append(dst, element...)
}

// Oldest returns when the item that was not published for longest was published, and false if there are no items.
func (s *Items) Oldest() (time.Time, bool) {
	if s.vector.count == 0 {
		return time.Time{}, false
	}
	return time.UnixMilli(s.vector.oldest()), true
}

// Expire returns the state without the items last published before a time: s itself if there are none.
func (s *Items) Expire(before time.Time) *Items {
	limit := before.UnixMilli()
	if s.vector.count == 0 || s.vector.oldest() >= limit {
		return s
	}
	e := s.edit()
	for old := range s.vector.before(limit) {
		e.remove(old)
	}
	return e.done()
}

// itemID returns the identifier of an item: a string, or the decimal text of a number.
func itemID(item jsonpatch.Value, path []string) (string, bool) {
	v := item
	for _, name := range path {
		var ok bool
		if v, ok = v.Member(name); !ok {
			return "", false
		}
	}
	switch v.Kind() {
	case jsonpatch.String:
		return v.Text(), true
	case jsonpatch.Number:
		return v.Decimal(), true
	}
	return "", false
}

// publishItems is Publish on an item topic.
func (r Rules) publishItems(prev State, body []byte, at time.Time) (Publication, error) {
	doc, err := jsonpatch.Parse(body, r.limits)
	if err != nil {
		return Publication{}, err
	}
	batch, err := r.batch(doc.Root())
	if err != nil {
		return Publication{}, err
	}
	if len(batch.items) == 0 {
		return Publication{State: prev, Discarded: batch.discarded}, nil
	}
	old := itemsOf(prev)
	e := old.edit()
	for _, item := range batch.items {
		e.put(item.id, item.value, at.UnixMilli())
	}
	next := e.done()
	if prev == nil {
		return Publication{State: next, Change: jsonpatch.Change{Kind: jsonpatch.Whole}, Discarded: batch.discarded}, nil
	}
	p := Publication{State: next, Change: old.Delta(next).Change(), Discarded: batch.discarded}
	if e.renewed {
		p.Since = time.UnixMilli(e.since)
	}
	return p, nil
}

// A batch is the items of one publication, each once, in order of first appearance.
type batch struct {
	items     []identified
	discarded int
}

type identified struct {
	id    string
	value jsonpatch.Value
}

// batch takes a publication apart. Of several items with one identifier the last counts, at the place of the first.
func (r Rules) batch(root jsonpatch.Value) (batch, error) {
	var b batch
	if root.Kind() != jsonpatch.Array {
		return b, &ItemError{Element: -1}
	}
	b.items = make([]identified, 0, root.Len())
	places := make(map[string]int, root.Len())
	element := 0
	for v := range root.Elements() {
		if v.Kind() != jsonpatch.Object {
			return b, &ItemError{Element: element}
		}
		element++
		id, ok := itemID(v, r.idPath)
		if !ok {
			b.discarded++
			continue
		}
		if i, twice := places[id]; twice {
			b.items[i].value = v
			continue
		}
		places[id] = len(b.items)
		b.items = append(b.items, identified{id, v})
	}
	return b, nil
}
