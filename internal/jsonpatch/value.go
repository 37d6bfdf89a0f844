package jsonpatch

import (
	"bytes"
	"iter"
)

// Kind is the type of a JSON value.
type Kind uint8

// The kinds of JSON values.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

// A Value is one value inside a document. It is a small reference, valid as long as it is kept.
type Value struct {
	doc *Document
	at  place
}

// Root returns the document's outermost value.
func (d *Document) Root() Value { return Value{doc: d} }

// Kind returns the type of the value.
func (v Value) Kind() Kind { return v.doc.node(v.at).kind() }

// Len returns the number of elements of an array or members of an object, and 0 for everything else.
func (v Value) Len() int { return v.doc.node(v.at).children() }

// Bytes returns the compact text of the value. It is shared: the caller must not modify it.
func (v Value) Bytes() []byte { return v.doc.value(v.at) }

// Equal reports whether two values are equal JSON.
func (v Value) Equal(w Value) bool { return equal(v.doc, v.at, w.doc, w.at) }

// Elements returns the elements of an array, or the values of an object's members, in order.
func (v Value) Elements() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		n := v.Len()
		if n == 0 {
			return
		}
		p := v.doc.first(v.at)
		for i := 0; yield(Value{v.doc, p}) && i < n-1; i++ {
			p = v.doc.next(p)
		}
	}
}

// Members returns the members of an object by their unescaped names, in order.
func (v Value) Members() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		if v.Kind() != Object {
			return
		}
		for m := range v.Elements() {
			name := v.doc.key(m.at)
			if v.doc.node(m.at).keyEscaped() {
				name = appendUnescaped(nil, name)
			}
			if !yield(string(name), m) {
				return
			}
		}
	}
}

// Member returns the member of an object by its unescaped name.
func (v Value) Member(name string) (Value, bool) {
	if v.Kind() != Object {
		return Value{}, false
	}
	for m := range v.Elements() {
		if v.doc.keyIs(m.at, name) {
			return m, true
		}
	}
	return Value{}, false
}

// Text returns the unescaped content of a string and "" for everything else.
func (v Value) Text() string {
	n := v.doc.node(v.at)
	if n.kind() != String {
		return ""
	}
	raw := v.doc.value(v.at)
	raw = raw[1 : len(raw)-1]
	if !n.escaped() {
		return string(raw)
	}
	return string(appendUnescaped(nil, raw))
}

// Decimal returns the canonical text of a number: equal numbers, however spelled, give the same text, which is
// plain decimal unless that would need many zeros. It returns "" for everything else.
func (v Value) Decimal() string {
	if v.Kind() != Number {
		return ""
	}
	return decimalText(v.Bytes())
}

// Document returns the value as a document of its own, with its own copy of text and tape.
func (v Value) Document() *Document {
	n := v.doc.node(v.at)
	d := &Document{
		text: bytes.Clone(v.Bytes()),
		tape: append([]node(nil), v.doc.tape[v.at.at:v.at.at+n.span]...),

		depth: v.doc.depth,
	}
	if n.key != 0 {
		// The hash in an object covers the key; a root has none.
		d.tape[0].hash = rehash(d)
		d.tape[0].key = 0
		d.tape[0].info &^= flagKeyEscaped
	}
	return d
}

// keyIs reports whether the member at p has this unescaped name.
func (d *Document) keyIs(p place, name string) bool {
	if d.node(p).keyEscaped() {
		return string(appendUnescaped(nil, d.key(p))) == name
	}
	return string(d.key(p)) == name
}
