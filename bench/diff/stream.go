package diff

import (
	"fmt"
	"math/rand/v2"
	"strconv"
)

// A Stream is successive versions of one document.
type Stream struct {
	Name     string
	Hostile  bool // made to hurt, not seen in everyday use
	Versions [][]byte
}

// Bytes returns the average length of a version.
func (s Stream) Bytes() int {
	n := 0
	for _, v := range s.Versions {
		n += len(v)
	}
	return n / len(s.Versions)
}

// A model is a document that changes. It writes itself and moves to its next version.
type model interface {
	write(w *writer)
	step(r *rand.Rand)
}

// stream records versions of a model.
func stream(name string, hostile bool, versions int, m model) Stream {
	r := rand.New(rand.NewPCG(1, uint64(len(name))<<8|uint64(name[0])))
	if s, ok := m.(interface{ start(*rand.Rand) }); ok {
		s.start(r)
	}
	out := Stream{Name: name, Hostile: hostile}
	for range versions {
		var w writer
		m.write(&w)
		out.Versions = append(out.Versions, w.text)
		m.step(r)
	}
	return out
}

// A writer writes compact JSON and takes care of the commas.
type writer struct{ text []byte }

func (w *writer) comma() {
	if n := len(w.text); n > 0 && w.text[n-1] != '{' && w.text[n-1] != '[' && w.text[n-1] != ':' {
		w.text = append(w.text, ',')
	}
}

func (w *writer) open(bracket byte)  { w.comma(); w.text = append(w.text, bracket) }
func (w *writer) close(bracket byte) { w.text = append(w.text, bracket) }
func (w *writer) key(name string)    { w.str(name); w.text = append(w.text, ':') }
func (w *writer) raw(text string)    { w.comma(); w.text = append(w.text, text...) }
func (w *writer) num(n int)          { w.raw(strconv.Itoa(n)) }
func (w *writer) str(s string)       { w.raw(strconv.Quote(s)) }
func (w *writer) dec(f float64, places int) {
	w.raw(strconv.FormatFloat(f, 'f', places, 64))
}

var words = []string{
	"river", "stone", "market", "signal", "copper", "window", "garden", "silver", "engine", "harbour", "winter", "orange",
	"letter", "bridge", "planet", "forest", "circle", "marble", "rocket", "velvet", "candle", "summit", "meadow", "anchor",
}

// sentence returns n random words.
func sentence(r *rand.Rand, n int) string {
	s := words[r.IntN(len(words))]
	for range n - 1 {
		s += " " + words[r.IntN(len(words))]
	}
	return s
}

func name(prefix string, n int) string { return fmt.Sprintf("%s-%05d", prefix, n) }
