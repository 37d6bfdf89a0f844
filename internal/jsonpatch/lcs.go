package jsonpatch

import "math/bits"

// scratch is the differ's reused memory. Containers inside containers use it as a stack: each takes what it needs from
// the end and gives it back when it is done.
type scratch struct {
	olds, news []place
	gaps       []gap
	gone       []bool
	numbers    []int32
	matches    []match
	budget     int // steps that searching may still take
	maxLists   int // bytes that the lists above may hold together
	maxSearch  int // bytes that one search may take
	search
}

// Bounds of the memory that one comparison takes, whatever the documents are. What does not fit is compared in place, position by
// position: the patch may be longer then, and is as correct.
const (
	scratchFactor = 8       // times the documents' bytes
	minScratch    = 2 << 20 // for short documents, which may be dense
	mostScratch   = 64 << 20
)

// maxScratch returns how many bytes comparing two documents may take, the patch itself not counted.
func maxScratch(old, new *Document) int {
	return min(max(scratchFactor*(len(old.text)+len(new.text)), minScratch), mostScratch)
}

// search is memory for finding one common subsequence; it is free again when that is found.
type search struct {
	classes classTable
	left    []symbol
	right   []symbol
	heads   []int32 // per class: its last position on the right
	earlier []int32 // per position on the right: the one before it of the same class
	tails   []int32 // links by where on the right they end: see heaviest
	links   []link
	trace   []int32
	steps   []match
	spare   int // bytes that finding a subsequence may still take
}

// A match is a pair of equal elements, by their positions.
type match struct{ old, new int32 }

type scratchMark struct{ olds, news, gaps, gone, numbers, matches int }

// reset grants a search budget in proportion to the documents, so that the whole stays linear, and memory in parts that leave room
// for what is thrown away when lists grow.
func (s *scratch) reset(nodes, bytes int) {
	s.rewind(scratchMark{})
	s.budget = 1<<16 + 16*nodes
	s.maxLists, s.maxSearch = bytes/6, bytes/3
}

const (
	placeSize = 8 // also of a match and a symbol
	gapSize   = 24
	linkSize  = 20
	classSize = 8
	slotSize  = 12
)

// room returns how many more places the lists may hold.
func (s *scratch) room() int {
	held := placeSize*(len(s.olds)+len(s.news)+len(s.matches)) + gapSize*len(s.gaps) + len(s.gone) + 4*len(s.numbers)
	return (s.maxLists - held) / placeSize
}

// size returns how many bytes the scratch keeps.
func (s *scratch) size() int {
	places := cap(s.olds) + cap(s.news) + cap(s.matches) + cap(s.left) + cap(s.right) + cap(s.steps)
	numbers := cap(s.numbers) + cap(s.heads) + cap(s.earlier) + cap(s.tails) + cap(s.trace)
	return placeSize*places + 4*numbers + gapSize*cap(s.gaps) + cap(s.gone) + linkSize*cap(s.links) + classSize*cap(s.classes.slots)
}

// put appends to a list. It doubles lists when they are full: growing in smaller steps, as append does, throws away many times
// what is kept.
func put[T any](list []T, v T) []T {
	if len(list) == cap(list) {
		list = grown(list, len(list)+1)
	}
	return append(list, v)
}

// grown returns a list with room for n elements in all.
func grown[T any](list []T, n int) []T {
	if n <= cap(list) {
		return list
	}
	return append(make([]T, 0, max(n, 2*cap(list), 16)), list...)
}

func (s *scratch) mark() scratchMark {
	return scratchMark{len(s.olds), len(s.news), len(s.gaps), len(s.gone), len(s.numbers), len(s.matches)}
}

func (s *scratch) rewind(m scratchMark) {
	s.olds, s.news, s.gaps = s.olds[:m.olds], s.news[:m.news], s.gaps[:m.gaps]
	s.gone, s.numbers, s.matches = s.gone[:m.gone], s.numbers[:m.numbers], s.matches[:m.matches]
}

// spend takes steps from the budget and reports whether there were enough.
func (s *scratch) spend(steps int) bool {
	s.budget -= steps
	return s.budget >= 0
}

// flags returns n flags that are set.
func (s *scratch) flags(n int) []bool {
	start := len(s.gone)
	for range n {
		s.gone = append(s.gone, true)
	}
	return s.gone[start:]
}

// table returns n numbers that are zero.
func (s *scratch) table(n int) []int32 {
	start := len(s.numbers)
	s.numbers = append(s.numbers, make([]int32, n)...)
	return s.numbers[start:]
}

