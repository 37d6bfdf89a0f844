package jsonpatch

// array compares two arrays as sequences. What the parser took over is common to both; between such runs, and if there
// are none, a longest common subsequence is looked for. Between common elements, old and new ones are paired and
// compared inside.
func (d *differ) array(o, n place, path int32) {
	if d.old.node(o).children() == 1 && d.new.node(n).children() == 1 {
		w := arrayWriter{d: d, path: path}
		w.pair(d.old.first(o), d.new.first(n))
		return
	}
	before := d.scratch.mark()
	defer d.scratch.rewind(before)
	if !d.findGaps(o, n) {
		d.scratch.rewind(before)
		d.sideBySide(o, n, path)
		return
	}
	if d.listable(o, n) && d.crossed(o, n, d.gaps[before.gaps:], before) {
		d.scratch.rewind(before)
		d.olds, d.news = d.old.children(d.olds, o), d.new.children(d.news, n)
		d.endGap(0, 0)
	}
	w := arrayWriter{d: d, path: path, length: int32(d.old.node(o).children())}
	i, j := before.olds, before.news
	for _, g := range d.gaps[before.gaps:] {
		if d.full() {
			return
		}
		w.gap(d.olds[i:g.olds], d.news[j:g.news])
		w.index += g.run
		i, j = g.olds, g.news
	}
}

// sideBySide compares two arrays position by position. It takes no memory but for the operations.
func (d *differ) sideBySide(o, n place, path int32) {
	olds, news := d.old.node(o).children(), d.new.node(n).children()
	w := arrayWriter{d: d, path: path, length: int32(olds)}
	p, q := d.old.start(o.at+1, o.pos+1), d.new.start(n.at+1, n.pos+1)
	for ; olds > 0 && news > 0 && !d.full(); olds, news = olds-1, news-1 {
		w.pair(p, q)
		p, q = d.old.after(p), d.new.after(q)
	}
	w.remove(olds)
	for ; news > 0 && !d.full(); news-- {
		w.add(q)
		q = d.new.after(q)
	}
}

// listable reports whether there is memory to list all elements of two arrays, once more.
func (d *differ) listable(o, n place) bool {
	return d.old.node(o).children()+d.new.node(n).children() <= d.room()
}

// A gap is a stretch of two arrays between runs of elements that they have in common.
type gap struct {
	olds, news int   // where in scratch the elements of the gap end
	run        int32 // how many elements the run behind the gap has
	weight     int32 // what they weigh
}

// endGap ends a gap at a run of so many elements and bytes.
func (d *differ) endGap(run, bytes uint32) {
	d.gaps = put(d.gaps, gap{len(d.olds), len(d.news), int32(run), int32(bytes>>3 + 9*run)})
}

// findGaps collects what is between the runs of elements that the parser took over from the array at o. It reports false if
// there is too much of it.
func (d *differ) findGaps(o, n place) bool {
	room := d.room()
	p, q := d.old.start(o.at+1, o.pos+1), d.new.start(n.at+1, n.pos+1)
	oldEnd, newEnd := o.at+d.old.node(o).span, n.at+d.new.node(n).span
	blocks := d.blocksFrom(q.at)
	for q.at < newEnd {
		for len(blocks) > 0 && blocks[0].new < q.at {
			blocks = blocks[1:]
		}
		if len(blocks) > 0 && blocks[0].new == q.at && blocks[0].old < oldEnd {
			b := blocks[0]
			for ; p.at < b.old && room > 0; p = d.old.after(p) {
				d.olds = put(d.olds, p)
				room--
			}
			if room <= 0 {
				return false
			}
			if p.at == b.old { // otherwise it is from another array
				room -= gapSize / placeSize
				d.endGap(b.count, b.bytes)
				p, q = d.old.skip(p, b), d.new.skip(q, b)
				continue
			}
		}
		if room--; room < 0 {
			return false
		}
		d.news = put(d.news, q)
		q = d.new.after(q)
	}
	for ; p.at < oldEnd; p = d.old.after(p) {
		if room--; room < 0 {
			return false
		}
		d.olds = put(d.olds, p)
	}
	d.endGap(0, 0)
	return true
}

