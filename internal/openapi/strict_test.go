package openapi

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
)

func TestWholeNumbersAreReadInEverySpelling(t *testing.T) {
	for spelled, want := range map[string]int64{
		"0": 0, "-0": 0, "-0.0": 0, "7": 7, "7.0": 7, "7.000e0": 7, "7e2": 700, "70E-1": 7, "0e999999999": 0,
		"9223372036854775807": math.MaxInt64, "9223372036854775808": math.MaxInt64, "1e400": math.MaxInt64, "1e999999999999": math.MaxInt64,
		"-9223372036854775808": math.MinInt64, "-9223372036854775809": math.MinInt64, "-1e400": math.MinInt64,
		"9007199254740993": 9007199254740993,
	} {
		var v struct{ N int64 }
		if err := decode([]byte(`{"N":`+spelled+`}`), &v); err != nil || v.N != want {
			t.Errorf("%s was read as %d, %v; want %d", spelled, v.N, err, want)
		}
	}
	for _, spelled := range []string{"0.5", "1e-1", "1e-400", "-1e-999999999", "1.0000001"} {
		var v struct{ N int64 }
		if err := decode([]byte(`{"N":`+spelled+`}`), &v); err == nil {
			t.Errorf("%s was read as %d", spelled, v.N)
		}
	}
}

func TestNumbersThatAreNotWholeStayAsWritten(t *testing.T) {
	var v any
	if err := decode([]byte(`[1.10, {"a": 1.5e-7}]`), &v); err != nil {
		t.Fatal(err)
	}
	list := v.([]any)
	if list[0] != json.Number("1.10") || list[1].(map[string]any)["a"] != json.Number("1.5e-7") {
		t.Errorf("got %v", v)
	}
}

func TestWhatTwoParsersCouldReadDifferentlyIsRefused(t *testing.T) {
	for _, text := range []string{`{"a":1,"a":2}`, `{"a":{"b":1,"b":1}}`, `{} {}`, "{\"a\":\"\xff\"}", `{"a":1,}`, `{a:1}`, "", " ", "\x00",
		strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1)} {
		var v any
		if err := decode([]byte(text), &v); err == nil {
			t.Errorf("%q was read as %v", text, v)
		}
	}
}

func TestAnErrorNeverRepeatsWhatItRefuses(t *testing.T) {
	var v struct {
		Password string `json:"password"`
		N        int    `json:"n"`
		B        bool   `json:"b"`
		O        struct {
			X string `json:"x"`
		} `json:"o"`
		L []string `json:"l"`
	}
	for text, want := range map[string]string{
		`{"password":"hunter2`: "is not valid JSON", `{"password":123454321}`: "password", `{"n":"hunter2"}`: "an integer",
		`{"b":"hunter2"}`: "a boolean", `{"o":"hunter2"}`: "an object", `{"l":"hunter2"}`: "an array", `{"password":hunter2}`: "is not valid JSON",
	} {
		err := decode([]byte(text), &v)
		if err == nil || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "123454321") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":1e400}`, `[1,-0.0,"\ud83e\uddab"]`, `{"a":{"a":null}}`, "\xff"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var v any
		err := decode(text, &v)
		if err == nil && !json.Valid(text) {
			t.Errorf("%q is no JSON, and was read", text)
		}
		if err == nil {
			if _, err := json.Marshal(v); err != nil {
				t.Errorf("%q: %v", text, err)
			}
		}
	})
}

func TestAnErrorOfTheLibraryIsToldInOurWords(t *testing.T) {
	for _, test := range []struct {
		status  int
		message string
		want    int
		text    string
	}{
		{400, "request body is required", 400, "A JSON body is required"},
		{413, "request body is too large limit=5 bytes", 413, "The body is too large"},
		{408, "request body read timeout", 408, "The body took too long to arrive"},
		{500, "cannot read request body", 400, "The body could not be read to its end"},
		{422, "validation failed", 400, "The request is not valid"},
		{415, "unknown content type", 415, "The body must be JSON: send Content-Type: application/json"},
		{500, "unexpected error occurred", 500, "Something went wrong on our side; the server's log has the details"},
	} {
		got := newError(test.status, test.message, errors.New("secret cause"))
		if got.GetStatus() != test.want || got.Error() != test.text {
			t.Errorf("%d %s: %d %s", test.status, test.message, got.GetStatus(), got.Error())
		}
	}
}

func TestHalfASurrogatePairIsNoCharacter(t *testing.T) {
	for text, want := range map[string]bool{
		`"plain"`: false, `"\\ud800"`: false, `"\ud83d\ude00"`: false, `"\u00e9 \n \\"`: false,
		`"\ud800"`: true, `"\udc00"`: true, `"\ud800x"`: true, `"\ud800\u0041"`: true, `"\ud83d\ude00\ud83d"`: true, `"\ud800\n"`: true,
	} {
		if got := hasLoneSurrogate([]byte(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// TestAShortBodyIsReadOncePerCall: the library reads each body twice, and what it costs is paid by every management call. Six times would
// take twice as many allocations.
func TestAShortBodyIsReadOncePerCall(t *testing.T) {
	body := []byte(`{"name":"ab"}`)
	allocs := testing.AllocsPerRun(100, func() {
		var tree any
		var v struct {
			Name *string `json:"name"`
		}
		if err := errors.Join(decode(body, &tree), decode(body, &v)); err != nil || *v.Name != "ab" {
			t.Fatal(err)
		}
	})
	t.Logf("%v allocations", allocs)
	if allocs > 25 { // the race detector empties pools at times
		t.Errorf("%v allocations", allocs)
	}
}

func BenchmarkDecode(b *testing.B) {
	body := []byte(`{"name":"ab"}`)
	b.ReportAllocs()
	for b.Loop() {
		var tree any
		var v struct {
			Name *string `json:"name"`
		}
		if err := errors.Join(decode(body, &tree), decode(body, &v)); err != nil {
			b.Fatal(err)
		}
	}
}
