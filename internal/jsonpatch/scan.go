package jsonpatch

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// str reads the string at pos and reports whether it contains escapes. If it does, what it means is left in p.meaning.
func (p *parser) str() (escaped, ok bool) {
	start := p.pos
	pos, wide := scanPlain(p.text, start+1)
	if pos < len(p.text) && p.text[pos] == '\\' {
		escaped = true
		var w bool
		if pos, w, ok = p.unescape(start+1, pos); !ok {
			return true, false
		}
		wide = wide || w
	}
	if pos >= len(p.text) {
		return escaped, p.fail(pos, "unexpected end of input in a string")
	}
	if p.text[pos] != '"' {
		return escaped, p.fail(pos, fmt.Sprintf("control character U+%04X in a string; it must be escaped", p.text[pos]))
	}
	if wide && !utf8.Valid(p.text[start:pos]) {
		at := start + invalidUTF8(p.text[start:pos])
		return escaped, p.fail(at, "invalid UTF-8 in a string")
	}
	p.pos = pos + 1
	return escaped, true
}

// unescape reads on from the first backslash of a string's content, which begins at start, up to the closing quote or
// what must not be in a string. It writes down what the content means.
func (p *parser) unescape(start, pos int) (end int, wide, ok bool) {
	out := append(p.meaning[:0], p.text[start:pos]...)
	for pos < len(p.text) && p.text[pos] == '\\' {
		size := escapeLen(p.text, pos)
		switch size {
		case 0:
			return pos, wide, p.fail(pos, "invalid escape sequence in a string")
		case 2:
			out = append(out, unescapedByte(p.text[pos+1]))
		default:
			var r rune
			r, size = unescapedRune(p.text[pos:])
			out = appendCodePoint(out, r)
		}
		pos += size
		next, w := scanPlain(p.text, pos)
		wide = wide || w
		out = append(out, p.text[pos:next]...)
		pos = next
	}
	p.meaning = out
	return pos, wide, true
}

var literalTexts = [...][]byte{[]byte("null"), []byte("false"), []byte("true")}

// literal reads null, false or true and returns its index among the literals.
func (p *parser) literal() (kind Kind, i int, ok bool) {
	rest := p.text[p.pos:]
	i = literalIndex(rest)
	if !bytes.HasPrefix(rest, literalTexts[i]) {
		return 0, 0, false
	}
	p.pos += len(literalTexts[i])
	if i > 0 {
		kind = Bool
	}
	return kind, i, true
}

// distinct reports whether the keys of an object that is being closed are all different. A few are compared each
// with each; many go through an index.
func (p *parser) distinct(f *frame) bool {
	d := &Document{text: p.text, tape: p.tape} // as far as it is read
	object := place{f.at, f.start}
	m := d.first(object)
	if f.count <= 8 {
		return p.distinctFew(d, m, int(f.count))
	}
	p.keys.reset(int(f.count))
	for i := range f.count {
		if i > 0 {
			m = d.next(m)
		}
		hash := hashKey(d, m)
		if _, twice := p.keys.find(hash, func(o place) bool { return equalKeys(d, o, d, m) }); twice {
			return p.duplicate(d, m)
		}
		p.keys.add(hash, m)
	}
	return true
}

// distinctFew is distinct for at most eight members.
func (p *parser) distinctFew(d *Document, m place, count int) bool {
	var seen [8]place
	for i := range count {
		if i > 0 {
			m = d.next(m)
		}
		for _, o := range seen[:i] {
			if d.node(o).key == d.node(m).key || d.node(o).keyEscaped() || d.node(m).keyEscaped() {
				if equalKeys(d, o, d, m) {
					return p.duplicate(d, m)
				}
			}
		}
		seen[i] = m
	}
	return true
}

func (p *parser) duplicate(d *Document, m place) bool {
	name := appendUnescaped(nil, d.key(m))
	return p.fail(int(m.pos-d.node(m).key), "duplicate key "+quote(name))
}

// fail records what is wrong at pos. It returns false, for the caller to return.
func (p *parser) fail(pos int, msg string) bool {
	p.fault, p.faultPos = msg, pos
	return false
}

// unexpected fails at pos, unless white space there only means that the text has to be compacted first.
func (p *parser) unexpected(where string) bool {
	if p.pos >= len(p.text) {
		return p.fail(p.pos, "unexpected end of input")
	}
	if isSpace(p.text[p.pos]) {
		if !p.compacted {
			p.spaced = true
			return false
		}
		p.pos++ // the space that compact leaves between tokens which must not be joined
	}
	r, n := utf8.DecodeRune(p.text[p.pos:])
	if r == utf8.RuneError && n == 1 {
		return p.fail(p.pos, "invalid UTF-8 "+where)
	}
	return p.fail(p.pos, fmt.Sprintf("unexpected character %q %s", r, where))
}

// syntaxError turns the recorded fault into an error with its position in src. text is src without the white
// space around it, of which lead bytes stood in front.
func (p *parser) syntaxError(src, text []byte, lead int) *SyntaxError {
	offset := p.faultPos
	if p.compacted {
		offset = offsetBefore(text, offset)
	}
	return newSyntaxError(src, lead+offset, p.fault)
}
