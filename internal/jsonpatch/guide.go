package jsonpatch

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// A guide is what the parser knows of the previous version while it reads the next one. Most bytes of a new version
// stand unchanged in the old one, which is valid already: where a child and those behind it equal old
// siblings, their stretch of the old tape is copied.
//
// The guide only ever suggests. Bytes are taken over when they are equal and in the same state of the grammar, so
// a wrong guess costs time and nothing else.
type guide struct {
	old     *Document
	blocks  []block // what was taken over, in order
	delta   int     // text[i] == old.text[i+delta] for i before horizon
	horizon int
	copied  int // bytes taken over so far
	copyCap int // capacity of a new tape that began as a copy of the old one; 0 if it did not
}

// A block is siblings that were taken over from the old document: n nodes at new are those at old. They are count
// children, whose text, with the comma or bracket behind each, has so many bytes.
type block struct{ new, old, n, count, bytes uint32 }

const (
	blockSize = 20
	minBlocks = 1024
)

// A trail is a frame's position in the old container that its container resembles.
type trail struct {
	expected mark   // the old child expected now
	anchor   mark   // the old child after the last one that is known to match
	end      uint32 // the node after the old children; 0 if there is no old container
	closing  uint32 // where the old container's closing bracket stands
	missed   uint32 // children in a row that nothing was found for
	began    int    // where in the text the last such element began
	before   int    // bytes taken over before it
}

// A mark is an old child: its node and where its text begins, its key included.
type mark struct{ at, pos uint32 }

// none is the place of no value.
var none = place{at: 1<<32 - 1}

const (
	// lookAhead is how many old siblings are tried when the expected one does not match.
	lookAhead = 8
	// lookBack is how many are tried from the last match on, in case elements were inserted.
	lookBack = 4
	// patience is how many children in a row may be missed before looking ahead gets rare, so that an array that
	// is all new is not compared with everything.
	patience = 4
	// evidence is how many equal bytes it takes to believe that an array goes on elsewhere.
	evidence = 24
)

func (g *guide) begin(prev *Document) {
	g.old, g.blocks = prev, g.blocks[:0]
	g.delta, g.horizon, g.copied, g.copyCap = 0, 0, 0, 0
}

func (g *guide) forget() { g.old = nil }

// root returns the old value that the document's root resembles.
func (g *guide) root() place {
	if g.old == nil {
		return none
	}
	return place{}
}

// follow sets a trail along the old value at p, for a container of this kind.
func (g *guide) follow(t *trail, p place, kind Kind) {
	t.end, t.missed = 0, 0
	t.expected.at, t.anchor.at = 0, 0
	if p == none {
		return
	}
	n := g.old.node(p)
	if n.kind() != kind {
		return
	}
	t.expected.at, t.expected.pos = p.at+1, p.pos+1
	t.anchor.at, t.anchor.pos = p.at+1, p.pos+1
	t.end, t.closing = p.at+n.span, p.pos+n.size-1
}

// patient reports whether it is worth looking far: at the first misses, then at ever fewer.
func (t *trail) patient() bool {
	return t.missed <= patience || t.missed&(t.missed-1) == 0
}

// after returns the sibling behind an old child.
func (g *guide) after(m mark) mark {
	n := &g.old.tape[m.at]
	return mark{m.at + n.span, m.pos + n.key + n.size + 1}
}

// common returns how many bytes from pos on equal those of the old text from old on.
func (p *parser) common(old uint32) int {
	delta := int(old) - p.pos
	if delta != p.delta || p.pos >= p.horizon {
		p.delta = delta
		p.horizon = p.pos + commonPrefix(p.text[p.pos:], p.old.text[old:])
	}
	return p.horizon - p.pos
}

// copyRun takes over the expected old child and those behind it, as far as the text equals theirs. It reports whether
// there was one, and then leaves pos behind the last.
func (p *parser) copyRun(f *frame) bool {
	if f.expected.at >= f.end {
		return false
	}
	equal := uint32(p.common(f.expected.pos))
	m, used, isObject := f.expected.at, uint32(0), f.info&kindMask == uint32(Object)
	sum, count := f.sum, f.count
	for m < f.end {
		n := &p.old.tape[m]
		end := used + n.key + n.size
		if end > equal || end == equal && !p.ends(int(end)) {
			break
		}
		if isObject {
			sum = addMember(sum, n.hash)
		} else {
			sum = addElement(sum, n.hash)
		}
		count++
		used = end + 1
		m += n.span
	}
	if used == 0 {
		return false
	}
	if len(p.blocks) < max(minBlocks, len(p.text)/blockSize) { // what is not known to be equal is found to be
		p.blocks = put(p.blocks, block{uint32(len(p.tape)), f.expected.at, m - f.expected.at, count - f.count, used})
	}
	if len(p.tape) == int(f.expected.at) && cap(p.tape) == p.copyCap {
		p.tape = p.tape[:m] // these nodes are in place already
	} else {
		p.tape = append(p.tape, p.old.tape[f.expected.at:m]...)
	}
	f.sum, f.count, f.missed = sum, count, 0
	f.expected = mark{m, f.expected.pos + used}
	f.anchor = f.expected
	p.pos += int(used) - 1
	p.copied += int(used)
	return true
}

