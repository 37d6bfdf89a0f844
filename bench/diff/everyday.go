package diff

import (
	"math/rand/v2"
	"strconv"
)

// Everyday returns the streams of everyday use.
func Everyday() []Stream {
	return []Stream{
		stream("tiny status", false, 64, &status{}),
		stream("quotes, 20 rows", false, 64, &quotes{rows: 20, share: 0.05}),
		stream("quotes, 500 rows", false, 32, &quotes{rows: 500, share: 0.03}),
		stream("quotes, 5,000 rows", false, 8, &quotes{rows: 5000, share: 0.01}),
		stream("feed, head insertions", false, 32, &feed{}),
		stream("sensors", false, 32, &sensors{}),
		stream("weather", false, 32, &weather{}),
		stream("catalogue 1 MB, ten changes", false, 8, &catalogue{}),
		stream("growing chat", false, 32, &chat{}),
		stream("leaderboard", false, 32, &leaderboard{}),
		stream("sliding series", false, 32, &series{n: 2000}),
		stream("reorderings", false, 32, &playlist{}),
		stream("long number arrays", false, 16, &arrays{}),
		stream("identical documents", false, 8, &same{model: &quotes{rows: 500, share: 0.03}}),
		stream("complete replacement", false, 16, &replacement{}),
	}
}

// status is a small document of which a few fields change.
type status struct {
	n, load int
	state   string
}

func (s *status) start(r *rand.Rand) { s.state = "ok" }
func (s *status) step(r *rand.Rand) {
	s.n++
	s.load = r.IntN(100)
	if r.IntN(4) == 0 {
		s.state = []string{"ok", "busy", "late"}[r.IntN(3)]
	}
}
func (s *status) write(w *writer) {
	w.open('{')
	w.key("service")
	w.str("checkout")
	w.key("region")
	w.str("eu-west-1")
	w.key("sequence")
	w.num(1000 + s.n)
	w.key("load")
	w.num(s.load)
	w.key("state")
	w.str(s.state)
	w.key("healthy")
	w.raw("true")
	w.key("tags")
	w.raw(`["a","b"]`)
	w.close('}')
}

// quotes is a table of prices: a share of all fields changes.
type quotes struct {
	rows  int
	share float64
	cells [][8]float64
	times []int
}

func (q *quotes) start(r *rand.Rand) {
	q.cells = make([][8]float64, q.rows)
	q.times = make([]int, q.rows)
	for i := range q.cells {
		for j := range q.cells[i] {
			q.cells[i][j] = 10 + r.Float64()*900
		}
		q.times[i] = 1700000000 + r.IntN(1000)
	}
}
func (q *quotes) step(r *rand.Rand) {
	for i := range q.cells {
		touched := false
		for j := range q.cells[i] {
			if r.Float64() < q.share {
				q.cells[i][j] += r.Float64() - 0.5
				touched = true
			}
		}
		if touched && r.IntN(2) == 0 {
			q.times[i] += r.IntN(30)
		}
	}
}

var quoteFields = [...]string{"bid", "ask", "last", "open", "high", "low", "close", "volume"}

func (q *quotes) write(w *writer) {
	w.open('[')
	for i, row := range q.cells {
		w.open('{')
		w.key("symbol")
		w.str(name("SYM", i))
		w.key("name")
		w.str(words[i%len(words)] + " " + words[(i*7)%len(words)] + " plc")
		w.key("currency")
		w.str("EUR")
		for j, f := range quoteFields {
			w.key(f)
			if f == "volume" {
				w.num(int(row[j] * 1000))
			} else {
				w.dec(row[j], 2)
			}
		}
		w.key("time")
		w.num(q.times[i])
		w.close('}')
	}
	w.close(']')
}

// feed is a list of events: new ones come first, old ones fall off the end.
type feed struct {
	events []string
	n      int
}

func (f *feed) start(r *rand.Rand) {
	for range 100 {
		f.push(r)
	}
}
func (f *feed) push(r *rand.Rand) {
	f.n++
	var w writer
	w.open('{')
	w.key("id")
	w.str(name("evt", f.n))
	w.key("type")
	w.str([]string{"order.created", "order.paid", "order.shipped"}[r.IntN(3)])
	w.key("title")
	w.str(sentence(r, 6))
	w.key("actor")
	w.raw(`{"id":` + strconv.Itoa(r.IntN(500)) + `,"name":"` + words[r.IntN(len(words))] + `"}`)
	w.key("amount")
	w.dec(r.Float64()*500, 2)
	w.key("unread")
	w.raw("true")
	w.close('}')
	f.events = append([]string{string(w.text)}, f.events...)
	if len(f.events) > 100 {
		f.events = f.events[:100]
	}
}
func (f *feed) step(r *rand.Rand) {
	for range 1 + r.IntN(10) {
		f.push(r)
	}
}
func (f *feed) write(w *writer) {
	w.open('{')
	w.key("events")
	w.open('[')
	for _, e := range f.events {
		w.raw(e)
	}
	w.close(']')
	w.key("total")
	w.num(f.n)
	w.close('}')
}

