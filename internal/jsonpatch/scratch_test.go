package jsonpatch

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
)

// hostileLen is how long the hostile documents are.
const hostileLen = 256 << 10

// A hostilePair is two documents that are made to cost a comparison as much memory as can be.
type hostilePair struct{ name, old, new string }

// fill writes elements until the document is long enough.
func fill(open, end string, element func(i int) string) string {
	var b strings.Builder
	b.WriteString(open)
	for i := 0; b.Len() < hostileLen-64; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(element(i))
	}
	return b.String() + end
}

func hostilePairs() []hostilePair {
	r := rand.New(rand.NewPCG(1, 2))
	same := func(text string) func(int) string { return func(int) string { return text } }
	random := func(n int) func(int) string { return func(int) string { return strconv.Itoa(r.IntN(n)) } }
	sparse := func(every int) func(int) string {
		at := r.IntN(every)
		return func(i int) string {
			if i%every == at {
				return "1"
			}
			return "0"
		}
	}
	number := func(from int) func(int) string { return func(i int) string { return strconv.Itoa(from + i) } }
	array := func(element func(int) string) string { return fill("[", "]", element) }
	object := func(element func(int) string) string { return fill("{", "}", element) }
	perm := r.Perm(2 * hostileLen)
	permuted := func(i int) string { return strconv.Itoa(perm[i]) }
	key := func(name func(int) int, value string) func(int) string {
		return func(i int) string { return fmt.Sprintf(`"%x":%s`, name(i), value) }
	}
	up, down := func(i int) int { return i }, func(i int) int { return 1<<16 - i }
	deep := func(leaf string) string { return strings.Repeat("[", 250) + leaf + strings.Repeat("]", 250) }
	halves := func(a, b string) string { return "[" + a + "," + b + "]" }
	return []hostilePair{
		{"random digits", array(random(10)), array(random(10))},
		{"random bits", array(random(2)), array(random(2))},
		{"zeros and ones elsewhere", array(sparse(500)), array(sparse(500))},
		{"zeros and many ones elsewhere", array(sparse(50)), array(sparse(50))},
		{"zeros and few ones elsewhere", array(sparse(5000)), array(sparse(5000))},
		{"zeros, then more zeros", array(same("0")), "[1," + array(same("0"))[1:]},
		{"zeros become ones", array(same("0")), array(same("1"))},
		{"every second one changes", array(same("0")), array(func(i int) string { return strconv.Itoa(i & 1) })},
		{"every third one changes", array(func(i int) string { return "[" + strconv.Itoa(i) + "]" }),
			array(func(i int) string { return "[" + strconv.Itoa(i+i%3/2) + "]" })},
		{"numbers that moved", array(number(0)), array(number(50000))},
		{"numbers in another order", array(number(0)), array(permuted)},
		{"numbers in two orders", array(permuted), array(func(i int) string { return strconv.Itoa(perm[len(perm)/2+i]) })},
		{"numbers backwards", array(number(0)), array(func(i int) string { return strconv.Itoa(150000 - i) })},
		{"few distinct numbers", array(random(100)), array(random(100))},
		{"some distinct numbers", array(random(10000)), array(random(10000))},
		{"many distinct numbers", array(random(100000)), array(random(100000))},
		{"small arrays", array(func(int) string { return "[" + random(10)(0) + "]" }), array(func(int) string { return "[" + random(10)(0) + "]" })},
		{"small objects", array(func(int) string { return `{"a":` + random(10)(0) + "}" }), array(func(int) string { return `{"a":` + random(10)(0) + "}" })},
		{"deep arrays", array(func(int) string { return deep("1") }), array(func(int) string { return deep("2") })},
		{"empty containers", array(same("[]")), array(func(i int) string { return []string{"[]", "{}"}[r.IntN(2)] })},
		{"keys in another order", object(key(up, "0")), object(key(down, "0"))},
		{"keys with other values, in another order", object(key(up, "0")), object(key(down, "1"))},
		{"other keys", object(key(up, "0")), object(key(func(i int) int { return 1<<20 + i }, "0"))},
		{"objects in another order", array(func(i int) string { return `{"i":` + strconv.Itoa(i) + "}" }), array(func(i int) string { return `{"i":` + permuted(i) + "}" })},
		{"keys that need escapes", object(func(i int) string { return fmt.Sprintf(`"~/%x":%d`, i, i&7) }), object(func(i int) string { return fmt.Sprintf(`"~/%x":%d`, i, i&3) })},
		{"arrays in arrays", halves(array(random(10)), array(random(3))), halves(array(random(10)), array(random(3)))},
	}
}

// allocated returns how many bytes fn allocates when no scratch memory is at hand.
func allocated(fn func()) int {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection in between would empty the pools
	runtime.GC()
	runtime.GC() // what a pool gives up survives one collection
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

func TestAComparisonTakesEightTimesItsDocumentsAtMost(t *testing.T) {
	for _, pair := range hostilePairs() {
		t.Run(pair.name, func(t *testing.T) {
			a, b := mustParse(t, pair.old), mustParse(t, pair.new)
			bound := maxScratch(a, b)
			if want := 8 * (a.Len() + b.Len()); bound > want {
				t.Fatalf("the bound is %d bytes, more than eight times %d", bound, want/8)
			}
			var change Change
			took := allocated(func() { change = Diff(a, b) })
			if patch := cap(change.Patch); took-patch > bound {
				t.Errorf("Diff took %d bytes beside a patch of %d; it may take %d", took-patch, patch, bound)
			}
			checkLeads(t, a, b, change)

			// What the parser does beside the tape counts too.
			src := []byte(pair.new)
			var next *Document
			parse := allocated(func() { next, _ = ParseNext(a, src, Limits{}) })
			both := allocated(func() { next, change, _ = Next(a, src, Limits{}) })
			if extra := both - parse - cap(change.Patch); extra > bound {
				t.Errorf("Next took %d bytes more than parsing; it may take %d", extra, bound)
			}
			if most := 2*nodeSize*cap(next.tape) + bound; parse > most {
				t.Errorf("parsing took %d bytes for a tape of %d nodes", parse, len(next.tape))
			}
			checkLeads(t, a, next, change)
		})
	}
}

// checkLeads is checkChange for long documents.
func checkLeads(t *testing.T, a, b *Document, change Change) {
	t.Helper()
	switch change.Kind {
	case Same:
		if !Equal(a, b) {
			t.Error("different documents are called the same")
		}
	case Patched:
		got, err := Apply(a, change.Patch, Limits{})
		if err != nil || !Equal(got, b) {
			t.Errorf("the patch does not lead from the one to the other: %v", err)
		}
	}
}

func TestScratchIsBoundedHoweverLongTheDocumentsAre(t *testing.T) {
	long := &Document{text: make([]byte, 100<<20)}
	if got := maxScratch(long, long); got != 64<<20 {
		t.Errorf("two documents of 100 MiB may take %d bytes", got)
	}
	short := &Document{text: []byte("1")}
	if got := maxScratch(short, short); got != 2<<20 {
		t.Errorf("two short documents may take %d bytes", got)
	}
}
