package jsonpatch

// Edits is the change of one value inside a larger document, to be written below any path. It serves documents that are
// put together from others, such as an array of items seen through many filters: the items are compared once.
type Edits struct {
	text  []byte  // operations without the path of the value, each with a comma before it
	paths []int32 // where in text a path begins
}

// Compare returns the edits that turn old into new wherever it stands. Unlike Diff it may replace the whole value, if that is
// shorter.
func Compare(old, new *Document) Edits {
	d := differs.Get().(*differ)
	defer d.release()
	d.begin(old, new, nil)
	if old == new || d.same(place{}, place{}) {
		return Edits{}
	}
	d.limit = maxBytes
	d.value(place{}, place{}, rootPath)
	var e Edits
	e.text = make([]byte, 0, d.length)
	e.paths = make([]int32, 0, len(d.ops))
	for i := range d.ops {
		var at int
		e.text = append(e.text, ',')
		e.text, at = d.appendOp(e.text, &d.ops[i])
		e.paths = append(e.paths, int32(at))
	}
	return e
}

// None reports whether there is nothing to change.
func (e Edits) None() bool { return len(e.paths) == 0 }

// Append appends the operations, separated by commas, for a value at path, and a comma before them if anything but an
// opening bracket comes before. path must need no escaping, as that of an array index.
func (e Edits) Append(dst []byte, path string) []byte {
	if e.None() {
		return dst
	}
	text := e.text
	if len(dst) == 0 || dst[len(dst)-1] == '[' {
		text = text[1:]
	}
	from := len(e.text) - len(text)
	for _, at := range e.paths {
		dst = append(append(dst, e.text[from:at]...), path...)
		from = int(at)
	}
	return append(dst, e.text[from:]...)
}