// ends reports whether a value can end n bytes after pos. A number there must not go on.
func (p *parser) ends(n int) bool {
	if p.pos+n >= len(p.text) {
		return false
	}
	c := p.text[p.pos+n]
	return c == ',' || c == ']' || c == '}'
}

// takeOver takes over elements of an array, from the expected one on or, if the array was shifted, from where
// it goes on.
func (p *parser) takeOver(f *frame) bool {
	if f.missed > 0 && p.alike(f) {
		f.anchor, f.missed = f.expected, 0
	}
	if p.copyRun(f) {
		return true
	}
	c := p.text[p.pos]
	if f.missed == 0 && (c == '{' || c == '[') {
		return false // it probably changed inside
	}
	return p.seek(f) && p.copyRun(f)
}

// alike reports whether the last element that was not taken over whole was at least in good part.
func (p *parser) alike(f *frame) bool {
	return (p.copied-f.before)*4 >= p.pos-f.began
}

// A sighting is the best candidate for where an array goes on.
type sighting struct {
	at     mark
	length int  // of the common prefix
	whole  bool // it covers a child, and enough to be believed
}

// seek moves the trail to the old element most like the text at pos and reports whether that one is taken to be equal.
func (p *parser) seek(f *frame) bool {
	ahead, back := 1, 1
	if f.patient() {
		ahead, back = 1+lookAhead, lookBack
	}
	var best sighting
	p.look(f, &best, f.expected, ahead)
	p.look(f, &best, f.anchor, back)
	if best.length > 0 {
		f.expected = best.at
	}
	return best.whole
}

// look compares the text at pos with n old elements from m on.
func (p *parser) look(f *frame, best *sighting, m mark, n int) {
	for ; n > 0 && m.at < f.end && !best.whole; n-- {
		length := p.common(m.pos)
		if length > best.length {
			enough := length >= evidence || int(m.pos)+length >= int(f.closing)
			*best = sighting{m, length, enough && length >= int(p.old.tape[m.at].size)}
		}
		m = p.after(m)
	}
}

// take consumes the expected old element as the one that the next element of the array resembles.
func (p *parser) take(f *frame) place {
	f.missed++
	f.began, f.before = p.pos, p.copied
	if f.expected.at >= f.end {
		return none
	}
	old := place{f.expected.at, f.expected.pos}
	f.expected = p.after(f.expected)
	return old
}

// knownKey looks for the key at pos among the next old members. If it is there, so that it needs no reading, it
// returns its length with the colon, its flags, and the old value.
func (p *parser) knownKey(f *frame) (key, flags uint32, old place, ok bool) {
	ahead := 1
	if f.patient() {
		ahead += lookAhead
	}
	for m := f.expected; ahead > 0 && m.at < f.end; ahead-- {
		n := &p.old.tape[m.at]
		end := p.pos + int(n.key)
		if end <= len(p.text) && bytes.Equal(p.text[p.pos:end], p.old.text[m.pos:m.pos+n.key]) {
			f.expected, f.missed = p.after(m), 0
			return n.key, n.info & flagKeyEscaped, place{m.at, m.pos + n.key}, true
		}
		m = p.after(m)
	}
	f.missed++
	return 0, 0, none, false
}

// commonPrefix returns how many leading bytes of a and b are equal: words first, then blocks that double in size, then
// blocks that halve.
func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	a, b = a[:n], b[:n]
	i := 0
	for ; i+8 <= n && i < 64; i += 8 {
		if x := binary.LittleEndian.Uint64(a[i:]) ^ binary.LittleEndian.Uint64(b[i:]); x != 0 {
			return i + bits.TrailingZeros64(x)>>3
		}
	}
	block := 64
	for i+block <= n && bytes.Equal(a[i:i+block], b[i:i+block]) {
		i += block
		block = min(block*2, 4096)
	}
	for ; block >= 64; block /= 2 {
		if i+block <= n && bytes.Equal(a[i:i+block], b[i:i+block]) {
			i += block
		}
	}
	for ; i+8 <= n; i += 8 {
		if x := binary.LittleEndian.Uint64(a[i:]) ^ binary.LittleEndian.Uint64(b[i:]); x != 0 {
			return i + bits.TrailingZeros64(x)>>3
		}
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}