// align returns pairs of elements with equal hashes, rising on both sides: a longest such list if that can be found
// within the budget.
func (d *differ) align(olds, news []place) []match {
	if len(olds) == 0 || len(news) == 0 || !d.searchable(len(olds), len(news)) {
		return nil
	}
	start, useful := len(d.matches), maxBytes
	if len(olds) == len(news) {
		if d.inPlace(olds, news) {
			return d.matches[start:]
		}
		// Replacing in place takes one operation where an insertion and a deletion take two. So it is of no use to look for
		// a subsequence that needs many more of those.
		unpaired := len(olds) - (len(d.matches) - start)
		useful = unpaired + unpaired/4
	}
	d.matches = d.matches[:start]
	a, b := d.classify(olds, news)
	for len(a) > 0 && len(b) > 0 && a[0].class == b[0].class {
		d.matches = put(d.matches, match{a[0].at, b[0].at})
		a, b = a[1:], b[1:]
	}
	end := 0
	for end < len(a) && end < len(b) && a[len(a)-1-end].class == b[len(b)-1-end].class {
		end++
	}
	d.subsequence(a[:len(a)-end], b[:len(b)-end], news, useful)
	for a, b = a[len(a)-end:], b[len(b)-end:]; len(a) > 0; a, b = a[1:], b[1:] {
		d.matches = put(d.matches, match{a[0].at, b[0].at})
	}
	return d.matches[start:]
}

// searchable reports whether there is memory to look for a common subsequence of stretches of these lengths.
func (d *differ) searchable(olds, news int) bool {
	d.spare = d.maxSearch - classSize*tableLen(olds) - placeSize*(olds+news+2*min(olds, news)) - 4*(olds+1)
	return d.spare >= 0
}

// inPlace pairs elements at the same position. It reports whether that is all there is: no unpaired element of one
// side equals an unpaired one of the other.
func (d *differ) inPlace(olds, news []place) bool {
	start, unpaired := len(d.matches), len(olds)
	for i := range olds {
		if d.old.node(olds[i]).hash == d.new.node(news[i]).hash {
			d.matches = put(d.matches, match{int32(i), int32(i)})
			unpaired--
		}
	}
	if unpaired > len(olds)/2 {
		return false // not worth another look
	}
	d.classes.reset(unpaired)
	paired := d.matches[start:]
	for i := range olds {
		if len(paired) > 0 && paired[0].old == int32(i) {
			paired = paired[1:]
			continue
		}
		d.classes.intern(d.old.node(olds[i]).hash)
	}
	paired = d.matches[start:]
	for i := range news {
		if len(paired) > 0 && paired[0].new == int32(i) {
			paired = paired[1:]
			continue
		}
		if d.classes.lookup(d.new.node(news[i]).hash) != 0 {
			return false
		}
	}
	return true
}

// A symbol stands for an element that occurs on both sides: its position, and a number for its hash.
type symbol struct{ at, class int32 }

// classify returns the elements of both sides that have an equal on the other.
func (d *differ) classify(olds, news []place) (left, right []symbol) {
	d.classes.reset(len(olds))
	left, right = grown(d.left[:0], len(olds)), d.right[:0]
	for i, p := range olds {
		left = append(left, symbol{int32(i), d.classes.intern(d.old.node(p).hash)})
	}
	d.heads = zeroed(d.heads, int(d.classes.last)+1)
	for j, q := range news {
		if class := d.classes.lookup(d.new.node(q).hash); class != 0 {
			right = put(right, symbol{int32(j), class})
			d.heads[class] = 1
		}
	}
	d.left, d.right = left, right
	kept := left[:0]
	for _, s := range left {
		if d.heads[s.class] != 0 {
			kept = append(kept, s)
		}
	}
	return kept, right
}

// subsequence appends a longest common subsequence of a and b, or nothing if that takes too much work or more than a useful
// number of edits.
func (d *differ) subsequence(a, b []symbol, news []place, useful int) {
	if len(a) == 0 || len(b) == 0 {
		return
	}
	if pairs := d.countPairs(a, b); pairs <= 4*(len(a)+len(b)) {
		// Links come one by one, so what holds them may be thrown away once more.
		if fits := 2*linkSize*(pairs+1)+8*(len(b)+1) <= d.spare; fits && d.spend(pairs*bits.Len(uint(len(b)))/2) {
			d.byPairs(a, b, news, min(useful, d.maxOps()))
		}
		return
	}
	d.byEdits(a, b, useful)
}

// countPairs counts the pairs of equal symbols, up to somewhat over what byPairs is good for.
func (d *differ) countPairs(a, b []symbol) int {
	d.heads = zeroed(d.heads, int(d.classes.last)+1)
	for _, s := range a {
		d.heads[s.class]++
	}
	pairs := 0
	for _, s := range b {
		pairs += int(d.heads[s.class])
	}
	return pairs
}

// A link is the end of a common subsequence: a pair, the link before it, and what all of it weighs.
type link struct{ a, b, before, weight, length int32 }

// byPairs finds the heaviest common subsequence by going through all pairs of equal symbols, from left to right. It is good
// when there are few, as for elements that are mostly distinct. It gives up when more than a useful number of edits would
// be needed.
func (d *differ) byPairs(a, b []symbol, news []place, useful int) {
	d.chain(b)
	d.links = put(d.links[:0], link{before: -1}) // the empty one
	d.tails = zeroed(d.tails, len(b)+1)
	best := int32(0)
	for i, s := range a {
		if i-int(d.links[best].length) > useful {
			return // so many of these have to go
		}
		for j := d.heads[s.class]; j != 0; j = d.earlier[j-1] {
			before := d.heaviest(j - 1)
			weight := d.links[before].weight + weigh(d.new.node(news[b[j-1].at]))
			d.links = put(d.links, link{int32(i), j - 1, before, weight, d.links[before].length + 1})
			at := int32(len(d.links) - 1)
			d.improve(j, at)
			if weight > d.links[best].weight {
				best = at
			}
		}
	}
	d.steps = d.steps[:0]
	for at := best; at != 0; at = d.links[at].before {
		d.steps = put(d.steps, match{d.links[at].a, d.links[at].b})
	}
	d.unwind(a, b)
}

