package jsonpatch

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestWhatIsNotStrictJSONIsRefusedWithItsPosition(t *testing.T) {
	deep := strings.Repeat("[", 513) + strings.Repeat("]", 513)
	tests := []struct {
		name, src    string
		offset, line int
		column       int
		msg          string
	}{
		{"nothing", "", 0, 1, 1, "the input is empty"},
		{"only white space", " \n ", 3, 2, 2, "the input is empty"},
		{"a duplicate key", `{"a":1,"b":2,"a":3}`, 13, 1, 14, `duplicate key "a"`},
		{"a duplicate key in another spelling", `{"a":1,"\u0061":3}`, 7, 1, 8, `duplicate key "a"`},
		{"a duplicate key among many", manyKeys(20, `"k3":1`), 151, 1, 152, `duplicate key "k3"`},
		{"a duplicate key after white space", "{\n \"é\": 1,\n \"é\": 2\n}", 13, 3, 2, `duplicate key "é"`},
		{"trailing data", `[1] [2]`, 4, 1, 5, `unexpected character '[' after the document`},
		{"two values joined by white space", "[1 2]", 3, 1, 4, `unexpected character '2' after an array element; want a comma or ']'`},
		{"a number with a leading zero", "[01]", 2, 1, 3, `unexpected character '1' in a number`},
		{"a bare minus", "-", 1, 1, 2, "unexpected end of input"},
		{"a plus sign", "+1", 0, 1, 1, `unexpected character '+' where a value must begin`},
		{"a fraction without digits", "1.", 2, 1, 3, "unexpected end of input"},
		{"an exponent without digits", "[1e]", 3, 1, 4, `unexpected character ']' in a number`},
		{"a number that begins with a point", ".5", 0, 1, 1, `unexpected character '.' where a value must begin`},
		{"NaN", "NaN", 0, 1, 1, `unexpected character 'N' where a value must begin`},
		{"half a literal", "[tru]", 1, 1, 2, `unexpected character 't' where a value must begin`},
		{"too many letters", "nulls", 4, 1, 5, `unexpected character 's' after the document`},
		{"a string without end", `["abc`, 5, 1, 6, "unexpected end of input in a string"},
		{"a raw line feed in a string", "\"a\nb\"", 2, 1, 3, "control character U+000A in a string; it must be escaped"},
		{"an unknown escape", `"\x"`, 1, 1, 2, "invalid escape sequence in a string"},
		{"a short escape", `"\u12"`, 1, 1, 2, "invalid escape sequence in a string"},
		{"invalid UTF-8", "\"é\xff\"", 3, 1, 3, "invalid UTF-8 in a string"},
		{"an overlong encoding", "\"\xc0\xaf\"", 1, 1, 2, "invalid UTF-8 in a string"},
		{"a raw surrogate", "\"\xed\xa0\x80\"", 1, 1, 2, "invalid UTF-8 in a string"},
		{"invalid UTF-8 outside strings", "[\xff]", 1, 1, 2, "invalid UTF-8 where a value must begin"},
		{"a byte order mark", "\ufeff{}", 0, 1, 1, `unexpected character '\ufeff' where a value must begin`},
		{"a missing comma", `{"a":1"b":2}`, 6, 1, 7, `unexpected character '"' after an object member; want a comma or '}'`},
		{"a missing colon", "{\"a\"\n1}", 5, 2, 1, `unexpected character '1' after an object key; want ':'`},
		{"a key that is no string", `{1:2}`, 1, 1, 2, `unexpected character '1' where an object key must begin`},
		{"a comma too much in an array", `[1,]`, 3, 1, 4, `unexpected character ']' where a value must begin`},
		{"a comma too much in an object", `{"a":1,}`, 7, 1, 8, `unexpected character '}' where an object key must begin`},
		{"a comma at the beginning", `[,1]`, 1, 1, 2, `unexpected character ',' where a value must begin`},
		{"the wrong bracket", `[1}`, 2, 1, 3, `unexpected character '}' after an array element; want a comma or ']'`},
		{"a bracket too few", `{"a":[1`, 7, 1, 8, "unexpected end of input"},
		{"nesting over the limit", deep, 512, 1, 513, "nesting deeper than 512"},
		{"nesting over the limit, spread out", " " + strings.Repeat("[ ", 513), 1025, 1, 1026, "nesting deeper than 512"},
		{"the first of two errors", "[\n  01,\n  x]", 5, 2, 4, `unexpected character '1' in a number`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Parse([]byte(test.src), Limits{})
			want := &SyntaxError{test.offset, test.line, test.column, test.msg}
			if !reflect.DeepEqual(err, want) {
				t.Fatalf("got  %#v\nwant %#v", err, want)
			}
		})
	}
}

