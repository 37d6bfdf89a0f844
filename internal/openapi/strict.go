package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/freshet-io/freshet/internal/jsonpatch"
)

func encode(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

const maxDepth = 64 // no request of ours nests deeper

// decode reads a body that must be strict JSON: encoding/json alone lets duplicate keys, bad UTF-8 and much else
// pass, and a second parser down the line could then see another document than we checked. The library calls it
// twice with the same body: into an any, to check the shape, and into the struct. What the first call refuses is an answer of
// status 400 whatever the second one reads, so only the first one is strict, and each reads the body once.
func decode(data []byte, v any) error {
	if to, ok := v.(*any); ok {
		return decodeStrict(data, to)
	}
	if hasOddNumber(data) {
		var tree any
		if err := decodeStrict(data, &tree); err != nil {
			return err
		}
		var err error
		if data, err = json.Marshal(tree); err != nil {
			return err
		}
	}
	err := json.Unmarshal(data, v)
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return bodyFault("is not valid JSON")
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fieldFault(wrong.Field, "must be "+kindName(wrong.Type))
	}
	return err
}

// decodeStrict reads a body as maps, slices, strings, booleans and numbers, whole ones spelled plainly.
func decodeStrict(data []byte, to *any) error {
	doc, err := jsonpatch.Parse(data, jsonpatch.Limits{MaxDepth: maxDepth})
	if err != nil {
		return bodyFault("is not valid JSON: " + err.Error())
	}
	if hasLoneSurrogate(data) {
		return bodyFault("contains half of a surrogate pair, which is no character")
	}
	*to = treeOf(doc.Root())
	return nil
}

// treeOf is the value as encoding/json would read it into an any, with numbers as they are written, except for whole ones.
func treeOf(v jsonpatch.Value) any {
	switch v.Kind() {
	case jsonpatch.Object:
		members := make(map[string]any, v.Len())
		for name, member := range v.Members() {
			members[name] = treeOf(member)
		}
		return members
	case jsonpatch.Array:
		elements := make([]any, 0, v.Len())
		for element := range v.Elements() {
			elements = append(elements, treeOf(element))
		}
		return elements
	case jsonpatch.String:
		return v.Text()
	case jsonpatch.Number:
		return plainInteger(json.Number(v.Bytes()))
	case jsonpatch.Bool:
		return string(v.Bytes()) == "true"
	}
	return nil
}

// maxPlainDigits is how many digits every int64 can hold.
const maxPlainDigits = 18

// hasOddNumber reports whether there may be a number that Go would not read as an integer although it is whole.
func hasOddNumber(data []byte) bool {
	digits, inString := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inString:
			if c == '\\' {
				i++
			}
			inString = c != '"'
		case c == '"':
			inString = true
		case c >= '0' && c <= '9':
			if digits++; digits > maxPlainDigits {
				return true
			}
			continue
		case digits > 0 && (c == '.' || c == 'e' || c == 'E'):
			return true
		}
		digits = 0
	}
	return false
}

// hasLoneSurrogate finds escapes such as \ud800 without their other half. They are grammatical, but encoding/json would
// silently make them U+FFFD, and two different texts would become one.
func hasLoneSurrogate(data []byte) bool {
	for {
		i := bytes.IndexByte(data, '\\')
		if i < 0 {
			return false
		}
		unit, isUnit := escapedUnit(data[i:])
		if !isUnit {
			data = data[i+2:] // the text is valid JSON: something follows the backslash
			continue
		}
		data = data[i+6:]
		if !utf16.IsSurrogate(unit) {
			continue
		}
		second, isUnit := escapedUnit(data)
		if !isUnit || utf16.DecodeRune(unit, second) == unicode.ReplacementChar {
			return true
		}
		data = data[6:]
	}
}

// escapedUnit reads \uXXXX at the beginning of valid JSON text.
func escapedUnit(data []byte) (rune, bool) {
	if len(data) < 6 || data[0] != '\\' || data[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(data[2:6]), 16, 16)
	return rune(n), err == nil
}

// plainInteger spells a whole number the way Go reads integers: to JSON, 2000, 2000.0 and 2e3 are one number.
// What no int64 holds becomes the nearest one that does. That is out of every range that the nouns allow, so they
// refuse it by its name.
func plainInteger(n json.Number) json.Number {
	text := n.String()
	if _, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	f, _ := strconv.ParseFloat(text, 64) // out of range is ±Inf
	mantissa, _, _ := strings.Cut(strings.ToLower(text), "e")
	switch {
	case f >= math.MaxInt64:
		return json.Number(strconv.FormatInt(math.MaxInt64, 10))
	case f <= math.MinInt64:
		return json.Number(strconv.FormatInt(math.MinInt64, 10))
	case f == 0 && strings.ContainsAny(mantissa, "123456789"):
		return "0.5" // too small for a float64, but not zero: no integer
	case f == math.Trunc(f):
		return json.Number(strconv.FormatInt(int64(f), 10))
	}
	return n
}

// kindName says what a Go type is in words of JSON.
func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "a boolean"
	case reflect.String:
		return "a string"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "an integer"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice, reflect.Array:
		return "an array"
	default:
		return "of another type"
	}
}
