package content

import (
	"bytes"

	"github.com/freshet-io/freshet/internal/jsonpatch"
)

// A Text is the state of a snapshot topic that was put away: the document's text alone, without the tape that says what is in it.
// The tape may take ten times as much; whoever needs it again reads the text again.
type Text struct{ text []byte }

// NewText returns the state of a document by its compact text, which it takes over.
func NewText(compact []byte) *Text { return &Text{compact} }

// Bytes implements State.
func (t *Text) Bytes() []byte { return t.text }

// Len implements State.
func (t *Text) Len() int { return len(t.text) }

// Fold returns the state as it takes least memory. An item topic's is returned as it is: its items are found by their tapes.
func Fold(s State) State {
	doc, ok := s.(*jsonpatch.Document)
	if !ok || doc == nil {
		return s
	}
	text := doc.Bytes()
	if cap(text) > len(text)+len(text)/8 {
		text = bytes.Clone(text) // or what was read around it is kept
	}
	return NewText(text)
}

// Unfold returns the state as it is compared fastest.
func (r Rules) Unfold(s State) State {
	if text, ok := s.(*Text); ok {
		if doc := r.documentOf(text); doc != nil {
			return doc
		}
	}
	return s
}

// overhead is what a state takes beside texts and tapes, about.
const overhead = 128

// Size returns how many bytes of memory a state takes, about. A nil State takes none.
func Size(s State) int {
	switch s := s.(type) {
	case *jsonpatch.Document:
		return s.Size() + overhead
	case *Items:
		return s.size() + overhead
	case *Text:
		return len(s.text) + overhead
	}
	return 0
}

// FoldedSize returns how many bytes Fold of a state takes.
func FoldedSize(s State) int {
	if doc, ok := s.(*jsonpatch.Document); ok && doc != nil {
		return doc.Len() + overhead
	}
	return Size(s)
}