// crossed reports whether there may be a heavier common subsequence than one through all the runs. It would have to match
// elements of different gaps, and give up at least the runs between two such; so there is none if the lightest of
// those runs weighs more than all such elements. That is not so where runs are of the same elements as gaps: an element that is put
// before equal ones may look as if it replaced the first, and as if another one came behind the last.
func (d *differ) crossed(o, n place, gaps []gap, before scratchMark) bool {
	if len(gaps) == 1 || len(d.olds) == before.olds || len(d.news) == before.news {
		return false
	}
	if !d.searchable(len(d.olds)-before.olds, len(d.news)-before.news) {
		return false
	}
	end := d.passGaps(gaps, before.olds)
	crossing, lightest, passed, j := int32(0), end, int32(1), before.news
	for _, g := range gaps {
		for ; j < g.news; j++ {
			n := d.new.node(d.news[j])
			other := int32(0)
			if class := d.classes.lookup(n.hash); class != 0 {
				other = d.heads[class]
			}
			switch other {
			case 0, passed:
			case severalGaps:
				return true
			default:
				crossing += weigh(n)
				lightest = min(lightest, max(passed-other, other-passed))
			}
		}
		passed += g.weight
	}
	return crossing > lightest || crossing > 0 && d.onlyLonger(o, n)
}

// onlyLonger reports whether one array is the other with more elements in a single place.
func (d *differ) onlyLonger(o, n place) bool {
	if d.old.node(o).children() == d.new.node(n).children() {
		return false
	}
	before := d.scratch.mark()
	defer d.scratch.rewind(before)
	d.olds, d.news = d.old.children(d.olds, o), d.new.children(d.news, n)
	olds, news, _, _ := d.trim(d.olds[before.olds:], d.news[before.news:])
	return len(olds) == 0 || len(news) == 0
}

// severalGaps stands for the gap of elements that are in more than one.
const severalGaps = -1

// passGaps classifies the old elements of gaps, which begin at i in scratch. For each class it notes in d.heads what the runs
// before its gap weigh, counted from 1. It returns what all runs weigh.
func (d *differ) passGaps(gaps []gap, i int) int32 {
	d.classes.reset(len(d.olds) - i)
	d.heads = zeroed(d.heads, len(d.olds)-i+1)
	passed := int32(1)
	for _, g := range gaps {
		for ; i < g.olds; i++ {
			class := d.classes.intern(d.old.node(d.olds[i]).hash)
			if d.heads[class] != 0 && d.heads[class] != passed {
				d.heads[class] = severalGaps
			} else {
				d.heads[class] = passed
			}
		}
		passed += g.weight
	}
	return passed
}

// An arrayWriter records operations on one array from left to right.
type arrayWriter struct {
	d      *differ
	path   int32
	index  int32 // of the next element, in the array as it is after the operations so far
	length int32 // of that array
}

// gap records how a stretch of old elements becomes a stretch of new ones.
func (w *arrayWriter) gap(olds, news []place) {
	d := w.d
	olds, news, head, tail := d.trim(olds, news)
	w.index += head
	before := d.scratch.mark()
	i, j := 0, 0
	for _, m := range d.align(olds, news) {
		w.distinct(olds[i:m.old], news[j:m.new])
		w.pair(olds[m.old], news[m.new])
		i, j = int(m.old)+1, int(m.new)+1
	}
	w.distinct(olds[i:], news[j:])
	d.scratch.rewind(before)
	w.index += tail
}

// trim takes away what two stretches have in common at their beginning and at their end, so many elements each.
func (d *differ) trim(olds, news []place) (restOlds, restNews []place, head, tail int32) {
	for len(olds) > 0 && len(news) > 0 && d.same(olds[0], news[0]) {
		olds, news = olds[1:], news[1:]
		head++
	}
	for len(olds) > 0 && len(news) > 0 && d.same(olds[len(olds)-1], news[len(news)-1]) {
		olds, news = olds[:len(olds)-1], news[:len(news)-1]
		tail++
	}
	return olds, news, head, tail
}

// distinct records how a stretch of old elements becomes a stretch of new ones that has nothing in common with it.
func (w *arrayWriter) distinct(olds, news []place) {
	if len(olds) > 0 && len(news) > 0 && (len(olds) != len(news) || w.d.shifted(olds, news)) && w.match(olds, news) {
		return
	}
	both := min(len(olds), len(news))
	for i := 0; i < both && !w.d.full(); i++ {
		w.pair(olds[i], news[i])
	}
	w.remove(len(olds) - both)
	for _, q := range news[both:] {
		if w.d.full() {
			return
		}
		w.add(q)
	}
}

