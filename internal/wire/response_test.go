package wire

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

var responseSeeds = []string{
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 404\r\ncontent-type:text/plain\r\nX-A: 1\r\nx-a: 2\r\nConnection: Keep-Alive\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nX: a\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 103 Early Hints\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nPragma: no-cache\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\nok",
	"HTTP/1.1 200 OK\r\n: x\r\nContent-Length: 2\r\n\r\nok",
	"\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
}

// FuzzResponse: what is taken as it lies there is what net/http would have read.
func FuzzResponse(f *testing.F) {
	for _, s := range responseSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		var r Response
		n := r.Parse(sent)
		if n == 0 {
			return
		}
		rest := bufio.NewReader(bytes.NewReader(sent))
		resp, err := http.ReadResponse(rest, nil)
		if err != nil {
			t.Fatalf("%q was taken, and is refused by net/http: %v", sent, err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.Close || resp.StatusCode != r.Status || !bytes.Equal(body, r.Body) {
			t.Fatalf("%q gives %d %q, and %d %q (%v, close %t) by net/http", sent, r.Status, r.Body, resp.StatusCode, body, err, resp.Close)
		}
		if left, _ := io.ReadAll(rest); !bytes.Equal(left, sent[n:]) {
			t.Fatalf("%q leaves %q, and %q by net/http", sent, sent[n:], left)
		}
		got := http.Header{}
		for _, f := range r.Fields {
			got[f.Name] = append(got[f.Name], f.Value)
		}
		for name := range resp.Header {
			if IsHopByHop(name) {
				delete(resp.Header, name)
			}
		}
		if !reflect.DeepEqual(got, resp.Header) {
			t.Fatalf("%q gives %v, and %v by net/http", sent, got, resp.Header)
		}
	})
}

// Most responses must be short, or it is for nothing.
func TestUsualResponsesAreShort(t *testing.T) {
	for _, text := range []string{responseSeeds[0], responseSeeds[1],
		"HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Type: application/json\r\nContent-Length: 512\r\nConnection: keep-alive\r\nETag: \"x\"\r\n\r\n" + strings.Repeat("x", 512),
	} {
		if n := new(Response).Parse([]byte(text)); n != len(text) {
			t.Errorf("%q is left to net/http", text)
		}
	}
}

func BenchmarkResponse(b *testing.B) {
	text := []byte("HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Sun, 15 Nov 2026 21:22:08 GMT\r\nContent-Type: application/json\r\nContent-Length: 432\r\nConnection: keep-alive\r\n\r\n" + strings.Repeat("x", 432))
	var r Response
	for b.Loop() {
		if r.Parse(text) == 0 {
			b.Fatal("not short")
		}
	}
}
