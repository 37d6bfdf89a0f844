package jsonpatch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A pointer is a parsed JSON Pointer (RFC 6901): its tokens, unescaped. The empty one is the whole document.
type pointer []string

func parsePointer(text string) (pointer, error) {
	if text == "" {
		return nil, nil
	}
	if text[0] != '/' {
		return nil, errors.New("it must be empty or begin with '/'")
	}
	tokens := strings.Split(text[1:], "/")
	for i, token := range tokens {
		if !strings.Contains(token, "~") {
			continue
		}
		plain := strings.NewReplacer("~0", "~", "~1", "/").Replace(token)
		if strings.Count(token, "~") != strings.Count(token, "~0")+strings.Count(token, "~1") {
			return nil, errors.New("'~' must be followed by '0' or '1'")
		}
		tokens[i] = plain
	}
	return tokens, nil
}

// String returns the pointer's text.
func (p pointer) String() string {
	var b strings.Builder
	for _, token := range p {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(token))
	}
	return b.String()
}

// isBelow reports whether p is a place inside q, not q itself.
func (p pointer) isBelow(q pointer) bool {
	return len(p) > len(q) && slices.Equal(p[:len(q)], q)
}

// arrayIndex reads an index of at most the given one.
func arrayIndex(token string, most int) (int, error) {
	if token == "-" {
		return 0, errors.New("there is no element after the last one")
	}
	if token == "" || len(token) > 1 && token[0] == '0' {
		return 0, fmt.Errorf("%s is no array index", quote([]byte(token)))
	}
	i := 0
	for _, c := range []byte(token) {
		if c < '0' || c > '9' {
			return 0, fmt.Errorf("%s is no array index", quote([]byte(token)))
		}
		if i = i*10 + int(c-'0'); i > maxBytes {
			break
		}
	}
	if i > most {
		return 0, fmt.Errorf("there is no array index %s", quote([]byte(token)))
	}
	return i, nil
}
