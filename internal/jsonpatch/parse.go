package jsonpatch

import (
	"bytes"
	"strconv"
	"sync"
)

// Parse reads one JSON document. It takes src over: the document may keep it as its text, so nobody may modify
// it afterwards. Errors are of type *SyntaxError.
func Parse(src []byte, limits Limits) (*Document, error) {
	return ParseNext(nil, src, limits)
}

// ParseNext is Parse for a document that is probably much like prev, which may be nil. What stands unchanged in prev
// is not read again; the result and the errors are those of Parse. If src is prev byte for byte, the result is prev.
func ParseNext(prev *Document, src []byte, limits Limits) (*Document, error) {
	p := parsers.Get().(*parser)
	defer p.release()
	return p.document(prev, src, limits)
}

// A parser reads one document. It reads compact text only: at the first white space outside a string it gives up,
// and is started again on compacted text.
type parser struct {
	text      []byte
	pos       int
	tape      []node
	frames    []frame // the containers open at pos, outermost first
	maxDepth  int
	compacted bool // text is no longer the source
	spaced    bool // white space was met; compact and start again
	fault     string
	faultPos  int
	keys      keyIndex
	meaning   []byte // of the last string with escapes
	guide
}

// A frame is a container that is being read.
type frame struct {
	at       uint32 // its node
	start    uint32 // its first byte
	count    uint32 // children so far
	key      uint32 // as in node
	info     uint32 // kind and flags, as in node
	unproven bool   // keys came that no object of the old document vouches for: look for duplicates
	sum      uint64 // hashes of the children so far
	trail
}

var parsers = sync.Pool{New: func() any { return new(parser) }}

// release returns the parser to the pool without anything that belongs to a document.
func (p *parser) release() {
	p.text, p.tape = nil, nil
	p.guide.forget()
	if blockSize*cap(p.blocks)+slotSize*cap(p.keys.slots)+cap(p.meaning) <= maxPooled {
		parsers.Put(p)
	}
}

// document does all of ParseNext.
func (p *parser) document(prev *Document, src []byte, limits Limits) (*Document, error) {
	text, lead := trimSpace(src)
	p.maxDepth = limits.depth()
	if prev != nil && (prev.depth > p.maxDepth || len(prev.text) > limits.bytes()) {
		prev = nil // what was good enough for it need not be now
	}
	if prev != nil && bytes.Equal(prev.text, text) {
		return prev, nil
	}
	p.compacted = false
	ok := false
	if p.spaced = len(text) > limits.bytes(); !p.spaced {
		ok = p.start(prev, text)
	}
	if p.spaced {
		p.compacted = true
		compacted := compact(text)
		if prev != nil && bytes.Equal(prev.text, compacted) {
			return prev, nil
		}
		if len(compacted) > limits.bytes() {
			return nil, newSyntaxError(src, 0, "document longer than "+strconv.Itoa(limits.bytes())+" bytes")
		}
		ok = p.start(prev, compacted)
	}
	if !ok {
		return nil, p.syntaxError(src, text, lead)
	}
	return &Document{text: p.text, tape: p.trimmedTape(), depth: p.maxDepth}, nil
}

// trimmedTape returns the tape without much unused room: documents are kept for long.
func (p *parser) trimmedTape() []node {
	if cap(p.tape) > len(p.tape)+len(p.tape)/3+16 {
		return append([]node(nil), p.tape...)
	}
	return p.tape
}

// start reads text from its beginning. If it fails, either spaced or fault says why.
func (p *parser) start(prev *Document, text []byte) bool {
	p.text, p.pos, p.frames = text, 0, p.frames[:0]
	p.spaced, p.fault = false, ""
	p.guide.begin(prev)
	p.tape = p.newTape(prev)
	return p.run()
}

