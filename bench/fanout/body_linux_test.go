package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// cuts feeds text in pieces of every size from one byte up, as a socket might.
func cuts(t *testing.T, text string, check func(t *testing.T, feed func(take func([]byte)) *body)) {
	t.Helper()
	for size := 1; size <= len(text); size++ {
		t.Run(fmt.Sprintf("in pieces of %d", size), func(t *testing.T) {
			check(t, func(take func([]byte)) *body {
				p := &body{}
				for rest := []byte(text); len(rest) > 0; {
					n := min(size, len(rest))
					p.feed(rest[:n:n], take)
					rest = rest[n:]
				}
				return p
			})
		})
	}
}

func TestBodyWithoutFramingIsEverythingBehindTheHeader(t *testing.T) {
	cuts(t, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n:\n\n", func(t *testing.T, feed func(func([]byte)) *body) {
		var got bytes.Buffer
		p := feed(func(b []byte) { got.Write(b) })
		if got.String() != "data: 1\n\n:\n\n" || p.status != 200 || p.chunked || p.gzip || p.phase != inBody {
			t.Fatalf("%q, %+v", &got, p)
		}
	})
}

func TestChunksAreTakenOutOfTheirFraming(t *testing.T) {
	const text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n\r\n" +
		"9\r\ndata: 1\n\n\r\n1a;x=y\r\ndata: 012345678901234567\n\n\r\n0\r\n\r\n"
	cuts(t, text, func(t *testing.T, feed func(func([]byte)) *body) {
		var got bytes.Buffer
		p := feed(func(b []byte) { got.Write(b) })
		if got.String() != "data: 1\n\ndata: 012345678901234567\n\n" || !p.gzip || p.phase != ended {
			t.Fatalf("%q, %+v", &got, p)
		}
	})
}

func TestOtherStatusesAreSeen(t *testing.T) {
	p := &body{}
	p.feed([]byte("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"), func([]byte) {})
	if p.status != 502 {
		t.Errorf("status %d", p.status)
	}
}

func TestWhatIsNotHTTPIsBroken(t *testing.T) {
	for _, text := range []string{"SSH-2.0-OpenSSH_9.2\r\n\r\n", strings.Repeat("x", maxHeader+1),
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n"} {
		p := &body{}
		p.feed([]byte(text), func([]byte) {})
		if p.phase != broken {
			t.Errorf("%.30q…: phase %d", text, p.phase)
		}
	}
}

func TestBodyReadsWhatNetHTTPWrites(t *testing.T) {
	srv := httptest.NewServer(&naive{subscribers: make(map[string]map[chan []byte]struct{})})
	defer srv.Close()
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write(getRequest("/", "")); err != nil {
		t.Fatal(err)
	}
	var p body
	var got bytes.Buffer
	readUntil := func(done func() bool) {
		for buf := make([]byte, 100); !done(); {
			n, err := conn.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			p.feed(buf[:n], func(b []byte) { got.Write(b) })
		}
	}
	readUntil(func() bool { return p.phase != inHeader }) // from here on it is subscribed
	resp, err := srv.Client().Post(srv.URL, "application/json", strings.NewReader("{}"))
	if err != nil || resp.StatusCode != http.StatusNoContent {
		t.Fatal(resp, err)
	}
	resp.Body.Close()
	const want = "data: {}\n\n"
	readUntil(func() bool { return got.Len() >= len(want) })
	if got.String() != want || !p.chunked {
		t.Errorf("%q, %+v", &got, p)
	}
}

func FuzzBodyNeverPanics(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"), 3)
	f.Add([]byte("HTTP/1.1 200 OK\r\n\r\n"), 1)
	f.Fuzz(func(t *testing.T, text []byte, size int) {
		p := &body{}
		taken := 0
		for rest := text; len(rest) > 0; {
			n := min(max(size, 1), len(rest))
			p.feed(rest[:n], func(b []byte) { taken += len(b) })
			rest = rest[n:]
		}
		if taken > len(text) {
			t.Fatalf("%d bytes out of %d", taken, len(text))
		}
	})
}
