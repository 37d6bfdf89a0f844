package jsonpatch

// DefaultMaxDepth is how many containers may be inside each other when Limits does not say.
const DefaultMaxDepth = 512

// maxBytes bounds the compact text of any document, so that counts and sizes fit the tape's fields.
const maxBytes = 1<<27 - 1

// Limits bounds what a document may ask of this process. The zero value means the defaults.
type Limits struct {
	// MaxDepth is how many arrays and objects may be inside each other; 0 means DefaultMaxDepth.
	MaxDepth int
	// MaxBytes bounds the compact text of a document; 0 means 128 MiB, which is also the most.
	MaxBytes int
}

func (l Limits) depth() int {
	if l.MaxDepth <= 0 {
		return DefaultMaxDepth
	}
	return l.MaxDepth
}

func (l Limits) bytes() int {
	if l.MaxBytes <= 0 || l.MaxBytes > maxBytes {
		return maxBytes
	}
	return l.MaxBytes
}

// A Document is one JSON value: its compact text and the tape that describes it. It never changes.
type Document struct {
	text  []byte
	tape  []node
	depth int // the limit on nesting that it was found to keep
}

// Bytes returns the compact text. It is shared, not copied: the caller must not modify it.
func (d *Document) Bytes() []byte { return d.text }

// Len returns the length of the compact text in bytes.
func (d *Document) Len() int { return len(d.text) }

// Size returns how many bytes of memory the document takes.
func (d *Document) Size() int { return cap(d.text) + nodeSize*cap(d.tape) + documentSize }

// documentSize is what a document takes beside its text and its tape.
const documentSize = 64

// Equal reports whether two documents hold equal JSON. Spelling, white space and key order do not matter.
func Equal(a, b *Document) bool {
	return a == b || equal(a, place{}, b, place{})
}

// A node describes one value. Nodes stand in the order of the text; the subtree of the node at index i is
// tape[i : i+span]. Nothing in it depends on where the value stands, so a stretch of tape can be
// copied along with its text.
type node struct {
	hash uint32 // of the value and, in an object, its key; equal for equal JSON
	size uint32 // bytes of the value's text
	span uint32 // nodes of the subtree, this one included
	key  uint32 // in an object: bytes from the key's opening quote to the colon, both included; otherwise 0
	info uint32 // children<<infoBits | flags | Kind
}

const (
	kindMask            = 7
	flagEscaped         = 1 << 3 // the string contains a backslash
	flagKeyEscaped      = 1 << 4 // the key contains a backslash
	infoBits            = 5
	maxChildren         = 1<<(32-infoBits) - 1
	_              uint = maxChildren - maxBytes/2 // a child takes two bytes at least, so counts always fit
)

func (n *node) kind() Kind       { return Kind(n.info & kindMask) }
func (n *node) children() int    { return int(n.info >> infoBits) }
func (n *node) escaped() bool    { return n.info&flagEscaped != 0 }
func (n *node) keyEscaped() bool { return n.info&flagKeyEscaped != 0 }

// nodeSize is what a node takes, in bytes.
const nodeSize = 20

// A place is where a value stands: its node and the position of its first byte (after the key, in an object).
// The zero place is the root.
type place struct{ at, pos uint32 }

func (d *Document) node(p place) *node { return &d.tape[p.at] }

// value returns the text of the value at p.
func (d *Document) value(p place) []byte {
	return d.text[p.pos : p.pos+d.tape[p.at].size]
}

// key returns the key of the member at p as written, without its quotes.
func (d *Document) key(p place) []byte {
	return d.text[p.pos-d.tape[p.at].key+1 : p.pos-2]
}

// first returns the first child of the container at p, which must have one.
func (d *Document) first(p place) place {
	return place{p.at + 1, p.pos + 1 + d.tape[p.at+1].key}
}

// next returns the sibling after p, which must exist.
func (d *Document) next(p place) place {
	n := &d.tape[p.at]
	at := p.at + n.span
	return place{at, p.pos + n.size + 1 + d.tape[at].key}
}

// after is next, but there need not be a sibling: what it returns then must not be used.
func (d *Document) after(p place) place {
	n := &d.tape[p.at]
	return d.start(p.at+n.span, p.pos+n.size+1)
}

// skip returns the sibling after the block of siblings that begins at p, if there is one.
func (d *Document) skip(p place, b block) place {
	return d.start(p.at+b.n, p.pos-d.tape[p.at].key+b.bytes)
}

// start returns the place of the value of the member, or element, whose node is at and whose text begins at pos.
func (d *Document) start(at, pos uint32) place {
	if int(at) < len(d.tape) {
		pos += d.tape[at].key
	}
	return place{at, pos}
}

// children appends the places of the children of the container at p.
func (d *Document) children(dst []place, p place) []place {
	count := d.node(p).children()
	if count == 0 {
		return dst
	}
	c := d.first(p)
	dst = append(grown(dst, len(dst)+count), c)
	for range count - 1 {
		c = d.next(c)
		dst = append(dst, c)
	}
	return dst
}
