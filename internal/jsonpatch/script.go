package jsonpatch

type opKind uint8

const (
	opAdd opKind = iota
	opReplace
	opRemove
)

// What stands around path and value of an operation.
var (
	opHeads = [...]string{
		opAdd:     `{"op":"add","path":"`,
		opReplace: `{"op":"replace","path":"`,
		opRemove:  `{"op":"remove","path":"`,
	}
	opMiddle = `","value":`
	opTail   = `}`
)

// A script is a patch being made: operations whose length is known and whose text is not yet written.
type script struct {
	ops    []op
	paths  []step
	names  []byte // keys that need another spelling in a path
	length int    // of the patch's text, less its last bracket
	limit  int    // a longer script is of no use: something shorter will take its place

	maxSteps int // paths that may be held
}

// An op is one operation. Its value is a stretch of the new document's text.
type op struct {
	kind      opKind
	path      int32
	pos, size uint32
}

// A step is one path: that of another step and one more token, which is a stretch of some text or an index.
type step struct {
	parent int32
	length int32 // of the whole path in a JSON string
	source tokenSource
	at     uint32 // where the token is in its text, or the index
	size   uint32 // of the token
}

// A tokenSource tells where the token of a step is written.
type tokenSource uint8

const (
	inOld tokenSource = iota
	inNew
	inNames
	isIndex
	isEnd // the token "-"
)

const rootPath = int32(0)

func (s *script) reset(bytes int) {
	s.maxSteps = bytes / 8 / stepSize
	s.ops, s.paths, s.names = s.ops[:0], append(s.paths[:0], step{}), s.names[:0]
	s.length = 1
}

// full reports whether the script is so long that it will not be used.
func (s *script) full() bool { return s.length > s.limit }

// abandon makes the script full: something around what is being compared will be sent whole.
func (s *script) abandon() { s.length = s.limit + 1 }

// size returns how many bytes the script keeps.
func (s *script) size() int { return opSize*cap(s.ops) + stepSize*cap(s.paths) + cap(s.names) }

const (
	opSize   = 16
	stepSize = 20
)

// A scriptMark is a state of a script to which it can return.
type scriptMark struct{ ops, paths, names, length int }

func (s *script) mark() scriptMark {
	return scriptMark{len(s.ops), len(s.paths), len(s.names), s.length}
}

// rewind takes back all operations since the mark, and their paths, which no others use.
func (s *script) rewind(before scriptMark) {
	s.ops, s.paths, s.names, s.length = s.ops[:before.ops], s.paths[:before.paths], s.names[:before.names], before.length
}

// op adds an operation. For remove, pos and size do not matter.
func (s *script) op(kind opKind, path int32, pos, size uint32) {
	s.ops = put(s.ops, op{kind, path, pos, size})
	s.length += s.opLen(kind, path, size)
}

// opLen returns the length of an operation with the comma or bracket before or after it.
func (s *script) opLen(kind opKind, path int32, size uint32) int {
	n := len(opHeads[kind]) + int(s.paths[path].length) + 1
	if kind == opRemove {
		return n + len(`"`) + len(opTail)
	}
	return n + len(opMiddle) + int(size) + len(opTail)
}

// step returns the path of a token below another path. If there are too many, it abandons the script: values that are as deep as
// they are long would have paths that take many times their text.
func (s *script) step(parent int32, source tokenSource, at, size uint32) int32 {
	if len(s.paths) > s.maxSteps {
		s.abandon()
	}
	length := s.paths[parent].length + 1 + int32(size)
	s.paths = put(s.paths, step{parent, length, source, at, size})
	return int32(len(s.paths) - 1)
}

// keyStep returns the path of the member at p of one of the two documents.
func (s *script) keyStep(parent int32, d *Document, p place, source tokenSource) int32 {
	key := d.key(p)
	if !d.node(p).keyEscaped() && isPlainToken(key) {
		return s.step(parent, source, p.pos-d.node(p).key+1, uint32(len(key)))
	}
	at := len(s.names)
	s.names = appendPointerToken(s.names, key)
	return s.step(parent, inNames, uint32(at), uint32(len(s.names)-at))
}

// isPlainToken reports whether a key means itself in a pointer.
func isPlainToken(key []byte) bool {
	for _, c := range key {
		if c == '~' || c == '/' {
			return false
		}
	}
	return true
}

// indexStep returns the path of an array's element.
func (s *script) indexStep(parent, index int32) int32 {
	size := uint32(1)
	for rest := index; rest >= 10; rest /= 10 {
		size++
	}
	return s.step(parent, isIndex, uint32(index), size)
}

// endStep returns the path of the place behind an array's last element.
func (s *script) endStep(parent int32) int32 { return s.step(parent, isEnd, 0, 1) }

// patch writes the operations as a JSON Patch.
func (d *differ) patch() []byte {
	out := make([]byte, 0, d.length+1)
	for i := range d.ops {
		out = append(out, ',')
		out, _ = d.appendOp(out, &d.ops[i])
	}
	out[0] = '['
	return append(out, ']')
}

// appendOp appends the text of an operation and returns where in it the path begins.
func (d *differ) appendOp(out []byte, o *op) ([]byte, int) {
	out = append(out, opHeads[o.kind]...)
	at := len(out)
	out = d.appendPath(out, o.path)
	if o.kind == opRemove {
		return append(append(out, '"'), opTail...), at
	}
	out = append(out, opMiddle...)
	out = append(out, d.new.text[o.pos:o.pos+o.size]...)
	return append(out, opTail...), at
}

// appendPath writes a path from its end, since steps know only what is before them.
func (d *differ) appendPath(out []byte, path int32) []byte {
	end := len(out) + int(d.paths[path].length)
	out = out[:end] // there is room: the length was counted when the operation was added
	for path != rootPath {
		st := &d.paths[path]
		end -= int(st.size)
		d.putToken(out[end:end+int(st.size)], st)
		end--
		out[end] = '/'
		path = st.parent
	}
	return out
}

// putToken writes the token of a step.
func (d *differ) putToken(out []byte, st *step) {
	switch st.source {
	case inOld:
		copy(out, d.old.text[st.at:])
	case inNew:
		copy(out, d.new.text[st.at:])
	case inNames:
		copy(out, d.names[st.at:])
	case isEnd:
		out[0] = '-'
	case isIndex:
		index := st.at
		for i := len(out) - 1; i >= 0; i-- {
			out[i] = byte('0' + index%10)
			index /= 10
		}
	}
}

// appendPointerToken appends a key, given as written in a document, as it stands in the JSON string of a pointer.
func appendPointerToken(dst, key []byte) []byte {
	var bufA, bufB [128]byte
	pointer := bufB[:0]
	for _, c := range appendUnescaped(bufA[:0], key) {
		switch c {
		case '~':
			pointer = append(pointer, "~0"...)
		case '/':
			pointer = append(pointer, "~1"...)
		default:
			pointer = append(pointer, c)
		}
	}
	return appendEscaped(dst, pointer)
}