// weigh returns what it is worth not to send an element: its own bytes and those of two operations, in units of eight so
// that all elements of a document together fit.
func weigh(n *node) int32 { return int32(n.size>>3) + 9 }

// heaviest returns the heaviest link that ends at one of the first n positions of b. The tails are a binary indexed
// tree of such links.
func (d *differ) heaviest(n int32) int32 {
	best := int32(0)
	for ; n > 0; n &= n - 1 {
		if at := d.tails[n]; d.links[at].weight > d.links[best].weight {
			best = at
		}
	}
	return best
}

// improve enters a link that ends at position n of b, counted from 1.
func (d *differ) improve(n, at int32) {
	for weight := d.links[at].weight; int(n) < len(d.tails) && d.links[d.tails[n]].weight < weight; n += n & -n {
		d.tails[n] = at
	}
}

// chain links the positions of b by class, last first. Positions count from 1.
func (d *differ) chain(b []symbol) {
	d.heads = zeroed(d.heads, int(d.classes.last)+1)
	d.earlier = zeroed(d.earlier, len(b))
	for j, s := range b {
		d.earlier[j] = d.heads[s.class]
		d.heads[s.class] = int32(j + 1)
	}
}

// unwind appends the steps, which were found from the last to the first, as matches.
func (d *differ) unwind(a, b []symbol) {
	for k := len(d.steps) - 1; k >= 0; k-- {
		d.matches = put(d.matches, match{a[d.steps[k].old].at, b[d.steps[k].new].at})
	}
}

// byEdits finds a longest common subsequence by trying ever more insertions and deletions (Myers). It is good when few
// are needed. It gives up when more than a useful number would be, or will be at this rate, and when the budget or the memory is used.
func (d *differ) byEdits(a, b []symbol, useful int) {
	trace := d.trace[:0]
	useful = min(useful, len(a)+len(b), 2*d.maxOps()+1)
	for edits := 0; edits <= useful && d.spend(4*edits+1); edits++ {
		if 2*4*(len(trace)+edits+1) > d.spare { // twice, since it grows
			break
		}
		trace = grown(trace, len(trace)+edits+1)
		// Each round is a row: row[k] is how far into a diagonal 2k-edits of the matrix this many edits lead.
		previous := trace[len(trace)-min(edits, len(trace)):]
		furthestSum := 0
		for k := 0; k <= edits; k++ {
			x := furthest(previous, k, edits)
			y := x - int32(2*k-edits)
			from := x
			for int(x) < len(a) && int(y) < len(b) && a[x].class == b[y].class {
				x, y = x+1, y+1
			}
			d.budget -= int(x-from) / 4
			trace = append(trace, x)
			if int(x) >= len(a) && int(y) >= len(b) {
				d.trace = trace
				d.retrace(a, b, edits, k)
				return
			}
			furthestSum = max(furthestSum, int(x+y))
		}
		if edits%32 == 31 && furthestSum*useful < edits*(len(a)+len(b)) {
			break
		}
	}
	d.trace = trace
}

// maxOps returns how many more operations the script may have at most.
func (s *script) maxOps() int { return (s.limit - s.length) / minOpLen }

// minOpLen is the least that an operation takes in a patch.
const minOpLen = len(`{"op":"remove","path":"/0"},`)

// furthest returns where round edits starts on its diagonal k: after an insertion, or after a deletion.
func furthest(previous []int32, k, edits int) int32 {
	switch {
	case edits == 0:
		return 0
	case k == 0:
		return previous[0]
	case k == edits || previous[k-1] >= previous[k]:
		return previous[k-1] + 1
	default:
		return previous[k]
	}
}

// retrace walks back from the end through the rounds of byEdits and collects the equal symbols on the way.
func (d *differ) retrace(a, b []symbol, edits, k int) {
	d.steps = d.steps[:0]
	x, end := int32(len(a)), len(d.trace)-k-1
	for ; ; edits-- {
		previous := d.trace[end-edits : end]
		start := furthest(previous, k, edits)
		diagonal := int32(2*k - edits)
		for ; x > start; x-- {
			d.steps = put(d.steps, match{x - 1, x - 1 - diagonal})
		}
		if edits == 0 {
			break
		}
		if k > 0 && (k == edits || previous[k-1] >= previous[k]) {
			k--
			x--
		}
		end -= edits
	}
	d.unwind(a, b)
}

// zeroed returns n zeros in the memory of s if it suffices.
func zeroed(s []int32, n int) []int32 {
	if cap(s) < n {
		return make([]int32, n)
	}
	s = s[:n]
	clear(s)
	return s
}
