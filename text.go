package freshet

import (
	"unicode"
	"unicode/utf8"
)

// checkText adds a fault unless s is a usable one-line text of at most maxRunes characters.
func (f *faults) checkText(field, s string, maxRunes int) {
	switch {
	case s == "":
		f.add(field, "is required")
	case isBlank(s):
		f.add(field, "must not be blank")
	case !utf8.ValidString(s):
		f.add(field, "is not valid UTF-8")
	case utf8.RuneCountInString(s) > maxRunes:
		f.add(field, "is longer than %d characters", maxRunes)
	case hasControl(s):
		f.add(field, "contains a control character")
	}
}

func isBlank(s string) bool {
	for _, r := range s {
		if !unicode.IsSpace(r) {
			return false
		}
	}
	return true
}

// hasControl also catches line and paragraph separators, which would break one-line output such as logs.
func hasControl(s string) bool {
	for _, r := range s {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return true
		}
	}
	return false
}
