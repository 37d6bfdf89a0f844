package freshet

import (
	"strconv"
	"strings"
)

// Version counts the changes of a topic's document within one epoch, from 1. 0 means nothing was published.
type Version uint64

// Position is a place in a topic's history. Epoch changes whenever history was lost, so a position from before
// can never be mistaken for one from after. Its text form is the id of an event and the ETag of a document.
type Position struct {
	Epoch   string // lower-case letters and digits only
	Version Version
}

// String is "<epoch>-<version>".
func (p Position) String() string {
	return p.Epoch + "-" + strconv.FormatUint(uint64(p.Version), 10)
}

// Len is the length of String.
func (p Position) Len() int {
	n := len(p.Epoch) + 2
	for v := p.Version; v >= 10; v /= 10 {
		n++
	}
	return n
}

// IsZero reports whether nothing was published.
func (p Position) IsZero() bool { return p.Version == 0 }

const maxPosition = 64 // bytes; longer ids are not ours

// ParsePosition reads an id that a client sent back. Anything we did not make is not a position.
func ParsePosition(text string) (Position, bool) {
	epoch, digits, ok := strings.Cut(text, "-")
	if !ok || epoch == "" || len(text) > maxPosition || (len(digits) > 1 && digits[0] == '0') {
		return Position{}, false
	}
	for i := range len(epoch) {
		if c := epoch[i]; (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return Position{}, false
		}
	}
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return Position{}, false
		}
	}
	v, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return Position{}, false
	}
	return Position{Epoch: epoch, Version: Version(v)}, true
}
