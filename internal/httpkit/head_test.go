package httpkit

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestFramingSeesWhatTheLibraryDrops(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		found := Framing(r)
		_, _ = io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, found)
	}))
	s.Listener = KeepHeads(s.Listener)
	s.Config.ConnState, s.Config.ConnContext = HeadState, ConnContext
	s.Start()
	defer s.Close()
	const empty = "0\r\n\r\n"
	for _, c := range []struct {
		name, sent string
		want       []Framed // one for each request in sent
	}{
		{"neither", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", []Framed{FramedOnce}},
		{"a length", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nok", []Framed{FramedOnce}},
		{"chunks", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + empty, []Framed{FramedOnce}},
		{"both", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + empty, []Framed{FramedTwice}},
		{"both, the other way round", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n" + empty, []Framed{FramedTwice}},
		{"both in small letters", "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n" + empty, []Framed{FramedTwice}},
		{"both without CR", "POST / HTTP/1.1\nHost: x\nContent-Length: 5\nTransfer-Encoding: chunked\n\n" + empty, []Framed{FramedLoosely}},
		{"nothing without CR", "GET / HTTP/1.1\nHost: x\n\n", []Framed{FramedLoosely}},
		{"a line without CR", "GET / HTTP/1.1\r\nHost: x\nX-A: b\r\n\r\n", []Framed{FramedLoosely}},
		{"an end without CR", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\nok", []Framed{FramedLoosely}},
		{"a body without CR", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\na\nb", []Framed{FramedOnce}},
		{"a length in the body", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n13\r\nContent-Length: 5\r\n\r\n" + empty, []Framed{FramedOnce}},
		{"chunks in HTTP/1.0", "POST / HTTP/1.0\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nok", []Framed{FramedTwice}},
		{"HTTP/1.0", "POST / HTTP/1.0\r\nContent-Length: 2\r\n\r\nok", []Framed{FramedOnce}},
		{"behind another", "GET / HTTP/1.1\r\nHost: x\r\n\r\nPOST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + empty,
			[]Framed{FramedOnce, FramedTwice}},
		{"behind a body", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nokPOST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + empty,
			[]Framed{FramedOnce, FramedTwice}},
		{"without CR behind another", "GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\nHost: x\n\n", []Framed{FramedOnce, FramedLoosely}},
		{"chunks in HTTP/1.0 behind another", "GET / HTTP/1.1\r\nHost: x\r\n\r\nPOST / HTTP/1.0\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nok",
			[]Framed{FramedOnce, FramedTwice}},
		{"well framed behind another", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nokGET / HTTP/1.1\r\nHost: x\r\n\r\nPOST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + empty,
			[]Framed{FramedOnce, FramedOnce, FramedOnce}},
		{"behind chunks", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + empty +
			"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + empty, []Framed{FramedOnce, FramedUnknown}},
		{"behind an empty line", "\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", []Framed{FramedOnce}},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn, err := net.Dial("tcp", s.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			in := bufio.NewReader(conn)
			// A connection that has answered before begins again with each request.
			for _, round := range []struct {
				sent string
				want []Framed
			}{{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", []Framed{FramedOnce}}, {c.sent, c.want}} {
				if _, err := io.WriteString(conn, round.sent); err != nil {
					t.Fatal(err)
				}
				for i, want := range round.want {
					resp, err := http.ReadResponse(in, nil)
					if err != nil {
						t.Fatal(err)
					}
					got, err := io.ReadAll(resp.Body)
					resp.Body.Close()
					if err != nil || string(got) != fmt.Sprint(int(want)) {
						t.Errorf("request %d is framed %s, want %d (%v)", i, got, want, err)
					}
				}
			}
		})
	}
}