// newTape returns an empty tape with room for what the text probably needs. If that is what prev has, the room holds a copy
// of prev's tape, of which much can stay where it is.
func (p *parser) newTape(prev *Document) []node {
	if prev == nil {
		return make([]node, 0, len(p.text)/12+4)
	}
	if grown := len(p.text) - len(prev.text); grown > len(p.text)/32+64 {
		return make([]node, 0, len(prev.tape)+grown/12+4)
	} else if -grown > len(p.text)/2 {
		return make([]node, 0, len(p.text)/12+4)
	}
	tape := append([]node(nil), prev.tape...)
	p.copyCap = cap(tape)
	return tape[:0]
}

// run reads the one value that is the document.
func (p *parser) run() bool {
	if len(p.text) == 0 {
		return p.fail(0, "the input is empty")
	}
	if !p.value(0, 0, p.root()) {
		return false
	}
	for len(p.frames) > 0 {
		if !p.step() {
			return false
		}
	}
	if p.pos < len(p.text) {
		return p.unexpected("after the document")
	}
	return true
}

// step reads one child of the innermost container, and what follows it.
func (p *parser) step() bool {
	f := &p.frames[len(p.frames)-1]
	if f.info&kindMask == uint32(Object) {
		if !p.member(f) {
			return false
		}
	} else if !p.element(f) {
		return false
	}
	return p.separator()
}

// separator reads the comma after a child, or the brackets that close containers. It leaves pos at a child, or
// behind the document. A container just opened is at its first child, or at its closing bracket.
func (p *parser) separator() bool {
	for len(p.frames) > 0 {
		f := &p.frames[len(p.frames)-1]
		if p.pos >= len(p.text) {
			return p.fail(p.pos, "unexpected end of input")
		}
		c, isObject := p.text[p.pos], f.info&kindMask == uint32(Object)
		switch {
		case c == ',' && f.count > 0:
			p.pos++
			return true
		case c == '}' && isObject, c == ']' && !isObject:
			if !p.close(f) {
				return false
			}
		case f.count == 0:
			return true
		case isObject:
			return p.unexpected("after an object member; want a comma or '}'")
		default:
			return p.unexpected("after an array element; want a comma or ']'")
		}
	}
	return true
}

// element reads one element of an array, or many that stand unchanged in the old document.
func (p *parser) element(f *frame) bool {
	if f.end > 0 && p.pos < len(p.text) && p.takeOver(f) {
		return true
	}
	return p.value(0, 0, p.take(f))
}

// member reads one member of an object, or many that stand unchanged in the old document.
func (p *parser) member(f *frame) bool {
	if f.expected.at < f.end {
		if p.copyRun(f) {
			return true
		}
		if key, flags, old, ok := p.knownKey(f); ok {
			p.pos += int(key)
			return p.value(key, flags, old)
		}
	}
	f.unproven = true
	start := p.pos
	if p.pos >= len(p.text) || p.text[p.pos] != '"' {
		return p.unexpected("where an object key must begin")
	}
	escaped, ok := p.str()
	if !ok {
		return false
	}
	if p.pos >= len(p.text) || p.text[p.pos] != ':' {
		return p.unexpected("after an object key; want ':'")
	}
	p.pos++
	var flags uint32
	if escaped {
		flags = flagKeyEscaped
	}
	return p.value(uint32(p.pos-start), flags, none)
}

// value reads the value at pos. Of a container it reads only the opening bracket, and opens a frame. key and flags
// belong to its member; old is the value of the old document that it probably resembles.
func (p *parser) value(key, flags uint32, old place) bool {
	if p.pos >= len(p.text) {
		return p.fail(p.pos, "unexpected end of input")
	}
	start := p.pos
	var hash uint64
	var ok bool
	switch c := p.text[p.pos]; {
	case c == '"':
		var escaped bool
		if escaped, ok = p.str(); !ok {
			return false
		}
		if escaped {
			flags |= flagEscaped
		}
		content := p.text[start+1 : p.pos-1]
		if escaped {
			content = p.meaning
		}
		hash = hashText(content)
		flags |= uint32(String)
	case c-'0' <= 9 || c == '-':
		var n smallNumber
		if p.pos, n, ok = scanNumber(p.text, p.pos); !ok {
			return p.unexpected("in a number")
		}
		hash = hashNumber(p.text[start:p.pos], n)
		flags |= uint32(Number)
	case c == '{' || c == '[':
		return p.open(key, flags, old)
	default:
		kind, i, ok := p.literal()
		if !ok {
			return p.unexpected("where a value must begin")
		}
		hash = literals[i]
		flags |= uint32(kind)
	}
	p.leaf(hash, uint32(p.pos-start), key, flags)
	return true
}

