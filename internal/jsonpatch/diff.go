package jsonpatch

import "sync"

// wholeAbove is the length up to which a patch is sent even if it is longer than the document.
const wholeAbove = 4096

// ChangeKind tells what it takes to bring a document from one version to another.
type ChangeKind uint8

const (
	// Same means that the versions are equal JSON.
	Same ChangeKind = iota
	// Patched means that a JSON Patch leads from the one to the other.
	Patched
	// Whole means that the new document is to be sent whole: its root was replaced, or the patch would be longer than
	// both 4 KiB and the document.
	Whole
)

// A Change is the difference between two versions of a document.
type Change struct {
	Kind  ChangeKind
	Patch []byte // a JSON Patch of add, replace and remove, none with the root path; nil unless Kind is Patched
}

// Diff returns the change from one document to another. It is deterministic.
func Diff(old, new *Document) Change {
	d := differs.Get().(*differ)
	defer d.release()
	return d.change(old, new, nil)
}

// Next is ParseNext and Diff in one, and faster than both: what is taken over from prev need not be compared again. It is
// deterministic too, but where there are several good patches it may choose another than Diff. If the change is Same, the document
// is prev; if prev is nil, the change is Whole.
func Next(prev *Document, src []byte, limits Limits) (*Document, Change, error) {
	p := parsers.Get().(*parser)
	defer p.release()
	doc, err := p.document(prev, src, limits)
	if err != nil {
		return nil, Change{}, err
	}
	if prev == nil {
		return doc, Change{Kind: Whole}, nil
	}
	d := differs.Get().(*differ)
	defer d.release()
	change := d.change(prev, doc, p.blocks)
	if change.Kind == Same {
		return prev, change, nil
	}
	return doc, change, nil
}

// A differ compares two documents. First it collects operations, knowing only how long each will be; what
// replaces several of them by a shorter one takes them back. Then it writes those that are left.
type differ struct {
	old, new *Document
	blocks   []block // stretches of tape known to be equal, in order
	script
	scratch
}

var differs = sync.Pool{New: func() any { return new(differ) }}

// maxPooled bounds the scratch memory that is kept for the next comparison.
const maxPooled = 4 << 20

// release returns the differ to the pool without anything that belongs to a document.
func (d *differ) release() {
	d.old, d.new, d.blocks = nil, nil, nil
	if d.scratch.size()+d.script.size() <= maxPooled {
		differs.Put(d)
	}
}

func (d *differ) begin(old, new *Document, blocks []block) {
	d.old, d.new, d.blocks = old, new, blocks
	bytes := maxScratch(old, new)
	d.script.reset(bytes)
	d.scratch.reset(len(old.tape)+len(new.tape), bytes)
}

func (d *differ) change(old, new *Document, blocks []block) Change {
	if old == new {
		return Change{Kind: Same}
	}
	d.begin(old, new, blocks)
	root := place{}
	if d.same(root, root) {
		return Change{Kind: Same}
	}
	d.limit = max(wholeAbove, len(new.text)) - 1
	if !d.inside(root, root, rootPath) || d.full() {
		return Change{Kind: Whole}
	}
	return Change{Kind: Patched, Patch: d.patch()}
}

// same reports whether two values at the same key, or two elements, are equal.
func (d *differ) same(o, n place) bool {
	return d.old.node(o).hash == d.new.node(n).hash && equal(d.old, o, d.new, n)
}

