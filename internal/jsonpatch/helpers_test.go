package jsonpatch

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"
)

func mustParse(t testing.TB, text string) *Document {
	t.Helper()
	d, err := Parse([]byte(text), Limits{})
	if err != nil {
		t.Fatalf("Parse(%.200q): %v", text, err)
	}
	return d
}

// mustReference reads text with the reference.
func mustReference(t testing.TB, text []byte) any {
	t.Helper()
	v, err := reference(text, 1<<20)
	if err != nil {
		t.Fatalf("reference refuses %.200q", text)
	}
	return v
}

// checkSame fails unless both texts are equal JSON according to the reference.
func checkSame(t testing.TB, got, want []byte) {
	t.Helper()
	if !reflect.DeepEqual(mustReference(t, got), mustReference(t, want)) {
		t.Fatalf("got  %.2000s\nwant %.2000s", got, want)
	}
}

// checkTape fails unless a document is exactly as Parse makes it of its own text.
func checkTape(t testing.TB, d *Document) {
	t.Helper()
	plain := mustParse(t, string(d.text))
	if string(plain.text) != string(d.text) {
		t.Fatalf("text is not compact: %.500s", d.text)
	}
	if !slices.Equal(plain.tape, d.tape) {
		t.Fatalf("tape differs from that of a plain parse of %.500s\n%v\n%v", d.text, d.tape, plain.tape)
	}
}

// A maker makes random documents and random changes of them, as Go values.
type maker struct{ *rand.Rand }

func newMaker(seed uint64) maker { return maker{rand.New(rand.NewPCG(seed, 7))} }

var makerTexts = []string{
	`"a"`, `"b"`, `""`, `"a/b"`, `"m~n"`, `"\u0061"`, `"\/"`, `"\ud800"`, `"é"`, `"\u00e9"`, `"日本"`, `"😀"`, `"\ud83d\ude00"`,
	`"a longer string that does not fit into sixteen bytes"`, `"q\"q"`, `"tab\there"`, `"` + "\u2028" + `"`,
}

var makerNumbers = []string{
	"0", "-0", "1", "1.0", "1e0", "10", "1e1", "1E+1", "0.5", "5e-1", "-3.25", "12345678901234567890", "12345678901234567891",
	"1e400", "10e399", "1e999999999", "0.1", "0.10", "100", "100.00", "9007199254740993", "9007199254740992",
}

func (m maker) pick(list []string) string { return list[m.IntN(len(list))] }

// value returns a random JSON value with at most so many levels.
func (m maker) value(levels int) any {
	switch k := m.IntN(10); {
	case k < 3 && levels > 0:
		arr := []any{}
		for range m.IntN(8) {
			arr = append(arr, m.value(levels-1))
		}
		return arr
	case k < 7 && levels > 0:
		obj := &object{}
		for range m.IntN(8) {
			obj.set(m.key(), m.value(levels-1))
		}
		return obj
	case k < 8:
		return m.pick(makerTexts)
	case k < 9:
		return m.pick(makerNumbers)
	default:
		return m.pick([]string{"null", "true", "false", strconv.Itoa(m.IntN(5))})
	}
}

func (m maker) key() string {
	if m.IntN(3) == 0 {
		return m.pick(makerTexts)
	}
	return strconv.Quote(string(rune('a' + m.IntN(26))))
}

// An object is a JSON object in order, keys as written.
type object struct {
	keys   []string
	values []any
}

// set adds a member unless one with an equal key is there.
func (o *object) set(key string, v any) {
	for _, k := range o.keys {
		if equalStrings([]byte(k), []byte(key)) {
			return
		}
	}
	o.keys, o.values = append(o.keys, key), append(o.values, v)
}

// text writes a value.
func text(v any) string { return string(appendValue(nil, v)) }

func appendValue(dst []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return append(dst, v...)
	case []any:
		dst = append(dst, '[')
		for i, e := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendValue(dst, e)
		}
		return append(dst, ']')
	case *object:
		dst = append(dst, '{')
		for i, e := range v.values {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(append(dst, v.keys[i]...), ':')
			dst = appendValue(dst, e)
		}
		return append(dst, '}')
	}
	panic("no JSON value")
}

// changed returns a copy of a value with some random changes.
func (m maker) changed(v any, levels int) any {
	if m.IntN(12) == 0 {
		return m.value(levels)
	}
	switch v := v.(type) {
	case []any:
		return m.changedArray(v, levels)
	case *object:
		return m.changedObject(v, levels)
	}
	if m.IntN(4) == 0 {
		return m.value(0)
	}
	return v
}

func (m maker) changedArray(v []any, levels int) any {
	out := []any{}
	for _, e := range v {
		switch m.IntN(10) {
		case 0: // removed
		case 1:
			out = append(out, m.value(levels-1), e)
		case 2, 3:
			out = append(out, m.changed(e, levels-1))
		default:
			out = append(out, e)
		}
	}
	if m.IntN(6) == 0 {
		m.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	}
	if m.IntN(4) == 0 {
		out = append(out, m.value(levels-1))
	}
	return out
}

func (m maker) changedObject(v *object, levels int) any {
	out := &object{}
	order := make([]int, len(v.keys))
	for i := range order {
		order[i] = i
	}
	if m.IntN(6) == 0 {
		m.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	for _, i := range order {
		switch m.IntN(10) {
		case 0: // removed
		case 1:
			out.set(m.key(), m.value(levels-1))
			out.set(v.keys[i], v.values[i])
		case 2, 3:
			out.set(v.keys[i], m.changed(v.values[i], levels-1))
		default:
			out.set(v.keys[i], v.values[i])
		}
	}
	return out
}

// spaced returns JSON text with white space put between its tokens.
func (m maker) spaced(text string) string {
	var out []byte
	inString := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		if !inString && m.IntN(3) == 0 && (c == '{' || c == '}' || c == '[' || c == ']' || c == ',' || c == ':') {
			out = append(out, m.pick([]string{" ", "\n", "\t", "\r\n", "  "})...)
		}
		out = append(out, c)
		if inString && c == '\\' {
			i++
			out = append(out, text[i])
			continue
		}
		if c == '"' {
			inString = !inString
		}
		if !inString && m.IntN(3) == 0 && (c == '{' || c == '[' || c == ',' || c == ':') {
			out = append(out, ' ')
		}
	}
	return string(out)
}