// leaf puts a value without children, which ends at pos, on the tape.
func (p *parser) leaf(hash uint64, size, key, info uint32) {
	truncated := truncate(hash)
	if len(p.frames) > 0 {
		f := &p.frames[len(p.frames)-1]
		f.count++
		truncated = p.cover(f, hash, uint32(p.pos)-size, key, info)
	}
	// The fields are written one by one, here and elsewhere: copying a whole record that was just put together makes the
	// processor wait for its parts.
	n := p.node()
	n.hash, n.size, n.span, n.key, n.info = truncated, size, 1, key, info
}

// node adds a node to the tape, for the caller to fill.
func (p *parser) node() *node {
	n := len(p.tape)
	if n == cap(p.tape) {
		p.tape = append(p.moreTape(), node{})
	} else {
		p.tape = p.tape[:n+1]
	}
	return &p.tape[n]
}

// moreTape returns the tape with room for what the rest of the text needs, if it is as dense as what was read.
func (p *parser) moreTape() []node {
	n, rest := len(p.tape), len(p.text)-p.pos
	alike := int(1.02 * float64(n) / float64(max(p.pos, 1)) * float64(rest))
	return append(make([]node, 0, n+n/8+min(alike, rest/2)+16), p.tape...) // a value takes two bytes at least
}

// cover adds a finished child at pos to the hash of its container. It returns the child's own hash, which in an object
// covers its key.
func (p *parser) cover(f *frame, hash uint64, pos, key, info uint32) uint32 {
	if f.info&kindMask != uint32(Object) {
		truncated := truncate(hash)
		f.sum = addElement(f.sum, truncated)
		return truncated
	}
	truncated := truncate(hashMember(hashString(p.text[pos-key+1:pos-2], info&flagKeyEscaped != 0), hash))
	f.sum = addMember(f.sum, truncated)
	return truncated
}

// open begins a container.
func (p *parser) open(key, flags uint32, old place) bool {
	depth := len(p.frames)
	if depth >= p.maxDepth {
		return p.fail(p.pos, "nesting deeper than "+strconv.Itoa(p.maxDepth))
	}
	if depth > 0 {
		p.frames[depth-1].count++
	}
	if depth == cap(p.frames) {
		p.frames = append(p.frames, frame{})
	} else {
		p.frames = p.frames[:depth+1]
	}
	kind := Array
	if p.text[p.pos] == '{' {
		kind = Object
	}
	f := &p.frames[depth]
	f.at, f.start, f.count, f.key, f.info = uint32(len(p.tape)), uint32(p.pos), 0, key, flags|uint32(kind)
	f.unproven, f.sum = false, 0
	p.follow(&f.trail, old, kind)
	p.node()
	p.pos++
	if p.pos < len(p.text) && p.text[p.pos] == closing[kind] {
		return p.close(f)
	}
	return true
}

// closing maps a kind to its closing bracket.
var closing = [...]byte{Array: ']', Object: '}'}

// close ends the innermost container.
func (p *parser) close(f *frame) bool {
	p.pos++
	hash := hashContainer(Kind(f.info&kindMask), f.sum, f.count)
	truncated, depth := truncate(hash), len(p.frames)-1
	if depth > 0 {
		truncated = p.cover(&p.frames[depth-1], hash, f.start, f.key, f.info)
	}
	n := &p.tape[f.at]
	n.hash, n.size, n.span = truncated, uint32(p.pos)-f.start, uint32(len(p.tape))-f.at
	n.key, n.info = f.key, f.info|f.count<<infoBits
	if f.unproven && f.count > 1 && !p.distinct(f) {
		return false
	}
	p.frames = p.frames[:depth]
	return true
}
