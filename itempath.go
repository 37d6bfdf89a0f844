package freshet

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// ItemPath leads to the identifier inside an item of an item topic. Its first character is the separator:
// ".Identifier.Symbol" and "|Identifier|Symbol" are the same path. It is case sensitive.
// The zero value is no path; only ParseItemPath makes a valid one.
type ItemPath struct {
	text     string
	segments []string
}

const maxItemPath = 1024 // bytes

// ParseItemPath splits text at its own first character.
func ParseItemPath(text string) (ItemPath, error) {
	if text == "" {
		return ItemPath{}, itemPathFault("is required when payload.type is item")
	}
	if len(text) > maxItemPath {
		return ItemPath{}, itemPathFault(fmt.Sprintf("is longer than %d bytes", maxItemPath))
	}
	if !utf8.ValidString(text) || hasControl(text) {
		return ItemPath{}, itemPathFault("contains a character that cannot be in a path")
	}
	_, sepLen := utf8.DecodeRuneInString(text)
	segments := strings.Split(text[sepLen:], text[:sepLen])
	for _, s := range segments {
		if s == "" {
			return ItemPath{}, itemPathFault("must be a separator followed by names, like .Identifier.Symbol")
		}
	}
	return ItemPath{text: text, segments: segments}, nil
}

// Segments are the member names to follow from the item to its identifier. The caller must not change them.
func (p ItemPath) Segments() []string { return p.segments }

// String is the path as its owner wrote it.
func (p ItemPath) String() string { return p.text }

// Equal reports whether both lead to the same place, whatever separator they were written with.
func (p ItemPath) Equal(q ItemPath) bool {
	if len(p.segments) != len(q.segments) {
		return false
	}
	for i := range p.segments {
		if p.segments[i] != q.segments[i] {
			return false
		}
	}
	return true
}

func itemPathFault(message string) error {
	return InvalidField("publisher.payload.item_id_path", "%s", message)
}