// sensors is an object of devices with nested readings.
type sensors struct{ values [200][3]float64 }

func (s *sensors) start(r *rand.Rand) {
	for i := range s.values {
		s.values[i] = [3]float64{20 + r.Float64(), 50 + r.Float64(), 1000 + r.Float64()}
	}
}
func (s *sensors) step(r *rand.Rand) {
	for i := range s.values {
		if r.IntN(10) == 0 {
			s.values[i][r.IntN(3)] += r.Float64() - 0.5
		}
	}
}
func (s *sensors) write(w *writer) {
	w.open('{')
	for i, v := range s.values {
		w.key(name("sensor", i))
		w.open('{')
		w.key("room")
		w.str(words[i%len(words)])
		w.key("reading")
		w.open('{')
		for j, f := range []string{"temperature", "humidity", "pressure"} {
			w.key(f)
			w.dec(v[j], 3)
		}
		w.close('}')
		w.key("battery")
		w.num(90 - i%40)
		w.close('}')
	}
	w.close('}')
}

// weather is a forecast: hours slide, some values change everywhere.
type weather struct {
	hour  int
	temps []int
}

func (f *weather) start(r *rand.Rand) {
	for range 72 {
		f.temps = append(f.temps, 50+r.IntN(150))
	}
}
func (f *weather) step(r *rand.Rand) {
	for i := range f.temps {
		if r.IntN(12) == 0 {
			f.temps[i] += r.IntN(5) - 2
		}
	}
	if r.IntN(3) == 0 {
		f.hour++
		f.temps = append(f.temps[1:], 50+r.IntN(150))
	}
}
func (f *weather) write(w *writer) {
	w.open('{')
	w.key("place")
	w.raw(`{"name":"Lyon","lat":45.764,"lon":4.8357}`)
	w.key("hours")
	w.open('[')
	for i, t := range f.temps {
		h := f.hour + i
		w.open('{')
		w.key("at")
		w.num(1700000000 + 3600*h)
		w.key("temperature")
		w.dec(float64(t)/10, 1)
		w.key("wind")
		w.raw(`{"speed":` + strconv.Itoa(h*7%40) + `,"from":"` + []string{"N", "E", "S", "W"}[h%4] + `"}`)
		w.key("rain")
		w.dec(float64(h*13%50)/10, 1)
		w.key("symbol")
		w.str([]string{"clear", "cloudy", "showers"}[h%3])
		w.close('}')
	}
	w.close(']')
	w.close('}')
}

// series is a window of numbers that slides by some each time.
type series struct {
	n      int
	values []string
}

func (s *series) start(r *rand.Rand) {
	for range s.n {
		s.values = append(s.values, strconv.FormatFloat(r.Float64()*1e5, 'f', 4, 64))
	}
}
func (s *series) step(r *rand.Rand) {
	for range 1 + r.IntN(8) {
		s.values = append(s.values[1:], strconv.FormatFloat(r.Float64()*1e5, 'f', 4, 64))
	}
}
func (s *series) write(w *writer) {
	w.raw(`{"unit":"kW","values":[`)
	for _, v := range s.values {
		w.raw(v)
	}
	w.close(']')
	w.close('}')
}

// arrays is a few long arrays of numbers of which some change, come or go.
type arrays struct{ rows [4][]int }

func (a *arrays) start(r *rand.Rand) {
	for i := range a.rows {
		for range 2500 {
			a.rows[i] = append(a.rows[i], r.IntN(1000))
		}
	}
}
func (a *arrays) step(r *rand.Rand) {
	for i := range a.rows {
		for range 20 {
			row, k := a.rows[i], r.IntN(len(a.rows[i]))
			switch r.IntN(6) {
			case 0:
				a.rows[i] = append(row[:k], row[k+1:]...)
			case 1:
				a.rows[i] = append(row[:k], append([]int{r.IntN(1000)}, row[k:]...)...)
			default:
				row[k] = r.IntN(1000)
			}
		}
	}
}
func (a *arrays) write(w *writer) {
	w.open('{')
	for i, row := range a.rows {
		w.key(name("row", i))
		w.open('[')
		for _, v := range row {
			w.num(v)
		}
		w.close(']')
	}
	w.close('}')
}

// same repeats one version.
type same struct{ model }

func (s *same) start(r *rand.Rand) { s.model.(*quotes).start(r) }
func (s *same) step(*rand.Rand)    {}

// replacement is a new document each time.
type replacement struct {
	rows []string
	n    int
}

func (p *replacement) start(r *rand.Rand) { p.step(r) }
func (p *replacement) step(r *rand.Rand) {
	p.n++
	p.rows = p.rows[:0]
	for range 150 {
		p.rows = append(p.rows, sentence(r, 8))
	}
}
func (p *replacement) write(w *writer) {
	w.open('{')
	w.key("edition")
	w.num(p.n)
	w.key("lines")
	w.open('[')
	for i, s := range p.rows {
		w.open('{')
		w.key("n")
		w.num(p.n*1000 + i)
		w.key("text")
		w.str(s)
		w.close('}')
	}
	w.close(']')
	w.close('}')
}
