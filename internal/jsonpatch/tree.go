package jsonpatch

import "errors"

var errTooDeep = errors.New("nesting too deep")

// A tree is a value that can be changed. It is a value of some document until something inside it changes; only then
// it is unfolded, one level at a time.
type tree struct {
	doc      *Document
	at       place
	unfolded *container // if not nil, this is the value
}

// A container is an unfolded array or object. An array uses chunks, an object the rest.
type container struct {
	kind    Kind
	count   int
	chunks  [][]tree
	members []treeMember
	names   map[string]int // where in members a name is; nil while there are few
}

// A treeMember is a member of an unfolded object. One that was removed keeps its place.
type treeMember struct {
	name    string // unescaped
	key     []byte // as written, without quotes
	value   tree
	removed bool
}

const (
	// chunkLen is how many elements of an array stand together. Inserting costs moving half a chunk and looking at
	// all chunks' lengths, so that many operations on a long array do not cost its length each.
	chunkLen = 1024
	// fewMembers is how many members are looked through rather than indexed.
	fewMembers = 16
)

func rootTree(d *Document) tree { return tree{doc: d} }

// unfold returns the value's container, or nil if it is none.
func (t *tree) unfold() *container {
	if t.unfolded != nil {
		return t.unfolded
	}
	n := t.doc.node(t.at)
	c := &container{kind: n.kind()}
	switch c.kind {
	case Array:
		c.unfoldArray(t.doc, t.at)
	case Object:
		c.unfoldObject(t.doc, t.at)
	default:
		return nil
	}
	t.unfolded, t.doc = c, nil
	return c
}

func (c *container) unfoldArray(d *Document, at place) {
	places := d.children(nil, at)
	c.count = len(places)
	for len(places) > 0 {
		// Half full, so that there is room.
		n := min(len(places), chunkLen/2)
		room := chunkLen
		if n == c.count {
			room = n + 1 // most arrays are short, and few get longer
		}
		chunk := make([]tree, n, room)
		for i, p := range places[:n] {
			chunk[i] = tree{doc: d, at: p}
		}
		c.chunks = append(c.chunks, chunk)
		places = places[n:]
	}
}

func (c *container) unfoldObject(d *Document, at place) {
	for _, p := range d.children(nil, at) {
		key := d.key(p)
		name := string(key)
		if d.node(p).keyEscaped() {
			name = string(appendUnescaped(nil, key))
		}
		c.append(name, key, tree{doc: d, at: p})
	}
}

// chunk returns the chunk that holds element i, or that it would be inserted into, and its position in there.
func (c *container) chunk(i int) (chunk, at int) {
	for chunk = range c.chunks {
		n := len(c.chunks[chunk])
		if i < n || chunk == len(c.chunks)-1 {
			return chunk, i
		}
		i -= n
	}
	c.chunks = append(c.chunks, nil)
	return 0, 0
}

// element returns element i of an array, which must exist.
func (c *container) element(i int) *tree {
	chunk, at := c.chunk(i)
	return &c.chunks[chunk][at]
}

// insert puts an element before the one at i, or at the end.
func (c *container) insert(i int, v tree) {
	k, at := c.chunk(i)
	if len(c.chunks[k]) >= chunkLen {
		c.split(k)
		k, at = c.chunk(i)
	}
	chunk := append(c.chunks[k], tree{})
	copy(chunk[at+1:], chunk[at:])
	chunk[at] = v
	c.chunks[k] = chunk
	c.count++
}

// split halves a chunk.
func (c *container) split(k int) {
	half := c.chunks[k][chunkLen/2:]
	second := append(make([]tree, 0, chunkLen), half...)
	c.chunks[k] = c.chunks[k][:chunkLen/2]
	c.chunks = append(c.chunks, nil)
	copy(c.chunks[k+2:], c.chunks[k+1:])
	c.chunks[k+1] = second
}

// removeElement takes element i out.
func (c *container) removeElement(i int) {
	k, at := c.chunk(i)
	chunk := c.chunks[k]
	copy(chunk[at:], chunk[at+1:])
	c.chunks[k] = chunk[:len(chunk)-1]
	c.count--
	if len(c.chunks[k]) == 0 && len(c.chunks) > 1 {
		c.chunks = append(c.chunks[:k], c.chunks[k+1:]...)
	}
}

