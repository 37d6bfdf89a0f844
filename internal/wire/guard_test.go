package wire

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// choppedListener has connections that read a few bytes at a time.
type choppedListener struct {
	net.Listener
	most int
}

func (l choppedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return choppedConn{conn.(Socket), l.most}, nil
}

type choppedConn struct {
	Socket
	most int
}

func (c choppedConn) Read(p []byte) (int, error) { return c.Socket.Read(p[:min(len(p), c.most)]) }

// TestAmbiguousRequestsAreNotForTheLibrary, whatever comes before them, and however they are cut into pieces.
func TestAmbiguousRequestsAreNotForTheLibrary(t *testing.T) {
	const (
		get    = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
		length = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\na\nb\r\n\n"
		chunks = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n13;a=b\r\nContent-Length: 5\r\n\r\n1 \r\n\n\r\n00\r\nX-T: 1\r\n\r\n"
		both   = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
	)
	const good, bad, unsupported = http.StatusOK, http.StatusBadRequest, http.StatusNotImplemented
	for _, most := range []int{1, 2, 3, 7, 4 << 10} {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "ambiguous") {
				t.Errorf("%s reached the handler", r.URL.Path)
			}
			_, _ = io.Copy(io.Discard, r.Body)
		}))
		s.Listener = Guard(choppedListener{s.Listener, most})
		s.Config.ConnState = GuardState
		s.Start()
		defer s.Close()
		for _, c := range []struct {
			name, sent string
			want       []int // one for each request; behind a bad one comes none
		}{
			{"well framed", get + length + get + get + chunks + chunks + length + length + get, []int{good, good, good, good, good, good, good, good, good}},
			{"HTTP/1.0", "POST / HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok" + get, []int{good, good}},
			{"the same length twice", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 2 \r\n\r\nok" + get, []int{good, good}},
			{"a folded field", "GET / HTTP/1.1\r\nHost: x\r\nX-A: b\r\n Content-Length: 9\r\n\r\n" + get, []int{good, good}},
			{"both", both, []int{bad}},
			{"both, the other way round", "POST /ambiguous HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", []int{bad}},
			{"both in small letters", "POST /ambiguous HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n", []int{bad}},
			{"nothing without CR", "GET /ambiguous HTTP/1.1\nHost: x\n\n", []int{bad}},
			{"a line without CR", "GET /ambiguous HTTP/1.1\r\nHost: x\nX-A: b\r\n\r\n", []int{bad}},
			{"an end without CR", "POST /ambiguous HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\nok", []int{bad}},
			{"chunks in HTTP/1.0", "POST /ambiguous HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\nok", []int{bad}},
			{"a folded coding", "POST /ambiguous HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\r\n\tchunked\r\n\r\n0\r\n\r\n", []int{bad}},
			{"a folded length", "POST /ambiguous HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n 9\r\n\r\n", []int{bad}},
			{"two lengths", "POST /ambiguous HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 27\r\n\r\n", []int{bad}},
			{"another coding", "POST /ambiguous HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", []int{unsupported}},
			{"behind a GET", get + both, []int{good, bad}},
			{"behind a length", length + both, []int{good, bad}},
			{"behind chunks", chunks + both, []int{good, bad}},
			{"behind many", get + chunks + length + get + chunks + both, []int{good, good, good, good, good, bad}},
			{"without CR behind chunks", chunks + "GET /ambiguous HTTP/1.1\nHost: x\n\n", []int{good, bad}},
			{"chunks in HTTP/1.0 behind a length", length + "POST /ambiguous HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", []int{good, bad}},
			{"HTTP/2 behind another", get + "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", []int{good, bad}},
		} {
			t.Run(fmt.Sprintf("%s, %d bytes at a time", c.name, most), func(t *testing.T) {
				conn, err := net.Dial("tcp", s.Listener.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				in := bufio.NewReader(conn)
				if _, err := io.WriteString(conn, c.sent); err != nil {
					t.Fatal(err)
				}
				for i, want := range c.want {
					resp, err := http.ReadResponse(in, nil)
					if err != nil {
						t.Fatal(err)
					}
					if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != want || resp.Close != (want != good) {
						t.Errorf("request %d: %v, want %d (%v)", i, resp, want, err)
					}
				}
				if c.want[len(c.want)-1] != good {
					if more, _ := io.ReadAll(in); len(more) > 0 {
						t.Errorf("behind it: %q", more)
					}
				}
			})
		}
	}
}

// TestABodyWhoseEndIsAmbiguousHasNone: the library takes lines of a trailer that end in LF alone.
func TestABodyWhoseEndIsAmbiguousHasNone(t *testing.T) {
	failed := make(chan error, 1)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		failed <- err
	}))
	s.Listener = Guard(s.Listener)
	s.Config.ConnState = GuardState
	s.Start()
	defer s.Close()
	for _, trailer := range []string{"X-T: 1\n\n\r\n\r\n", "X-T: 1\n\r\n\r\n", "\n\r\n\r\n"} {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"+trailer+"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		if err := <-failed; err == nil {
			t.Errorf("%q is taken for the end", trailer)
		}
		if answer, _ := io.ReadAll(conn); strings.Count(string(answer), "HTTP/1.1 ") > 1 {
			t.Errorf("behind %q: %q", trailer, answer)
		}
	}
}

// TestAnEmptyLineBehindARequestIsSkipped, whatever net/http reads of it at a time: it looks for clients that go away with reads of a single byte.
func TestAnEmptyLineBehindARequestIsSkipped(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, _ *http.Request) {
		entered <- struct{}{}
		<-leave
	}))
	s.Listener = Guard(s.Listener)
	s.Config.ConnState = GuardState
	s.Start()
	defer s.Close()
	const get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
	for _, pieces := range [][]string{{"\r\n" + get}, {"\r\n", get}, {"\r", "\n" + get}, {"\r", "\n", get}, {"\r\n\r", "\n" + get}} {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(conn)
		_, _ = io.WriteString(conn, get)
		<-entered
		for i, piece := range pieces {
			_, _ = io.WriteString(conn, piece)
			time.Sleep(5 * time.Millisecond) // so that it is read by itself, mostly
			if i == 0 {
				leave <- struct{}{}
				if resp, err := http.ReadResponse(in, nil); err != nil || resp.StatusCode != http.StatusOK {
					t.Fatal(resp, err)
				}
			}
		}
		select {
		case <-entered:
			leave <- struct{}{}
		case <-time.After(time.Minute):
			t.Fatalf("%q: the request did not arrive", pieces)
		}
		if resp, err := http.ReadResponse(in, nil); err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("%q: %v %v", pieces, resp, err)
		}
		conn.Close()
	}
}
