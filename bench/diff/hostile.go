package diff

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"strings"
)

// Hostile returns the streams that are made to hurt.
func Hostile() []Stream {
	return []Stream{
		stream("nesting of 500 levels", true, 16, &nest{levels: 500}),
		stream("10,000 random bits", true, 8, &bits{n: 10000}),
		stream("5,000 elements all new", true, 8, &allNew{n: 5000}),
		stream("2,000 shuffled objects", true, 8, &shuffled{n: 2000}),
		stream("20,000 keys", true, 8, &keys{n: 20000}),
		stream("20,000 keys, shuffled", true, 8, &keys{n: 20000, shuffle: true}),
		reformatted("reformatted documents", &quotes{rows: 1000, share: 0.01}),
		stream("long escapes", true, 8, &escapes{n: 300}),
	}
}

// nest is arrays in arrays, with a change at the bottom and some on the way.
type nest struct {
	levels int
	values []int
}

func (n *nest) start(r *rand.Rand) { n.values = make([]int, n.levels) }
func (n *nest) step(r *rand.Rand) {
	n.values[n.levels-1]++
	n.values[r.IntN(n.levels)] = r.IntN(1e6)
}
func (n *nest) write(w *writer) {
	for i, v := range n.values {
		if i%2 == 0 {
			w.text = append(w.text, `{"v":`+strconv.Itoa(v)+`,"in":`...)
		} else {
			w.text = append(w.text, `[`+strconv.Itoa(v)+`,`...)
		}
	}
	w.text = append(w.text, "null"...)
	for i := n.levels - 1; i >= 0; i-- {
		w.text = append(w.text, "}]"[i%2])
	}
}

// bits is a long array with two distinct values, all random each time.
type bits struct {
	n    int
	bits []byte
}

func (b *bits) start(r *rand.Rand) { b.step(r) }
func (b *bits) step(r *rand.Rand) {
	b.bits = b.bits[:0]
	for range b.n {
		b.bits = append(b.bits, "01"[r.IntN(2)])
	}
}
func (b *bits) write(w *writer) {
	w.open('[')
	for _, c := range b.bits {
		w.raw(string(c))
	}
	w.close(']')
}

// allNew is an array without any element of the one before.
type allNew struct{ n, round int }

func (a *allNew) step(*rand.Rand) { a.round++ }
func (a *allNew) write(w *writer) {
	w.open('[')
	for i := range a.n {
		w.raw(`{"id":` + strconv.Itoa(a.round*a.n+i) + `,"v":"` + words[(i+a.round)%len(words)] + `"}`)
	}
	w.close(']')
}

// shuffled is the same objects in a random order.
type shuffled struct {
	n     int
	order []int
}

func (s *shuffled) start(r *rand.Rand) { s.step(r) }
func (s *shuffled) step(r *rand.Rand)  { s.order = r.Perm(s.n) }
func (s *shuffled) write(w *writer) {
	w.open('[')
	for _, i := range s.order {
		w.raw(`{"id":` + strconv.Itoa(i) + `,"name":"` + words[i%24] + " " + words[i/24%24] + `","on":true}`)
	}
	w.close(']')
}

// keys is one wide object with ten changes, perhaps in another order each time.
type keys struct {
	n       int
	shuffle bool
	order   []int
	values  []int
}

func (k *keys) start(r *rand.Rand) {
	k.order, k.values = r.Perm(k.n), make([]int, k.n)
}
func (k *keys) step(r *rand.Rand) {
	for range 10 {
		k.values[r.IntN(k.n)]++
	}
	if k.shuffle {
		k.order = r.Perm(k.n)
	}
}
func (k *keys) write(w *writer) {
	w.open('{')
	for _, i := range k.order {
		w.key(name("member", i))
		w.num(k.values[i])
	}
	w.close('}')
}

// escapes is long strings full of escapes. Each version spells half of those that do not change in another way; the
// few that do change are spelled as short as can be, so that respelling them gains nothing.
type escapes struct {
	n, round, changed int
	texts             []string
}

func (e *escapes) start(r *rand.Rand) {
	for range e.n {
		e.texts = append(e.texts, strings.Repeat("é\n\"/日本", 40)+sentence(r, 2))
	}
}
func (e *escapes) step(r *rand.Rand) {
	e.round++
	e.changed = r.IntN(e.n)
	e.texts[e.changed] += words[r.IntN(24)]
}
func (e *escapes) write(w *writer) {
	w.open('[')
	for i, t := range e.texts {
		b, _ := json.Marshal(t)
		s := string(b)
		if (i+e.round)%2 == 0 && i != e.changed {
			s = strings.ReplaceAll(strings.ReplaceAll(s, "é", `\u00e9`), "/", `\/`)
		}
		w.raw(s)
	}
	w.close(']')
}

// reformatted is a stream whose versions are equal but for their white space.
func reformatted(name string, m model) Stream {
	base := stream(name, true, 1, m).Versions[0]
	s := Stream{Name: name, Hostile: true}
	for i := range 8 {
		var b bytes.Buffer
		indent := []string{"", " ", "  ", "\t"}[i%4]
		if err := json.Indent(&b, base, "", indent); err != nil {
			panic(err)
		}
		s.Versions = append(s.Versions, b.Bytes())
	}
	return s
}