// find returns where in members a name is, or -1.
func (c *container) find(name string) int {
	if c.names != nil {
		if i, ok := c.names[name]; ok {
			return i
		}
		return -1
	}
	for i := range c.members {
		if !c.members[i].removed && c.members[i].name == name {
			return i
		}
	}
	return -1
}

// append adds a member whose name is not there yet.
func (c *container) append(name string, key []byte, v tree) {
	c.members = append(c.members, treeMember{name: name, key: key, value: v})
	c.count++
	switch {
	case c.names != nil:
		c.names[name] = len(c.members) - 1
	case len(c.members) > fewMembers:
		c.index()
	}
}

func (c *container) index() {
	c.names = make(map[string]int, c.count)
	for i := range c.members {
		if !c.members[i].removed {
			c.names[c.members[i].name] = i
		}
	}
}

// removeMember takes the member at i out. When half of the places are empty, the rest moves together.
func (c *container) removeMember(i int) {
	c.members[i].value, c.members[i].removed = tree{}, true
	c.count--
	if c.names != nil {
		delete(c.names, c.members[i].name)
	}
	if len(c.members) < 2*fewMembers || c.count*2 > len(c.members) {
		return
	}
	kept := c.members[:0]
	for _, m := range c.members {
		if !m.removed {
			kept = append(kept, m)
		}
	}
	clear(c.members[len(kept):])
	c.members = kept
	c.index()
}

// fold makes the tree a value of a document again, so that copies of it share that. What was unfolded is written and parsed
// once: a deep copy would cost many times its text, for as little as a copy operation in a patch.
func (t *tree) fold(limits Limits) error {
	if t.unfolded == nil {
		return nil
	}
	text, err := t.appendTo(nil, limits.depth())
	if err != nil {
		return err
	}
	if len(text) > limits.bytes() {
		return ErrTooLong
	}
	doc, err := Parse(text, limits)
	if err != nil {
		return err
	}
	*t = rootTree(doc)
	return nil
}

// appendTo appends the compact text of the tree, which may be depth levels deep.
func (t *tree) appendTo(dst []byte, depth int) ([]byte, error) {
	if t.unfolded == nil {
		return append(dst, t.doc.value(t.at)...), nil
	}
	if depth <= 0 {
		return nil, errTooDeep
	}
	c, start := t.unfolded, len(dst)
	var err error
	for _, chunk := range c.chunks {
		for i := range chunk {
			if dst, err = chunk[i].appendTo(append(dst, ','), depth-1); err != nil {
				return nil, err
			}
		}
	}
	for i := range c.members {
		m := &c.members[i]
		if m.removed {
			continue
		}
		dst = append(append(append(dst, ',', '"'), m.key...), '"', ':')
		if dst, err = m.value.appendTo(dst, depth-1); err != nil {
			return nil, err
		}
	}
	if len(dst) == start {
		dst = append(dst, ',') // becomes the opening bracket
	}
	dst[start] = opening[c.kind]
	return append(dst, closing[c.kind]), nil
}

// opening maps a kind to its opening bracket.
var opening = [...]byte{Array: '[', Object: '{'}

// equals compares the tree with a value. It costs no more than the text of that value.
func (t *tree) equals(d *Document, at place) bool {
	c := t.unfolded
	if c == nil {
		return equal(t.doc, t.at, d, at)
	}
	n := d.node(at)
	if n.kind() != c.kind || n.children() != c.count {
		return false
	}
	if c.kind == Array {
		return c.equalElements(d, at)
	}
	for _, p := range d.children(nil, at) {
		i := c.find(string(appendUnescaped(nil, d.key(p))))
		if i < 0 || !c.members[i].value.equals(d, p) {
			return false
		}
	}
	return true
}

func (c *container) equalElements(d *Document, at place) bool {
	places := d.children(nil, at)
	for _, chunk := range c.chunks {
		for i := range chunk {
			if !chunk[i].equals(d, places[0]) {
				return false
			}
			places = places[1:]
		}
	}
	return true
}
