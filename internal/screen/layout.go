// Package screen shows a JSON document that changes, in a terminal: it lays the document out in lines, finds the lines that
// changed, and repaints only the rows of the terminal that look different.
//
// It deliberately reads no keys and knows no network. Nothing here is safe for concurrent use.
package screen

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// layout breaks compact JSON into lines. A container that fits into width stands on one line, so that an array of records
// reads as a table; others are spread out.
type layout struct {
	text  []byte
	width int
	spans []int // by container, in the order of their opening brackets: bytes up to behind the closing one
	seen  int   // containers opened so far
	line  bytes.Buffer
	lines []string
}

// Lines lays out a document, which must be compact and valid JSON.
func Lines(text []byte, width int) []string {
	l := &layout{text: text, width: max(width, 20), spans: spans(text)}
	l.value(0, 0)
	l.flush()
	return l.lines
}

// spans measures every container.
func spans(text []byte) []int {
	var all, open []int // open holds indexes into all
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = stringEnd(text, i) - 1
		case '{', '[':
			open = append(open, len(all))
			all = append(all, i)
		case '}', ']':
			last := open[len(open)-1]
			open = open[:len(open)-1]
			all[last] = i + 1 - all[last]
		}
	}
	return all
}

// stringEnd returns the position behind the string that begins at i.
func stringEnd(text []byte, i int) int {
	for i++; ; {
		q := bytes.IndexByte(text[i:], '"')
		if q < 0 {
			return len(text)
		}
		i += q + 1
		backslashes := 0
		for text[i-2-backslashes] == '\\' {
			backslashes++
		}
		if backslashes%2 == 0 {
			return i
		}
	}
}

// value writes the value at i and returns the position behind it.
func (l *layout) value(i, depth int) int {
	switch l.text[i] {
	case '{', '[':
	case '"':
		end := stringEnd(l.text, i)
		l.writeText(l.text[i:end])
		return end
	default:
		end := i
		for end < len(l.text) && strings.IndexByte(",]}", l.text[end]) < 0 {
			end++
		}
		l.line.Write(l.text[i:end])
		return end
	}
	span := l.spans[l.seen]
	// The spaces that make it readable take a tenth or so.
	if l.line.Len()+span+span/10 <= l.width || span == 2 {
		l.inline(l.text[i : i+span])
		return i + span
	}
	return l.spread(i, i+span, depth)
}

// inline writes a container on the current line, with spaces behind commas and colons.
func (l *layout) inline(text []byte) {
	for i := 0; i < len(text); {
		switch c := text[i]; c {
		case '"':
			end := stringEnd(text, i)
			l.writeText(text[i:end])
			i = end
			continue
		case '{', '[':
			l.seen++
			l.line.WriteByte(c)
		case ',', ':':
			l.line.WriteByte(c)
			l.line.WriteByte(' ')
		default:
			l.line.WriteByte(c)
		}
		i++
	}
}

// spread writes each member or element of a container on lines of its own.
func (l *layout) spread(i, end, depth int) int {
	l.seen++
	isObject := l.text[i] == '{'
	l.line.WriteByte(l.text[i])
	l.flush()
	for i++; i < end-1; {
		l.indent(depth + 1)
		if isObject {
			key := stringEnd(l.text, i)
			l.writeText(l.text[i:key])
			l.line.WriteString(": ")
			i = key + 1
		}
		i = l.value(i, depth+1)
		if l.text[i] == ',' {
			l.line.WriteByte(',')
			i++
		}
		l.flush()
	}
	l.indent(depth)
	l.line.WriteByte(l.text[end-1])
	return end
}

func (l *layout) indent(depth int) {
	const most = 40 // deeper nesting would leave no room for anything else
	for range min(depth, most) {
		l.line.WriteString("  ")
	}
}

func (l *layout) flush() {
	l.lines = append(l.lines, l.line.String())
	l.line.Reset()
}

// writeText keeps what is in strings from steering the terminal: JSON escapes most control characters, but not all.
func (l *layout) writeText(text []byte) {
	if isHarmless(text) {
		l.line.Write(text)
		return
	}
	l.line.WriteString(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return utf8.RuneError
		}
		return r
	}, string(text)))
}

func isHarmless(text []byte) bool {
	for _, c := range text {
		if c < 0x20 || c >= 0x7f {
			return false
		}
	}
	return true
}