// pair records how an old element becomes a new one.
func (w *arrayWriter) pair(p, q place) {
	if !w.d.same(p, q) {
		w.d.value(p, q, w.d.indexStep(w.path, w.index))
	}
	w.index++
}

// add records a new element.
func (w *arrayWriter) add(q place) {
	var path int32
	if w.index == w.length {
		path = w.d.endStep(w.path)
	} else {
		path = w.d.indexStep(w.path, w.index)
	}
	w.d.op(opAdd, path, q.pos, w.d.new.node(q).size)
	w.index++
	w.length++
}

// remove records that the next n elements go.
func (w *arrayWriter) remove(n int) {
	for range n {
		if w.d.full() {
			return
		}
		w.d.op(opRemove, w.d.indexStep(w.path, w.index), 0, 0)
		w.length--
	}
}

// shifted reports whether containers at the same positions of two stretches have so little in common that they were
// probably moved, as when all elements of a list change a little and one comes in front.
func (d *differ) shifted(olds, news []place) bool {
	if len(olds) == 1 || d.new.node(news[0]).kind() < Array || !d.spend(4*len(olds)) {
		return false
	}
	cost, most := int32(0), int32(0)
	for i := range olds {
		cost += d.pairCost(olds[i], news[i], 1)
		most += replaceCost + int32(d.new.node(news[i]).size)
	}
	return cost > most/2
}

// maxMatch bounds the product of the lengths of two stretches whose elements are paired by likeness.
const maxMatch = 4096

// match pairs the elements of two stretches of different length so that little has to be written, by dynamic
// programming. It reports false if that would be too much work.
func (w *arrayWriter) match(olds, news []place) bool {
	d := w.d
	m, n := len(olds), len(news)
	if m*n > maxMatch || !d.spend(m*n*4) {
		return false
	}
	frame := d.scratch.mark()
	defer d.scratch.rewind(frame)
	costs := d.table((m + 1) * (n + 1)) // costs[i*(n+1)+j]: of turning olds[i:] into news[j:]
	row := n + 1
	pairs := d.table(m * n)
	for i := m; i >= 0; i-- {
		for j := n; j >= 0; j-- {
			best := int32(0)
			switch {
			case i == m && j == n:
			case i == m:
				best = costs[i*row+j+1] + d.addCost(news[j])
			case j == n:
				best = costs[(i+1)*row+j] + removeCost
			default:
				pairs[i*n+j] = d.pairCost(olds[i], news[j], costDepth)
				best = min(costs[(i+1)*row+j+1]+pairs[i*n+j], costs[(i+1)*row+j]+removeCost, costs[i*row+j+1]+d.addCost(news[j]))
			}
			costs[i*row+j] = best
		}
	}
	i, j := 0, 0
	for i < m || j < n {
		cost := costs[i*row+j]
		switch {
		case i < m && j < n && cost == costs[(i+1)*row+j+1]+pairs[i*n+j]:
			w.pair(olds[i], news[j])
			i, j = i+1, j+1
		case i < m && cost == costs[(i+1)*row+j]+removeCost:
			w.remove(1)
			i++
		default:
			w.add(news[j])
			j++
		}
	}
	return true
}

// What operations cost in bytes, roughly: the path of the array is left out.
const (
	removeCost  = int32(30)
	replaceCost = int32(42)
)

func (d *differ) addCost(q place) int32 { return 38 + int32(d.new.node(q).size) }

// costDepth is how deep pairCost looks.
const costDepth = 4

// pairCost estimates the length of a patch that turns one element, or member, into another, looking a few levels deep.
func (d *differ) pairCost(p, q place, depth int) int32 {
	a, b := d.old.node(p), d.new.node(q)
	if a.hash == b.hash {
		return 0
	}
	most := replaceCost + int32(b.key) + int32(b.size)
	if a.kind() != b.kind() || a.children() == 0 || b.children() == 0 || depth == 0 {
		return most
	}
	cost := int32(0)
	count := min(a.children(), b.children())
	p, q = d.old.first(p), d.new.first(q)
	for i := range count {
		if i > 0 {
			p, q = d.old.next(p), d.new.next(q)
		}
		cost += d.pairCost(p, q, depth-1)
		if cost >= most || !d.spend(1) {
			return most
		}
	}
	extra := a.children() + b.children() - 2*count
	return min(most, cost+int32(extra)*replaceCost)
}
