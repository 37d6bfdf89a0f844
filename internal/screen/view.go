package screen

import (
	"strings"
	"time"
)

// line is one line of the document and what is new about it.
type line struct {
	text     string
	from, to int       // the bytes of text that changed
	at       time.Time // when they did; zero for never
}

// View is a document on its way through time. It remembers what changed lately, and which part of a long document to show.
type View struct {
	lines  []line
	top    int       // first line shown
	moved  time.Time // when top was chosen
	width  int
	source []byte
}

// How long a change is marked, and how long the view stays before it follows changes elsewhere.
const (
	freshFor = 400 * time.Millisecond
	markFor  = 1500 * time.Millisecond
	dwell    = 2 * time.Second
)

// Update takes the newest document. The first one, and one at another width, is all new and marks nothing.
func (v *View) Update(document []byte, width int, now time.Time) {
	if len(document) == 0 || width == v.width && len(v.source) == len(document) && &v.source[0] == &document[0] {
		return
	}
	texts := Lines(document, width)
	quiet := v.lines == nil || width != v.width
	v.source, v.width = document, width
	next := make([]line, len(texts))
	for i, t := range texts {
		next[i].text = t
	}
	if !quiet {
		carry(v.lines, next, now)
	}
	v.lines = next
}

// carry finds what became of each line. What stands before the first and behind the last difference is the same; in between,
// lines that merely moved are found by their text, and the rest is new.
func carry(old, next []line, now time.Time) {
	same := func(a, b string) bool { return strings.TrimSuffix(a, ",") == strings.TrimSuffix(b, ",") }
	keep := func(to, from *line) { to.from, to.to, to.at = from.from, min(from.to, len(to.text)), from.at }
	head := 0
	for head < min(len(old), len(next)) && same(old[head].text, next[head].text) {
		keep(&next[head], &old[head])
		head++
	}
	tail := 0
	for tail < min(len(old), len(next))-head && same(old[len(old)-1-tail].text, next[len(next)-1-tail].text) {
		keep(&next[len(next)-1-tail], &old[len(old)-1-tail])
		tail++
	}
	match(old[head:len(old)-tail], next[head:len(next)-tail], same, keep, now)
}

// match finds lines that stayed in their places, then those that moved, and marks the others.
func match(was, is []line, same func(a, b string) bool, keep func(to, from *line), now time.Time) {
	aligned := len(was) == len(is)
	used, found := make([]bool, len(was)), make([]bool, len(is))
	moved := map[string][]int{}
	for i := range was {
		if aligned && same(was[i].text, is[i].text) {
			keep(&is[i], &was[i])
			used[i], found[i] = true, true
			continue
		}
		text := strings.TrimSuffix(was[i].text, ",")
		moved[text] = append(moved[text], i)
	}
	for i := range is {
		text := strings.TrimSuffix(is[i].text, ",")
		if from := moved[text]; !found[i] && len(from) > 0 {
			keep(&is[i], &was[from[0]])
			used[from[0]], found[i] = true, true
			moved[text] = from[1:]
		}
	}
	for i := range is {
		switch {
		case found[i]:
		case aligned && !used[i]:
			is[i].from, is[i].to = difference(was[i].text, is[i].text)
			is[i].at = now
		default:
			is[i].from, is[i].to, is[i].at = 0, len(is[i].text), now
		}
	}
}

// difference returns the bytes of b, as whole tokens, that differ from a.
func difference(a, b string) (from, to int) {
	for from < min(len(a), len(b)) && a[from] == b[from] {
		from++
	}
	end := 0
	for end < min(len(a), len(b))-from && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	to = len(b) - end
	const between = " ,:{}[]"
	for from > 0 && !strings.ContainsRune(between, rune(b[from-1])) {
		from--
	}
	for to < len(b) && !strings.ContainsRune(between, rune(b[to])) {
		to++
	}
	return from, to
}

// Fading reports whether a mark is still to disappear, so that painting again makes sense although nothing came.
func (v *View) Fading(now time.Time) bool {
	for i := range v.lines {
		if !v.lines[i].at.IsZero() && now.Sub(v.lines[i].at) < markFor+freshFor {
			return true
		}
	}
	return false
}

// Rows returns what to show in height rows, and which lines of how many they are, from 1.
func (v *View) Rows(height int, marks Marks, now time.Time) (rows []string, first, last, total int) {
	v.follow(height, now)
	end := min(v.top+height, len(v.lines))
	for i := v.top; i < end; i++ {
		rows = append(rows, marks.show(&v.lines[i], v.width, now))
	}
	return rows, v.top + 1, end, len(v.lines)
}

// follow moves to where something changed, but not so often that nobody can read.
func (v *View) follow(height int, now time.Time) {
	v.top = max(0, min(v.top, len(v.lines)-height))
	if len(v.lines) <= height || now.Sub(v.moved) < dwell {
		return
	}
	newest := -1
	for i := range v.lines {
		at := v.lines[i].at
		if at.IsZero() || now.Sub(at) >= markFor {
			continue
		}
		if i >= v.top && i < v.top+height {
			return // something to see where we are
		}
		if newest < 0 || at.After(v.lines[newest].at) {
			newest = i
		}
	}
	if newest >= 0 {
		v.top = max(0, min(newest-height/3, len(v.lines)-height))
		v.moved = now
	}
}

// Marks are how changes look.
type Marks struct {
	Fresh, Recent, Plain string // escape sequences; empty where colours are not wanted
}

// Coloured and Bare are for terminals with colours and without.
var (
	Coloured = Marks{Fresh: "\x1b[7m", Recent: "\x1b[1;32m", Plain: "\x1b[0m"}
	Bare     = Marks{}
)

// show cuts a line to the width of the terminal and marks what changed. Without colours, a star in front has to do.
func (m Marks) show(l *line, width int, now time.Time) string {
	age := now.Sub(l.at)
	mark, gutter := "", "  "
	if !l.at.IsZero() && age < markFor {
		gutter = "* "
		mark = m.Recent
		if age < freshFor {
			mark = m.Fresh
		}
	}
	text := cut(l.text, width)
	from, to := min(l.from, len(text)), min(l.to, len(text))
	if mark == "" || from >= to {
		return gutter + text
	}
	return gutter + text[:from] + mark + text[from:to] + m.Plain + text[to:]
}

// cut keeps the first width characters.
func cut(text string, width int) string {
	n := 0
	for i := range text {
		if n == width {
			return text[:i]
		}
		n++
	}
	return text
}
