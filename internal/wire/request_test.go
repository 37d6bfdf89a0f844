package wire

import (
	"bufio"
	"bytes"
	"maps"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

const usualRequest = "GET /v1/topics/7?X-Sd-Subscriber-Key=k HTTP/1.1\r\nHost: example.com:6080\r\nAccept: text/event-stream\r\nx-Test:a\r\nX-TEST: b \r\n\r\n"

// parse reads a whole request.
func parse(head string) *http.Request {
	var r Request
	if !r.Parse(head) {
		return nil
	}
	return r.HTTP()
}

func TestAUsualRequestIsRead(t *testing.T) {
	r := parse(usualRequest)
	if r == nil {
		t.Fatal("it was not understood")
	}
	want := http.Header{"Accept": {"text/event-stream"}, "X-Test": {"a", "b"}}
	if r.Host != "example.com:6080" || r.RequestURI != "/v1/topics/7?X-Sd-Subscriber-Key=k" || !reflect.DeepEqual(r.Header, want) {
		t.Errorf("%q %q %v", r.Host, r.RequestURI, r.Header)
	}
}

func TestReadingAUsualRequestMakesNothing(t *testing.T) {
	var r Request
	read := func() {
		if !r.Parse(usualRequest) || r.Get("accept") != "text/event-stream" || len(r.Values("Accept")) != 1 || r.Values("Nothing") != nil {
			t.Fatal("it was not understood")
		}
	}
	read()
	if n := testing.AllocsPerRun(100, read); n > 0 {
		t.Errorf("%v pieces of memory", n)
	}
	if got := r.Values("X-test"); !reflect.DeepEqual(got, []string{"a", "b"}) {
		t.Error(got)
	}
}

func TestARequestWithABodyHasItsLength(t *testing.T) {
	for _, method := range []string{"POST", "PUT", "PATCH"} {
		var r Request
		if !r.Parse(method+" /a HTTP/1.1\r\nHost: x\r\nContent-Length: 12\r\n\r\n") || r.Length != 12 || r.Method != method || r.HTTP().ContentLength != 12 {
			t.Errorf("%s is %+v", method, r)
		}
	}
}

func TestARequestSaysWhetherItIsTheLast(t *testing.T) {
	for field, want := range map[string]bool{"Connection: close": true, "connection: Close": true, "Connection: keep-alive\r\nConnection: close": true, "Connection: Keep-Alive": false} {
		var r Request
		if !r.Parse("GET / HTTP/1.1\r\nHost: x\r\n"+field+"\r\n\r\n") || r.IsLast != want || r.HTTP().Close != want {
			t.Errorf("%s is %+v", field, r)
		}
	}
}

func TestOtherRequestsAreLeftToNetHTTP(t *testing.T) {
	for name, head := range map[string]string{
		"nothing":                "",
		"a method of its own":    "PURGE / HTTP/1.1\r\nHost: x\r\n\r\n",
		"a method that tunnels":  "CONNECT / HTTP/1.1\r\nHost: x\r\n\r\n",
		"a body without length":  "POST / HTTP/1.1\r\nHost: x\r\n\r\n",
		"two lengths":            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
		"a length with a sign":   "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +1\r\n\r\n",
		"a length with a zero":   "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 01\r\n\r\n",
		"an empty length":        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length:\r\n\r\n",
		"a list of lengths":      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1, 1\r\n\r\n",
		"an absurd length":       "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n",
		"not complete":           "GET / HTTP/1.1\r\nHost: x\r\n",
		"more after it":          "GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"a body for GET":         "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n",
		"an empty body for GET":  "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
		"a chunked body":         "GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
		"a chunked body in POST": "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
		"a length and chunks":    "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
		"an upgrade":             "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
		"a named field":          "GET / HTTP/1.1\r\nHost: x\r\nConnection: close, X-A\r\n\r\n",
		"trailers wanted":        "GET / HTTP/1.1\r\nHost: x\r\nTE: trailers\r\n\r\n",
		"two hosts":              "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
		"an empty host":          "GET / HTTP/1.1\r\nHost:\r\n\r\n",
		"an odd host":            "GET / HTTP/1.1\r\nHost: a'b\r\n\r\n",
		"no host":                "GET / HTTP/1.1\r\nAccept: */*\r\n\r\n",
		"HTTP/1.0":               "GET / HTTP/1.0\r\nHost: x\r\n\r\n",
		"absolute form":          "GET http://x/ HTTP/1.1\r\nHost: x\r\n\r\n",
		"an asterisk":            "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
		"a folded line":          "GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n",
		"a space in a name":      "GET / HTTP/1.1\r\nHost: x\r\nA : b\r\n\r\n",
		"no name":                "GET / HTTP/1.1\r\nHost: x\r\n: b\r\n\r\n",
		"a bare line feed":       "GET / HTTP/1.1\nHost: x\r\n\r\n",
		"a bare carriage return": "GET / HTTP/1.1\r\nHost: x\r\nA: b\rc\r\n\r\n",
		"a control character":    "GET / HTTP/1.1\r\nHost: x\r\nA: b\x00\r\n\r\n",
		"a space in the path":    "GET /a b HTTP/1.1\r\nHost: x\r\n\r\n",
		"two spaces":             "GET  / HTTP/1.1\r\nHost: x\r\n\r\n",
		"HTTP/2":                 "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"TLS":                    "\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
		"a bad escape":           "GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n",
		"a continue":             "GET / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n\r\n",
		"bytes outside ASCII":    "GET /é HTTP/1.1\r\nHost: x\r\n\r\n",
		"a line without colon":   "GET / HTTP/1.1\r\nHost: x\r\nfoo\r\n\r\n",
		"too many fields":        "GET / HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("A: b\r\n", MaxFields+1) + "\r\n",
		"a long head":            "GET / HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("b", MaxHead) + "\r\n\r\n",
	} {
		if parse(head) != nil {
			t.Errorf("%s is understood: %q", name, head)
		}
	}
}

func TestATargetThatIsNoURLCanBeReadAsItIs(t *testing.T) {
	var r Request
	if !r.Parse("GET /%zz?a=%zz HTTP/1.1\r\nHost: x\r\nA: b\r\n\r\n") {
		t.Fatal("it was not understood")
	}
	h := r.RawHTTP()
	if r.HTTP() != nil || h.URL.Path != "/%zz" || h.URL.RawQuery != "a=%zz" || h.Header.Get("A") != "b" {
		t.Errorf("%+v", h)
	}
}

// FuzzRequest: whatever is read here, net/http reads in the same way.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		usualRequest,
		"00 ",
		"GET //a?%zz&b=%20#c HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
		"GET /a%2fb? HTTP/1.1\r\nHost: a\r\nA-: \t\r\n\r\n",
		"HEAD /~a/../b HTTP/1.1\r\nhost: [::1]:80\r\nPragma: no-cache\r\n\r\n",
		"POST /a HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\nConnection: Keep-Alive\r\nCookie: a=1\r\ncookie: b=ä\r\n\r\n",
		"PUT /a HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nPragma: no-cache\r\nCache-Control: x\r\n\r\n",
		"OPTIONS / HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\nConnection: close\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, head []byte) {
		var r Request
		if !r.Parse(string(head)) {
			return
		}
		got := r.HTTP()
		if got == nil {
			return
		}
		want, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(head)))
		if err != nil {
			t.Fatalf("net/http refuses it: %v", err)
		}
		if got.Method != want.Method || got.RequestURI != want.RequestURI || got.Host != want.Host || got.ContentLength != want.ContentLength ||
			got.Close != want.Close || got.Proto != want.Proto || len(want.TransferEncoding) > 0 || !reflect.DeepEqual(got.URL, want.URL) {
			t.Errorf("%+v; net/http: %+v", got, want)
		}
		header := maps.Clone(got.Header)
		if _, given := want.Header["Connection"]; !given {
			delete(header, "Connection") // which it takes out where it has acted on it
		}
		if !reflect.DeepEqual(header, want.Header) {
			t.Errorf("%q; net/http: %q", header, want.Header)
		}
		delete(header, "Cache-Control") // which both add to Pragma: no-cache
		for name, values := range header {
			if name = strings.ToLower(name); !reflect.DeepEqual(r.Values(name), values) || r.Get(name) != values[0] {
				t.Errorf("%s: %q; a request has %q", name, r.Values(name), values)
			}
		}
	})
}

func BenchmarkRequest(b *testing.B) {
	const text = "GET /echo/some/path?with=query HTTP/1.1\r\nHost: localhost:8000\r\nUser-Agent: wrk/4.1\r\nAccept: */*\r\napikey: 0f8fad5bd9cb469f\r\n\r\n"
	var r Request
	for b.Loop() {
		if !r.Parse(text) {
			b.Fatal("not understood")
		}
	}
}