// blocksFrom returns the blocks that begin at a node or behind it.
func (d *differ) blocksFrom(at uint32) []block {
	low, high := 0, len(d.blocks)
	for low < high {
		mid := int(uint(low+high) >> 1)
		if d.blocks[mid].new < at {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return d.blocks[low:]
}

// inside records how one container becomes another. It reports false if they are not containers of one kind.
func (d *differ) inside(o, n place, path int32) bool {
	a, b := d.old.node(o).kind(), d.new.node(n).kind()
	switch {
	case a == Array && b == Array:
		d.array(o, n, path)
	case a == Object && b == Object:
		d.object(o, n, path)
	default:
		return false
	}
	return true
}

// value records how the old value at a path becomes the new one, which differs: by changes inside it, or by
// replacing it if that is shorter.
func (d *differ) value(o, n place, path int32) {
	before, limit := d.script.mark(), d.limit
	size := d.new.node(n).size
	most := d.length + d.opLen(opReplace, path, size)
	d.limit = min(limit, most)
	inside := d.inside(o, n, path)
	d.limit = limit
	if inside && d.length <= most {
		return
	}
	d.script.rewind(before)
	d.op(opReplace, path, n.pos, size)
}

// object compares members: in order as long as the keys are the same, then by looking keys up. What the parser took
// over is skipped.
func (d *differ) object(o, n place, path int32) {
	olds, news := d.old.node(o).children(), d.new.node(n).children()
	if olds == 0 || news == 0 {
		d.unordered(d.old.all(o), d.new.all(n), path)
		return
	}
	p, q := d.old.first(o), d.new.first(n)
	blocks := d.blocksFrom(q.at)
	for olds > 0 && news > 0 && !d.full() {
		for len(blocks) > 0 && blocks[0].new < q.at {
			blocks = blocks[1:]
		}
		if len(blocks) > 0 && blocks[0].new == q.at && blocks[0].old == p.at {
			b := blocks[0]
			p, q = d.old.skip(p, b), d.new.skip(q, b)
			olds, news = olds-int(b.count), news-int(b.count)
			continue
		}
		if !equalKeys(d.old, p, d.new, q) {
			break
		}
		d.member(p, q, path)
		olds, news = olds-1, news-1
		p, q = d.old.after(p), d.new.after(q)
	}
	if (olds > 0 || news > 0) && !d.full() {
		d.unordered(rest{p, olds}, rest{q, news}, path)
	}
}

// A rest is the last count children of a container, from one on.
type rest struct {
	from  place
	count int
}

// all returns the children of the container at p.
func (d *Document) all(p place) rest {
	if n := d.node(p).children(); n > 0 {
		return rest{d.first(p), n}
	}
	return rest{}
}

// places appends the places of the children.
func (r rest) places(dst []place, d *Document) []place {
	p := r.from
	dst = grown(dst, len(dst)+r.count)
	for i := range r.count {
		if i > 0 {
			p = d.next(p)
		}
		dst = append(dst, p)
	}
	return dst
}

// member records how a member that both objects have changes.
func (d *differ) member(o, n place, path int32) {
	if !d.same(o, n) {
		d.value(o, n, d.keyStep(path, d.new, n, inNew))
	}
}

// unordered compares what is left of two objects after their common beginning.
func (d *differ) unordered(o, n rest, path int32) {
	if o.count+n.count+o.count/placeSize > d.room() || slotSize*tableLen(o.count) > d.maxSearch {
		d.abandon()
		return
	}
	frame := d.scratch.mark()
	defer d.scratch.rewind(frame)
	d.olds, d.news = o.places(d.olds, d.old), n.places(d.news, d.new)
	olds, news := d.olds[frame.olds:], d.news[frame.news:]
	gone := d.flags(len(olds))
	finder := keyFinder{d: d, olds: olds}
	for _, q := range news {
		if d.full() {
			return
		}
		if i, ok := finder.find(q); ok {
			gone[i] = false
			d.member(olds[i], q, path)
			continue
		}
		d.op(opAdd, d.keyStep(path, d.new, q, inNew), q.pos, d.new.node(q).size)
	}
	for i, p := range olds {
		if gone[i] {
			d.op(opRemove, d.keyStep(path, d.old, p, inOld), 0, 0)
		}
	}
}

// A keyFinder finds old members by key: the next one first, then among a few by comparing, among many by an index.
type keyFinder struct {
	d     *differ
	olds  []place
	next  int
	index *keyIndex
}

func (f *keyFinder) find(q place) (int, bool) {
	if f.next < len(f.olds) && equalKeys(f.d.old, f.olds[f.next], f.d.new, q) {
		f.next++
		return f.next - 1, true
	}
	i, ok := f.search(q)
	if ok {
		f.next = i + 1
	}
	return i, ok
}

func (f *keyFinder) search(q place) (int, bool) {
	if len(f.olds) <= 8 {
		for i, p := range f.olds {
			if equalKeys(f.d.old, p, f.d.new, q) {
				return i, true
			}
		}
		return 0, false
	}
	if f.index == nil {
		// The index is not the differ's own: objects inside this one may need theirs meanwhile.
		f.index = newKeyIndex(len(f.olds))
		for i, p := range f.olds {
			f.index.add(hashKey(f.d.old, p), place{uint32(i) + 1, 0})
		}
	}
	at, ok := f.index.find(hashKey(f.d.new, q), func(at place) bool {
		return equalKeys(f.d.old, f.olds[at.at-1], f.d.new, q)
	})
	return int(at.at) - 1, ok
}
