package jsonpatch

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// A SyntaxError says why an input is no acceptable JSON document, and where. Its texts may be shown to whoever
// sent the input.
type SyntaxError struct {
	Offset int    // in bytes, from 0
	Line   int    // from 1
	Column int    // in characters, from 1
	Msg    string // for example `duplicate key "a"`
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Msg)
}

// newSyntaxError finds line and column of an offset.
func newSyntaxError(src []byte, offset int, msg string) *SyntaxError {
	before := src[:min(offset, len(src))]
	line := before[bytes.LastIndexByte(before, '\n')+1:]
	return &SyntaxError{
		Offset: offset,
		Line:   bytes.Count(before, []byte{'\n'}) + 1,
		Column: utf8.RuneCount(line) + 1,
		Msg:    msg,
	}
}

// shown is how many bytes of somebody's text an error repeats.
const shown = 64

// quote returns text for an error message, shortened if it is long.
func quote(text []byte) string {
	if len(text) <= shown {
		return fmt.Sprintf("%q", text)
	}
	cut := shown
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return fmt.Sprintf("%q…", text[:cut])
}
