package jsonpatch

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// This file is a second, deliberately simple reading of JSON, to compare the real one with. It knows nothing of tapes:
// encoding/json decides the grammar, and values become plain Go trees.

// refObject is an object by unescaped key. Keys are UTF-16 code units, so that lone surrogates stay what they are.
type refObject map[string]any

// refString is a string as UTF-16 code units.
type refString string

// refNumber is a number in canonical form.
type refNumber string

type refArray []any

var errReference = errors.New("not strict JSON")

// reference reads src strictly, up to a depth.
func reference(src []byte, maxDepth int) (any, error) {
	if !json.Valid(src) || !utf8.Valid(src) {
		return nil, errReference
	}
	var b bytes.Buffer
	if err := json.Compact(&b, src); err != nil {
		return nil, err
	}
	r := refReader{text: b.Bytes(), maxDepth: maxDepth}
	v, ok := r.value(0)
	if !ok {
		return nil, errReference
	}
	return v, nil
}

// refReader walks text that is known to be valid and compact.
type refReader struct {
	text     []byte
	maxDepth int
}

func (r *refReader) value(depth int) (any, bool) {
	switch c := r.text[0]; c {
	case '{', '[':
		if depth >= r.maxDepth {
			return nil, false
		}
		if c == '{' {
			return r.object(depth)
		}
		return r.array(depth)
	case '"':
		return refString(r.str()), true
	case 't', 'n':
		r.text = r.text[4:]
		return map[byte]any{'t': true, 'n': nil}[c], true
	case 'f':
		r.text = r.text[5:]
		return false, true
	}
	n := 0
	for n < len(r.text) && strings.IndexByte("+-.eE0123456789", r.text[n]) >= 0 {
		n++
	}
	v := refNumber(canonicalReference(string(r.text[:n])))
	r.text = r.text[n:]
	return v, true
}

func (r *refReader) object(depth int) (any, bool) {
	obj := refObject{}
	for r.text = r.text[1:]; r.text[0] != '}'; {
		if r.text[0] == ',' {
			r.text = r.text[1:]
		}
		key := r.str()
		r.text = r.text[1:] // colon
		v, ok := r.value(depth + 1)
		if _, twice := obj[key]; twice || !ok {
			return nil, false
		}
		obj[key] = v
	}
	r.text = r.text[1:]
	return obj, true
}

func (r *refReader) array(depth int) (any, bool) {
	arr := refArray{}
	for r.text = r.text[1:]; r.text[0] != ']'; {
		if r.text[0] == ',' {
			r.text = r.text[1:]
		}
		v, ok := r.value(depth + 1)
		if !ok {
			return nil, false
		}
		arr = append(arr, v)
	}
	r.text = r.text[1:]
	return arr, true
}

// str reads a string into UTF-16 code units.
func (r *refReader) str() string {
	var units []uint16
	i := 1
	for r.text[i] != '"' {
		c, n := utf8.DecodeRune(r.text[i:])
		if c != '\\' {
			units = utf16.AppendRune(units, c)
			i += n
			continue
		}
		if r.text[i+1] == 'u' {
			u, _ := strconv.ParseUint(string(r.text[i+2:i+6]), 16, 16)
			units = append(units, uint16(u))
			i += 6
			continue
		}
		plain := map[byte]byte{'b': 8, 'f': 12, 'n': 10, 'r': 13, 't': 9}
		u, ok := plain[r.text[i+1]]
		if !ok {
			u = r.text[i+1]
		}
		units = append(units, uint16(u))
		i += 2
	}
	r.text = r.text[i+1:]
	var b strings.Builder
	for _, u := range units {
		b.WriteByte(byte(u >> 8))
		b.WriteByte(byte(u))
	}
	return b.String()
}

// canonicalReference names a number by its value, with big integers for the exponent.
func canonicalReference(text string) string {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	exp := new(big.Int)
	if exponent != "" {
		exp.SetString(strings.TrimPrefix(exponent, "+"), 10)
	}
	sign := ""
	if strings.HasPrefix(mantissa, "-") {
		sign, mantissa = "-", mantissa[1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	short := strings.TrimRight(digits, "0")
	if short == "" {
		return "0"
	}
	exp.Add(exp, big.NewInt(int64(len(digits)-len(short)-len(fraction))))
	return sign + short + "e" + exp.String()
}
