package registry

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxText is far more than any name or URL needs, and less than what a database index can hold.
const maxText = 2048

// maxNumber is the largest that JSON readers agree about.
const maxNumber = 1 << 53

// clean returns the text without space around it, and whether it can be kept.
func clean(text string) (string, bool) {
	text = strings.TrimSpace(text)
	return text, len(text) <= maxText && utf8.ValidString(text) && strings.IndexByte(text, 0) < 0
}

// isHeaderValue reports whether upstreams can be told: names travel in headers.
func isHeaderValue(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f })
}

// text puts what was given in the place of what is there, if anything was given.
func (f *faults) text(field string, given, to *string) {
	if given == nil {
		return
	}
	text, ok := clean(*given)
	if !ok {
		f.add(field, notText)
		text = ""
	}
	*to = text
}

const (
	notText = "is not a string"
	notFlag = "is not a boolean"
	unknown = "is an unknown field"
	invalid = "has an invalid value"
)

func flag(given, to *bool) {
	if given != nil {
		*to = *given
	}
}

// The readers below convert a value of a form or of JSON.

func readText(v any) (any, bool) {
	s, ok := v.(string)
	s, fits := clean(s)
	return s, ok && fits
}

func readNumber(v any) (any, bool) {
	switch v := v.(type) {
	case string:
		return parseNumber(strings.TrimSpace(v))
	case json.Number:
		return parseNumber(v.String())
	case int64:
		return v, inRange(v)
	case float64:
		return wholeNumber(v)
	}
	return nil, false
}

func parseNumber(text string) (any, bool) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, inRange(n)
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, false
	}
	return wholeNumber(n)
}

func inRange(n int64) bool { return n <= maxNumber && n >= -maxNumber }

func wholeNumber(n float64) (any, bool) {
	if n != math.Trunc(n) || math.Abs(n) > maxNumber {
		return nil, false
	}
	return int64(n), true
}

func readFlag(v any) (any, bool) {
	switch v := v.(type) {
	case bool:
		return v, true
	case string:
		s := strings.ToLower(strings.TrimSpace(v))
		return s == "true", s == "true" || s == "false"
	}
	return nil, false
}

// readList takes a list of texts, or one text with commas.
func readList(v any) (any, bool) {
	list := []string{}
	switch v := v.(type) {
	case string:
		if strings.TrimSpace(v) == "" {
			return list, true
		}
		for part := range strings.SplitSeq(v, ",") {
			list = append(list, strings.TrimSpace(part))
		}
	case []any:
		for _, element := range v {
			s, ok := element.(string)
			if !ok {
				return nil, false
			}
			list = append(list, strings.TrimSpace(s))
		}
	default:
		return nil, false
	}
	for _, s := range list {
		if _, ok := clean(s); !ok {
			return nil, false
		}
	}
	return list, true
}
