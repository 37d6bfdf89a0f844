package plain

import (
	"bufio"
	"bytes"
	"maps"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

const plainText = "GET /v1/topics/7?X-Sd-Subscriber-Key=k HTTP/1.1\r\nHost: example.com:6080\r\nAccept: text/event-stream\r\nx-Test:a\r\nX-TEST: b \r\n\r\n"

// parse reads a whole request.
func parse(head []byte) *http.Request {
	var h Head
	if !h.Read(string(head)) {
		return nil
	}
	return h.Request()
}

func TestAPlainRequestIsRead(t *testing.T) {
	r := parse([]byte(plainText))
	if r == nil {
		t.Fatal("it was not understood")
	}
	want := http.Header{"Accept": {"text/event-stream"}, "X-Test": {"a", "b"}}
	if r.Host != "example.com:6080" || r.RequestURI != "/v1/topics/7?X-Sd-Subscriber-Key=k" || !reflect.DeepEqual(r.Header, want) {
		t.Errorf("%q %q %v", r.Host, r.RequestURI, r.Header)
	}
}

func TestReadingAPlainRequestMakesNothing(t *testing.T) {
	var h Head
	read := func() {
		if !h.Read(plainText) || h.Get("accept") != "text/event-stream" || len(h.Values("Accept")) != 1 || h.Values("Nothing") != nil {
			t.Fatal("it was not understood")
		}
	}
	read()
	if n := testing.AllocsPerRun(100, read); n > 0 {
		t.Errorf("%v pieces of memory", n)
	}
	if got := h.Values("X-test"); !reflect.DeepEqual(got, []string{"a", "b"}) {
		t.Error(got)
	}
}

func TestWhatIsNotPlainIsLeftToNetHTTP(t *testing.T) {
	for name, head := range map[string]string{
		"nothing":              "",
		"another method":       "POST / HTTP/1.1\r\nHost: x\r\n\r\n",
		"not complete":         "GET / HTTP/1.1\r\nHost: x\r\n",
		"more after it":        "GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"a body":               "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n",
		"a chunked body":       "GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
		"an upgrade":           "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
		"two hosts":            "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
		"no host":              "GET / HTTP/1.1\r\nAccept: */*\r\n\r\n",
		"HTTP/1.0":             "GET / HTTP/1.0\r\nHost: x\r\n\r\n",
		"absolute form":        "GET http://x/ HTTP/1.1\r\nHost: x\r\n\r\n",
		"a folded line":        "GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n",
		"a space in a name":    "GET / HTTP/1.1\r\nHost: x\r\nA : b\r\n\r\n",
		"a bare line feed":     "GET / HTTP/1.1\nHost: x\r\n\r\n",
		"a control character":  "GET / HTTP/1.1\r\nHost: x\r\nA: b\x00\r\n\r\n",
		"a space in the path":  "GET /a b HTTP/1.1\r\nHost: x\r\n\r\n",
		"HTTP/2":               "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"TLS":                  "\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
		"a bad escape":         "GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n",
		"a continue":           "GET / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n\r\n",
		"bytes outside ASCII":  "GET /é HTTP/1.1\r\nHost: x\r\n\r\n",
		"a line without colon": "GET / HTTP/1.1\r\nHost: x\r\nfoo\r\n\r\n",
	} {
		if parse([]byte(head)) != nil {
			t.Errorf("%s is taken for a plain request: %q", name, head)
		}
	}
}

// FuzzHead: whatever is read here, net/http reads in the same way.
func FuzzHead(f *testing.F) {
	f.Add([]byte(plainText))
	f.Add([]byte("GET //a?%zz&b=%20#c HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))
	f.Add([]byte("GET /a%2fb? HTTP/1.1\r\nHost:\r\nA-: \t\r\n\r\n"))
	f.Fuzz(func(t *testing.T, head []byte) {
		got := parse(head)
		if got == nil {
			return
		}
		want, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(head)))
		if err != nil {
			t.Fatalf("net/http refuses it: %v", err)
		}
		delete(want.Header, "Connection") // which it takes out, having acted on it
		header := maps.Clone(got.Header)
		delete(header, "Connection")
		delete(want.Header, "Cache-Control") // which it adds to Pragma: no-cache
		delete(header, "Cache-Control")
		if got.RequestURI != want.RequestURI || got.Host != want.Host || !reflect.DeepEqual(header, want.Header) {
			t.Errorf("%q %q %v; net/http: %q %q %v", got.RequestURI, got.Host, got.Header, want.RequestURI, want.Host, want.Header)
		}
		if got.URL.Path != want.URL.Path || got.URL.RawQuery != want.URL.RawQuery || got.URL.RawPath != want.URL.RawPath {
			t.Errorf("%#v; net/http: %#v", got.URL, want.URL)
		}
		var h Head
		h.Read(string(head))
		for name, values := range got.Header {
			if name = strings.ToLower(name); !reflect.DeepEqual(h.Values(name), values) || h.Get(name) != values[0] {
				t.Errorf("%s: %q; a request has %q", name, h.Values(name), values)
			}
		}
		if strings.ContainsAny(got.RequestURI, "\r\n ") {
			t.Errorf("request target %q", got.RequestURI)
		}
	})
}
