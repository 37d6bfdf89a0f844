package gateway

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// A header that names another one that ends here makes a request go the standard way; the upstream must not see which way
// one came.
func TestAnUpstreamCannotTellTheStraightWayFromTheStandardOne(t *testing.T) {
	up := newUpstreamServer(t)
	for name, change := range map[string]func(*Options){"unknown client": func(*Options) {}, "trusted proxy": trust("127.0.0.0/8")} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, change)
			w.register("/stripped", up.URL+"/under", "strip_request_path", "true")
			w.register("/kept", up.URL, "preserve_host", "true")
			for _, target := range []string{"/stripped", "/stripped/a%2Fb//c?x=%zz&y", "/stripped?", "/kept/ä/%41?q=a+b", "/stripped//x"} {
				for _, header := range [][]string{
					{},
					{"User-Agent", "", "Accept-Encoding", "br"},
					{"X-Forwarded-For", "1.2.3.4", "X-Forwarded-Proto", "https", "X-Forwarded-Host", "h", "X-Forwarded-Port", "7", "X-Forwarded-Prefix", "/p/", "X-Real-Ip", "9.9.9.9"},
					{"Forwarded", "for=1.2.3.4", "X-Freshet-Hops", "3", "X-Consumer-Id", "evil", "X_forwarded_for", "evil"},
					{"Keep-Alive", "9", "Proxy-Authorization", "x", "Proxy-Connection", "x", "Cookie", "a=1", "Cookie", "b=2", "X-Empty", ""},
				} {
					straight := w.upstreamSaw("GET", target, header...)
					standard := w.upstreamSaw("GET", target, append([]string{"Connection", "X-Ends-Here"}, header...)...)
					if !reflect.DeepEqual(straight, standard) {
						t.Errorf("%s with %q:\nstraight %+v\nstandard %+v", target, header, straight, standard)
					}
				}
			}
		})
	}
}

var shortSeeds = []string{
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

// What is taken as it lies there must be what the library would have read.
func FuzzShortAnswersAreWhatTheLibraryReads(f *testing.F) {
	for _, s := range shortSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		if len(sent) == 0 || len(sent) > 4096 {
			return
		}
		c := &straightConn{in: bufio.NewReader(bytes.NewReader(sent))}
		if _, err := c.in.Peek(1); err != nil {
			t.Fatal(err)
		}
		w := newRecorder()
		status, length, ok := c.shortAnswer(w.header)
		if !ok {
			if rest, _ := io.ReadAll(c.in); !bytes.Equal(rest, sent) || len(w.header) > 0 {
				t.Fatalf("%q was touched: %q is left, %v was taken", sent, rest, w.header)
			}
			return
		}
		w.WriteHeader(status)
		c.passShort(w, length)
		resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(sent)), nil)
		if err != nil {
			t.Fatalf("%q was taken, and is refused by the library: %v", sent, err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.Close || resp.StatusCode != w.status || !bytes.Equal(body, w.body.Bytes()) {
			t.Fatalf("%q gives %d %q, and %d %q (%v, close %t) by the library", sent, w.status, &w.body, resp.StatusCode, body, err, resp.Close)
		}
		want := http.Header{}
		passHeader(want, resp)
		if !reflect.DeepEqual(w.header, want) {
			t.Fatalf("%q gives %v, and %v by the library", sent, w.header, want)
		}
	})
}

// Most answers must go the short way, or it is for nothing.
func TestUsualAnswersAreShort(t *testing.T) {
	for _, answer := range []string{shortSeeds[0], shortSeeds[1],
		"HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Type: application/json\r\nContent-Length: 512\r\nConnection: keep-alive\r\nETag: \"x\"\r\n\r\n" + strings.Repeat("x", 512),
	} {
		c := &straightConn{in: bufio.NewReader(strings.NewReader(answer))}
		_, _ = c.in.Peek(1)
		if _, _, ok := c.shortAnswer(http.Header{}); !ok {
			t.Errorf("%q is left to the library", answer)
		}
	}
}
