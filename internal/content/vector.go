package content

import (
	"iter"
	"slices"
	"sort"
)

// chunkLen is how many items stand together. Changing one item copies its chunk; the others are shared by all states.
const chunkLen = 128

// A vector holds the items of a state, ordered by serial, in chunks that are shared between states.
type vector struct {
	chunks []*chunk
	starts []int // how many items stand before each chunk
	count  int
	bytes  int // of all items' text
	memory int // that the items take
}

// A chunk is a stretch of items. It never changes once a state has it, and is never empty.
type chunk struct {
	entries []entry
	oldest  int64 // the least seen
	bytes   int
	memory  int
}

// newVector counts what is in the chunks, leaving out empty ones.
func newVector(chunks []*chunk) vector {
	v := vector{chunks: chunks[:0], starts: make([]int, 0, len(chunks))}
	for _, c := range chunks {
		if len(c.entries) == 0 {
			continue
		}
		v.chunks = append(v.chunks, c)
		v.starts = append(v.starts, v.count)
		v.count += len(c.entries)
		v.bytes += c.bytes
		v.memory += c.memory
	}
	return v
}

// seal computes a chunk's summary after its entries were changed.
func (c *chunk) seal() {
	c.bytes, c.memory, c.oldest = 0, entrySize*(cap(c.entries)-len(c.entries)), 1<<63-1
	for i := range c.entries {
		c.bytes += c.entries[i].doc.Len()
		c.memory += c.entries[i].size()
		c.oldest = min(c.oldest, c.entries[i].seen)
	}
}

// locate returns the chunk that holds a serial, if any does.
func (v *vector) locate(serial uint64) int {
	return sort.Search(len(v.chunks), func(i int) bool { return v.chunks[i].entries[0].serial > serial }) - 1
}

// within returns the position of a serial in the chunk.
func (c *chunk) within(serial uint64) int {
	return sort.Search(len(c.entries), func(i int) bool { return c.entries[i].serial >= serial })
}

// entry returns the item of a serial, which must be there.
func (v *vector) entry(serial uint64) *entry {
	c := v.chunks[v.locate(serial)]
	return &c.entries[c.within(serial)]
}

// position returns the position of an item among all.
func (v *vector) position(serial uint64) int {
	k := v.locate(serial)
	return v.starts[k] + v.chunks[k].within(serial)
}

func (v *vector) oldest() int64 {
	oldest := int64(1<<63 - 1)
	for _, c := range v.chunks {
		oldest = min(oldest, c.oldest)
	}
	return oldest
}

// all returns the items in order.
func (v *vector) all() iter.Seq[*entry] { return v.before(1<<63 - 1) }

// before returns the items last seen before a time, in order.
func (v *vector) before(limit int64) iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for _, c := range v.chunks {
			if c.oldest >= limit {
				continue
			}
			for i := range c.entries {
				if c.entries[i].seen < limit && !yield(&c.entries[i]) {
					return
				}
			}
		}
	}
}

// An edit is a state being changed. It copies chunks when it first writes to them.
type edit struct {
	base   *Items
	chunks []*chunk
	own    []bool // which chunks are copies that nobody else has
	index  indexEdit
	serial uint64
	edited bool

	renewed bool  // items were put that were there
	since   int64 // the least seen of those
}

func (s *Items) edit() *edit {
	return &edit{
		base:   s,
		chunks: slices.Clone(s.vector.chunks),
		own:    make([]bool, len(s.vector.chunks)),
		index:  s.index.edit(),
		serial: s.serial,
	}
}

// done returns the new state, or the old one if nothing was written.
func (e *edit) done() *Items {
	if !e.edited {
		return e.base
	}
	for i, c := range e.chunks {
		if e.own[i] {
			c.seal()
		}
	}
	return &Items{history: e.base.history, vector: newVector(e.chunks), index: e.index.done(), serial: e.serial}
}

// writable returns a chunk that may be changed.
func (e *edit) writable(k int) *chunk {
	e.edited = true
	if !e.own[k] {
		e.chunks[k] = &chunk{entries: append(make([]entry, 0, chunkLen), e.chunks[k].entries...)}
		e.own[k] = true
	}
	return e.chunks[k]
}

// append adds an item at the end.
func (e *edit) append(n entry) {
	n.serial = e.serial
	e.serial++
	e.index.set(n.id, n.serial)
	last := len(e.chunks) - 1
	if last < 0 || len(e.chunks[last].entries) >= chunkLen {
		e.chunks = append(e.chunks, &chunk{entries: make([]entry, 0, chunkLen)})
		e.own = append(e.own, true)
		last++
	}
	c := e.writable(last)
	c.entries = append(c.entries, n)
}

// remove takes an item of the base state out.
func (e *edit) remove(old *entry) {
	// Chunks keep their places while edited, so the base state's positions still tell which one it is.
	c := e.writable(e.base.vector.locate(old.serial))
	at := c.within(old.serial)
	c.entries = slices.Delete(c.entries, at, at+1)
	e.index.delete(old.id)
}
