package gateway

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

// dial opens a connection to the gateway.
func (w *world) dial() (net.Conn, *bufio.Reader) {
	w.t.Helper()
	conn, err := net.Dial("tcp", w.front.Listener.Addr().String())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	return conn, bufio.NewReader(conn)
}

func TestAnAnswerMayComeBeforeTheEndOfTheBody(t *testing.T) {
	w := newWorld(t)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn := http.NewResponseController(w)
		_ = conn.EnableFullDuplex()
		_ = conn.Flush()
		lines := bufio.NewReader(r.Body)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			fmt.Fprintf(w, "got %s", line)
			_ = conn.Flush()
		}
	}))
	t.Cleanup(up.Close)
	w.register("/echo", up.URL)
	conn, in := w.dial()
	fmt.Fprint(conn, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 12\r\n\r\n")
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer := bufio.NewReader(resp.Body)
	for _, line := range []string{"one\n", "two\n", "end\n"} {
		fmt.Fprint(conn, line)
		if got, err := answer.ReadString('\n'); err != nil || got != "got "+line {
			t.Fatalf("for %q the client gets %q, %v", line, got, err)
		}
	}
}

func TestABodyThatIsNotWantedNeedNotBeSent(t *testing.T) {
	w := newWorld(t)
	w.register("/quote", rawServer(t, "HTTP/1.1 417 No\r\nContent-Length: 2\r\n\r\nno"))
	conn, in := w.dial()
	fmt.Fprint(conn, "POST /quote HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
	resp, err := http.ReadResponse(in, nil)
	if err == nil && resp.StatusCode == http.StatusContinue { // the library may ask for it, to keep its connection to the upstream
		resp.Body.Close()
		resp, err = http.ReadResponse(in, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); resp.StatusCode != http.StatusExpectationFailed || string(body) != "no" || err != nil {
		t.Errorf("answered with %s %q, %v", resp.Status, body, err)
	}
	if !resp.Close {
		t.Error("what comes next could be taken for the body")
	}
}

func TestABrokenBodyIsNotTheUpstreamsFault(t *testing.T) {
	w := newWorld(t)
	up := newUpstreamServer(t)
	w.register("/quote", up.URL)
	for name, body := range map[string]string{
		"no number": "zz\r\nabc\r\n0\r\n\r\n", "a negative number": "-3\r\nabc\r\n0\r\n\r\n", "another prefix": "0x3\r\nabc\r\n0\r\n\r\n",
		"a chunk that is longer": "3\r\nabcd\r\n0\r\n\r\n", "a huge number": "fffffffffffffffff\r\nabc\r\n0\r\n\r\n",
	} {
		status, answer := w.raw("POST /quote HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + body)
		if status != http.StatusBadRequest || !strings.Contains(answer, `{"message":"The body could not be read to its end"}`) {
			t.Errorf("%s: answered with %s", name, answer)
		}
	}
}

func TestInterimAnswersPassAndLeaveTheLastOneAlone(t *testing.T) {
	w := newWorld(t)
	const last = "HTTP/1.1 200 OK\r\nX-Mine: 1\r\nContent-Length: 13\r\n\r\n<html></html>"
	w.register("/hints", rawServer(t, "HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n"+last))
	w.must("POST", "/apis/hints/plugins", "name", "cors")
	w.register("/plain", rawServer(t, "HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n"+last))
	for _, path := range []string{"/hints", "/plain"} {
		for _, head := range []string{"GET " + path + " HTTP/1.1", "POST " + path + " HTTP/1.1\r\nContent-Length: 3"} {
			_, answer := w.raw(head + "\r\nHost: x\r\nConnection: close\r\n\r\nabc")
			hint, final, ok := strings.Cut(answer, "\r\n\r\n")
			if !ok || !strings.Contains(hint, "103 Early Hints") || !strings.Contains(hint, "Link: </a>") || !strings.Contains(final, "X-Mine: 1") {
				t.Errorf("%q is answered with %q", head, answer)
			}
			if strings.Contains(final, "Content-Type") || strings.Contains(final, "Link") {
				t.Errorf("%q: the last answer is %q", head, final)
			}
			if cors := strings.Contains(final, "Access-Control-Allow-Origin: *"); cors != (path == "/hints") {
				t.Errorf("%q: the plugin's header is there: %t", head, cors)
			}
		}
	}
}