// manyKeys returns an object with n keys of its own and one more member.
func manyKeys(n int, last string) string {
	var b strings.Builder
	b.WriteByte('{')
	for i := range n {
		b.WriteString(`"k` + string(rune('0'+i/10)) + string(rune('0'+i%10)) + `":1,`)
	}
	return strings.ReplaceAll(b.String(), `"k0`, `"k`) + last + "}"
}

func TestWhatIsStrictJSONIsKeptAsWritten(t *testing.T) {
	for _, test := range []struct{ name, src, want string }{
		{"white space outside strings goes", " { \"a b\" : [ 1 , 2 ] ,\r\n\t\"c\" : \" \" } \n", `{"a b":[1,2],"c":" "}`},
		{"numbers stay", `[1.0,1e0,-0,1E+2,12345678901234567890.50]`, `[1.0,1e0,-0,1E+2,12345678901234567890.50]`},
		{"escapes stay", `["\u0041\/\n\ud83d\ude00"]`, `["\u0041\/\n\ud83d\ude00"]`},
		{"key order stays", `{"b":1,"a":2}`, `{"b":1,"a":2}`},
		{"an escaped lone surrogate stays", `"\ud800"`, `"\ud800"`},
		{"an escaped NUL stays", `"\u0000"`, `"\u0000"`},
		{"a line separator stays", "\"\u2028\"", "\"\u2028\""},
		{"white space and quotes inside strings stay", `[ "a \" b" , "\\" ]`, `["a \" b","\\"]`},
		{"a scalar is a document", " 5 ", "5"},
		{"512 levels are allowed", strings.Repeat("[", 512) + strings.Repeat("]", 512), strings.Repeat("[", 512) + strings.Repeat("]", 512)},
		{"keys that differ only as lone surrogates are two", `{"\ud800":1,"\ud801":2,"\ufffd":3}`, `{"\ud800":1,"\ud801":2,"\ufffd":3}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := mustParse(t, test.src)
			if string(d.Bytes()) != test.want {
				t.Fatalf("got %s", d.Bytes())
			}
		})
	}
}

func TestACompactInputIsKeptWithoutCopying(t *testing.T) {
	src := []byte(`{"a":[1,2]}`)
	d, err := Parse(src, Limits{})
	if err != nil || &d.Bytes()[0] != &src[0] {
		t.Fatalf("the text was copied (%v)", err)
	}
}

func TestAByteIdenticalPublicationIsNotParsed(t *testing.T) {
	prev := mustParse(t, `{"a":[1,2]}`)
	for _, src := range []string{`{"a":[1,2]}`, "{\"a\":[1,2]}\n", `{ "a": [1, 2] }`} {
		d, change, err := Next(prev, []byte(src), Limits{})
		if err != nil || d != prev || change.Kind != Same {
			t.Fatalf("%q: %v, %v", src, change, err)
		}
	}
	src := bytes.Clone(prev.Bytes())
	if n := testing.AllocsPerRun(100, func() { _, _, _ = Next(prev, src, Limits{}) }); n > 0 {
		t.Fatalf("%v allocations", n)
	}
}

func TestLimitsAreTheCallers(t *testing.T) {
	var syntax *SyntaxError
	_, err := Parse([]byte(`[[[1]]]`), Limits{MaxDepth: 2})
	if !errors.As(err, &syntax) || syntax.Msg != "nesting deeper than 2" || syntax.Offset != 2 {
		t.Fatal(err)
	}
	if _, err := Parse([]byte(`[ 1, 2, 3 ]`), Limits{MaxBytes: 7}); err != nil {
		t.Fatalf("white space counts: %v", err)
	}
	if _, err = Parse([]byte(`[1,2,3,4]`), Limits{MaxBytes: 8}); !errors.As(err, &syntax) || syntax.Msg != "document longer than 8 bytes" {
		t.Fatal(err)
	}
}

func TestAPreviousVersionWithOtherLimitsVouchesForNothing(t *testing.T) {
	prev := mustParse(t, `[[[1]],2]`)
	for _, src := range []string{`[[[1]],2]`, `[[[1]],3]`, ` [[[1]], 2]`} {
		if _, err := ParseNext(prev, []byte(src), Limits{MaxDepth: 2}); err == nil {
			t.Errorf("%s is accepted", src)
		}
		if _, err := ParseNext(prev, []byte(src), Limits{MaxBytes: 8}); err == nil {
			t.Errorf("%s is accepted", src)
		}
	}
}

func TestEqualityIsJSONEquality(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{`1`, `1.0`, true}, {`1`, `1e0`, true}, {`1`, `10e-1`, true}, {`100`, `1E2`, true}, {`0`, `-0`, true}, {`0`, `0e99`, true}, {`0.0`, `-0.00`, true},
		{`1`, `-1`, false}, {`9007199254740993`, `9007199254740992`, false}, {`9007199254740993`, `9007199254740993.0`, true},
		{`1e400`, `10e399`, true}, {`1e400`, `1e401`, false}, {`1e999999999`, `1e999999999`, true}, {`1e999999999`, `10e999999998`, true},
		{`1e99999999999999999999999`, `10e99999999999999999999998`, true}, {`1e99999999999999999999999`, `1e99999999999999999999998`, false},
		{`1e-99999999999999999999999`, `0.1e-99999999999999999999998`, true}, {`1e10000000000000000000000`, `10e9999999999999999999999`, true},
		{`1e-10000000000000000000000`, `0.1e-9999999999999999999999`, true}, {`0.1e10000000000000000000000`, `1e9999999999999999999999`, true},
		{`123456789012345678901234567890`, `123456789012345678901234567890.000`, true}, {`123456789012345678901234567890`, `123456789012345678901234567891`, false},
		{`1`, `1.0000000000000000000000000000000`, true}, {`0.1`, `0.10000000000000000555`, false},
		{`"a"`, `"\u0061"`, true}, {`"/"`, `"\/"`, true}, {`"😀"`, `"\ud83d\ude00"`, true}, {`"\ud800"`, `"\ud800"`, true}, {`"\ud800"`, `"\uD800"`, true},
		{`"\ud800"`, `"\ud801"`, false}, {`"\ud800"`, `"\ufffd"`, false}, {`"\ud83d\u0041"`, `"\ud83dA"`, true},
		{`"1"`, `1`, false}, {`null`, `false`, false}, {`true`, `false`, false}, {`{}`, `[]`, false},
		{`{"a":1,"b":2}`, `{"b":2.0,"a":1}`, true}, {`{"a":1}`, `{"\u0061":1}`, true}, {`{"a":1}`, `{"a":1,"b":2}`, false}, {`{"a":1}`, `{"b":1}`, false},
		{`[1,2]`, `[2,1]`, false}, {`[1,2]`, `[1.0,2.0]`, true}, {`[[1]]`, `[[1],[]]`, false},
		{`{"a":{"x":1,"y":[1,2]},"b":0}`, `{"b":0,"a":{"y":[1,2e0],"x":1}}`, true},
	} {
		a, b := mustParse(t, test.a), mustParse(t, test.b)
		if Equal(a, b) != test.want || Equal(b, a) != test.want {
			t.Errorf("Equal(%s, %s) is not %v", test.a, test.b, test.want)
		}
		if same := a.tape[0].hash == b.tape[0].hash; same != test.want {
			t.Errorf("hashes of %s and %s: equal is %v", test.a, test.b, same)
		}
	}
}

func TestADecimalNamesANumberByItsValue(t *testing.T) {
	for src, want := range map[string]string{
		"1": "1", "1.0": "1", "1e0": "1", "-0": "0", "100": "100", "1e2": "100", "1.50": "1.5", "15e-1": "1.5", "-0.001": "-0.001", "1e-3": "0.001",
		"12345678901234567890123": "12345678901234567890123", "1e999999999": "1e999999999", "-10e99999999999999999999": "-1e100000000000000000000",
		"1e-999999999": "1e-999999999", "0e5": "0",
	} {
		if got := mustParse(t, src).Root().Decimal(); got != want {
			t.Errorf("%s is named %s, not %s", src, got, want)
		}
	}
}

func TestHugeExponentsCostNothing(t *testing.T) {
	long := "1e" + strings.Repeat("9", 1<<20)
	a, b := mustParse(t, "["+long+"]"), mustParse(t, "[10e"+strings.Repeat("9", 1<<20-1)+"8]")
	if !Equal(a, b) {
		t.Fatal("not equal")
	}
}

func TestAMemberAsADocumentIsLikeAnyOther(t *testing.T) {
	d := mustParse(t, `{"a":{"b":[1,"x"]},"\u0062":"\u0041","n":1.0,"t":true}`)
	for v := range d.Root().Elements() {
		checkTape(t, v.Document())
	}
	v, ok := d.Root().Member("b")
	if !ok || v.Text() != "A" {
		t.Fatal("no member by its unescaped name")
	}
	if _, ok := v.Member("x"); ok {
		t.Fatal("a string has a member")
	}
}

// parseSeeds are inputs that are, or nearly are, JSON.
var parseSeeds = []string{
	``, ` `, `{}`, `[]`, `[1 2]`, `{"a":1,"a":2}`, `{"a":{"b":[1,2,{"c":null}]},"d":"e"}`, "[1,\n2]", `"\ud800\udc00\ud800"`, `[01]`, `[1e5,-0.0,1E-400]`,
	`{"\u0061":1,"a":2}`, "\"\xed\xa0\x80\"", `[true,false,null]`, `[[[[[[]]]]]]`, `{"a" :1}`, `"` + "\u2028" + `"`, `[1,]`, `{,}`, "\ufeff1", `nul`, `"abc`, `"\`,
	`{"k0":0,"k1":1,"k2":2,"k3":3,"k4":4,"k5":5,"k6":6,"k7":7,"k8":8,"k9":9,"k5":1}`,
}

// FuzzParse holds Parse to the reference, and the guided parse to the plain one.
func FuzzParse(f *testing.F) {
	for i, s := range parseSeeds {
		f.Add([]byte(s), []byte(parseSeeds[(i+6)%len(parseSeeds)]))
		f.Add([]byte(s), []byte(s))
	}
	f.Fuzz(func(t *testing.T, src, prev []byte) {
		limits := Limits{MaxDepth: 32}
		d, err := Parse(src, limits)
		_, refErr := reference(src, 32)
		if (err == nil) != (refErr == nil) {
			t.Fatalf("Parse(%q): %v, the reference: %v", src, err, refErr)
		}
		checkGuided(t, prev, src, limits, d, err)
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := json.Compact(&b, src); err != nil || b.String() != string(d.text) {
			t.Fatalf("text is %q, not %q", d.text, b.Bytes())
		}
		checkWalk(t, d, place{})
	})
}

// checkGuided checks that a guided parse gives what the plain one gave.
func checkGuided(t *testing.T, prev, src []byte, limits Limits, d *Document, plainErr error) {
	old, err := Parse(prev, limits)
	if err != nil {
		return
	}
	guided, err := ParseNext(old, src, limits)
	if !reflect.DeepEqual(err, plainErr) {
		t.Fatalf("guided by %q: %v, not %v", prev, err, plainErr)
	}
	if err == nil && (string(guided.text) != string(d.text) || !reflect.DeepEqual(guided.tape, d.tape)) {
		t.Fatalf("guided by %q: another document", prev)
	}
}

// checkWalk checks that the tape describes the text.
func checkWalk(t *testing.T, d *Document, p place) {
	n := d.node(p)
	alone := mustParse(t, string(d.value(p)))
	if alone.tape[0].size != n.size || alone.tape[0].span != n.span || alone.tape[0].kind() != n.kind() {
		t.Fatalf("node %+v describes %s", *n, d.value(p))
	}
	for _, c := range d.children(nil, p) {
		checkWalk(t, d, c)
	}
}
