package jsonpatch

import (
	"bytes"
	"encoding/binary"
	"sync"
	"unicode/utf8"
)

// equal reports whether the values at p and q are equal JSON, whatever their hashes say. The keys of the values
// themselves do not count.
func equal(a *Document, p place, b *Document, q place) bool {
	return bytes.Equal(a.value(p), b.value(q)) || equalByValue(a, p, b, q)
}

// equalByValue is equal for values whose bytes differ or were not compared. It is linear in the text of the smaller one.
func equalByValue(a *Document, p place, b *Document, q place) bool {
	m, n := a.node(p), b.node(q)
	if m.kind() != n.kind() || m.children() != n.children() {
		return false
	}
	switch m.kind() {
	case Number:
		return equalNumbers(a.value(p), b.value(q))
	case String:
		return (m.escaped() || n.escaped()) && equalStrings(a.value(p), b.value(q))
	case Array:
		return equalArrays(a, p, b, q)
	case Object:
		return equalObjects(a, p, b, q)
	}
	return false
}

// equalStrings compares what two texts mean, quotes on both or on neither, without writing either down.
func equalStrings(a, b []byte) bool {
	for len(a) > 0 && len(b) > 0 {
		if a[0] != '\\' && b[0] != '\\' {
			if a[0] != b[0] {
				return false
			}
			n := 1
			if len(a) >= 8 && len(b) >= 8 && binary.LittleEndian.Uint64(a) == binary.LittleEndian.Uint64(b) {
				n = plainBytes(binary.LittleEndian.Uint64(a))
			}
			a, b = a[n:], b[n:]
			continue
		}
		r, n := codePoint(a)
		s, m := codePoint(b)
		if r != s {
			return false
		}
		a, b = a[n:], b[m:]
	}
	return len(a) == len(b)
}

// codePoint returns the first code point that a string's content means, and the length of its spelling.
func codePoint(raw []byte) (rune, int) {
	switch {
	case raw[0] != '\\':
		return utf8.DecodeRune(raw)
	case raw[1] != 'u':
		return rune(unescapedByte(raw[1])), 2
	}
	return unescapedRune(raw)
}

// textBuffers are for unescaping into.
var textBuffers = sync.Pool{New: func() any { b := make([]byte, 0, 256); return &b }}

// smallValue is up to which size a nested container is compared by bytes before it is walked. Large ones are only
// walked: comparing the bytes at every level would make deep nesting quadratic.
const smallValue = 256

// equalChildren compares two members, or two elements, whose keys are known to be equal. Their hashes are
// comparable because both cover the same key.
func equalChildren(a *Document, p place, b *Document, q place) bool {
	m, n := a.node(p), b.node(q)
	if m.hash != n.hash {
		return false
	}
	if (m.span == 1 || m.size <= smallValue) && bytes.Equal(a.value(p), b.value(q)) {
		return true
	}
	return equalByValue(a, p, b, q)
}

func equalArrays(a *Document, p place, b *Document, q place) bool {
	count := a.node(p).children()
	for i := range count {
		if i == 0 {
			p, q = a.first(p), b.first(q)
		} else {
			p, q = a.next(p), b.next(q)
		}
		if !equalChildren(a, p, b, q) {
			return false
		}
	}
	return true
}

// equalObjects walks two objects of the same size. Members usually stand in the same order; from the first that
// does not, an index of keys is used.
func equalObjects(a *Document, p place, b *Document, q place) bool {
	count := a.node(p).children()
	for i := range count {
		if i == 0 {
			p, q = a.first(p), b.first(q)
		} else {
			p, q = a.next(p), b.next(q)
		}
		if !equalKeys(a, p, b, q) {
			return equalUnordered(a, p, b, q, count-i)
		}
		if !equalChildren(a, p, b, q) {
			return false
		}
	}
	return true
}

// equalUnordered compares count members from p on with as many from q on, in any order.
func equalUnordered(a *Document, p place, b *Document, q place, count int) bool {
	index := newKeyIndex(count)
	for i := range count {
		index.add(hashKey(a, p), p)
		if i < count-1 {
			p = a.next(p)
		}
	}
	for i := range count {
		match, ok := index.find(hashKey(b, q), func(p place) bool { return equalKeys(a, p, b, q) })
		if !ok || !equalChildren(a, match, b, q) {
			return false
		}
		if i < count-1 {
			q = b.next(q)
		}
	}
	return true
}

// equalKeys compares the keys of two members after unescaping.
func equalKeys(a *Document, p place, b *Document, q place) bool {
	if bytes.Equal(a.key(p), b.key(q)) {
		return true
	}
	return (a.node(p).keyEscaped() || b.node(q).keyEscaped()) && equalStrings(a.key(p), b.key(q))
}

func hashKey(d *Document, p place) uint64 {
	return hashString(d.key(p), d.node(p).keyEscaped())
}
