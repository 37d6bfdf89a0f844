package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// scripted is an upstream that answers with given bytes, whatever it is asked.
type scripted struct {
	url string

	mu       sync.Mutex
	answers  []string   // Guarded by mu. What is left to say.
	asked    []int      // Guarded by mu. The connection that each request came on.
	accepted []net.Conn // Guarded by mu.
}

// closing ends an answer that the end of the connection ends.
const closing = "\x00"

func newScripted(t *testing.T, answers ...string) *scripted {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &scripted{url: "http://" + l.Addr().String(), answers: answers}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.accepted = append(s.accepted, conn)
			number := len(s.accepted)
			s.mu.Unlock()
			all.Go(func() { s.serve(number, conn) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		s.mu.Lock()
		for _, conn := range s.accepted {
			conn.Close()
		}
		s.mu.Unlock()
		all.Wait()
	})
	return s
}

func (s *scripted) serve(number int, conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		if _, err := http.ReadRequest(in); err != nil {
			return
		}
		s.mu.Lock()
		s.asked = append(s.asked, number)
		answer := s.answers[0]
		s.answers = s.answers[1:]
		s.mu.Unlock()
		text, ends := strings.CutSuffix(answer, closing)
		if _, err := io.WriteString(conn, text); err != nil || ends {
			return
		}
	}
}

// connections says which connection each request came on.
func (s *scripted) connections() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprint(s.asked)
}

const fine = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine"

// Each answer is followed by a second request: that must get its own answer, on the same connection only where the first
// one left it clean.
func TestAConnectionIsKeptOnlyWhereTheAnswerLeavesItClean(t *testing.T) {
	long := strings.Repeat("0123456789", 100_000)
	w := newWorld(t)
	for name, c := range map[string]struct {
		method, answer string
		status         int
		body           string
		kept           bool
	}{
		"a length":                {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, "ok", true},
		"no body":                 {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, "", true},
		"larger than any buffer":  {"GET", fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(long), long), 200, long, true},
		"chunks":                  {"GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", 200, "ok", true},
		"chunks and a trailer":    {"GET", "HTTP/1.1 200 OK\r\nTrailer: X\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX: 1\r\n\r\n", 200, "ok", true},
		"a length for HEAD":       {"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\n", 200, "", true},
		"chunked for HEAD":        {"HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 200, "", true},
		"204":                     {"GET", "HTTP/1.1 204 No Content\r\n\r\n", 204, "", true},
		"304 with a length":       {"GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 200\r\n\r\n", 304, "", true},
		"100 first":               {"GET", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, "ok", true},
		"103 first":               {"GET", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, "ok", true},
		"1.0 that stays":          {"GET", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", 200, "ok", true},
		"Connection: close":       {"GET", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", 200, "ok", false},
		"1.0":                     {"GET", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, "ok", false},
		"until the end":           {"GET", "HTTP/1.1 200 OK\r\n\r\nok" + closing, 200, "ok", false},
		"more than its length":    {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" + fine, 200, "ok", false},
		"a body for 204":          {"GET", "HTTP/1.1 204 No Content\r\n\r\n" + fine, 204, "", false},
		"a body for HEAD":         {"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, "", false},
		"a length and chunks":     {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", 200, "ok", true},
		"two lengths":             {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nok", 502, "", false},
		"no HTTP":                 {"GET", "220 smtp.example.com ESMTP\r\n", 502, "", false},
		"another protocol":        {"GET", "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n", 502, "", false},
		"a header without end":    {"GET", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2*maxResponseHeader), 502, "", false},
		"hints without end":       {"GET", strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", maxResponseHeader/20), 502, "", false},
		"nothing but its end":     {"GET", closing, 502, "", false},
		"the end within a header": {"GET", "HTTP/1.1 200 OK\r\nContent-Le" + closing, 502, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			up := newScripted(t, c.answer, fine)
			path := "/" + strings.NewReplacer(" ", "-", ":", "").Replace(name)
			w.register(path, up.url)
			a := w.call(c.method, path)
			if a.status != c.status || c.status < 500 && a.body != c.body {
				t.Errorf("the client gets %d %.80q", a.status, a.body)
			}
			if a := w.call("GET", path); a.status != http.StatusOK || a.body != "fine" {
				t.Errorf("the next request gets %d %.80q", a.status, a.body)
			}
			want := "[1 2]"
			if c.kept {
				want = "[1 1]"
			}
			if got := up.connections(); got != want {
				t.Errorf("the requests came on %s, want %s", got, want)
			}
		})
	}
}
