package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// brokenBodies are chunks that nobody can tell the end of, and what another reader may take for a request behind them.
var brokenBodies = map[string]string{
	"a trailer without a name":    "5\r\nhello\r\n0\r\n\t\r\n",
	"a trailer without a colon":   "5\r\nhello\r\n0\r\nnonsense\r\n\r\n",
	"a size that is none":         "5\r\nhello\r\nxyz\r\n\r\n",
	"an empty size":               "5\r\nhello\r\n\r\n",
	"a size that overflows":       "5\r\nhello\r\nfffffffffffffffff\r\n\r\n",
	"a chunk without its end":     "5\r\nhelloX0\r\n\r\n",
	"a size that ends in LF":      "5\nhello\r\n0\r\n\r\n",
	"a chunk that ends in LF":     "5\r\nhello\n0\r\n\r\n",
	"a size with a CR inside":     "5\r5\r\nhello\r\n0\r\n\r\n",
	"a last chunk without an end": "5\r\nhello\r\n0\r\nX",
}

// answers sends something and returns how many answers come until the other side closes.
func answers(t *testing.T, address, sent string) (n int, closed bool) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Error(err)
		return 0, true
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, sent); err != nil {
		t.Error(err)
	}
	// Our side stays open: who closes is the server.
	read, err := io.ReadAll(conn)
	timeout, isTimeout := err.(net.Error)
	return strings.Count(string(read), "HTTP/1.1 "), !isTimeout || !timeout.Timeout()
}

// TestABodyThatFailsEndsItsConnection: on every listener and every path, as with the HTTP library alone, nothing behind it is taken for a
// request.
func TestABodyThatFailsEndsItsConnection(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if strings.Contains(r.URL.Path, "SMUGGLED") {
			t.Errorf("%s reached the upstream", r.URL.Path)
		}
	}))
	t.Cleanup(up.Close)
	library := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			http.Error(w, "broken", http.StatusBadRequest)
		}
	}))
	t.Cleanup(library.Close)
	r := run(t, nil)
	if status := administer(t, r, "", "/apis", "name", "e0", "request_path", "/e0", "upstream_url", up.URL); status != http.StatusCreated {
		t.Fatalf("registering answers %d", status)
	}
	var asked sync.WaitGroup
	for _, to := range []struct{ address, line string }{
		{library.Listener.Addr().String(), "POST /"},
		{r.address("gateway"), "POST /e0/p"},
		{r.address("gateway"), "GET /e0/p"},
		{r.address("gateway"), "POST /api/v1/sessions"},
		{r.address("gateway"), "POST /api/v1/users"},
		{r.address("gateway"), "POST /publish/v1/topics/x"},
		{r.address("gateway"), "POST /console/"},
		{r.address("gateway"), "POST /nowhere"},
		{r.address("admin"), "POST /apis/"},
		{r.address("admin"), "POST /livez"},
		{r.address("subscriber"), "POST /v1/topics/none"},
		{r.address("subscriber"), "GET /v1/topics/none"},
	} {
		for name, body := range brokenBodies {
			asked.Go(func() {
				head := " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
				smuggled := "GET /e0/SMUGGLED HTTP/1.1\r\nHost: localhost\r\n\r\n"
				if n, closed := answers(t, to.address, fmt.Sprint(to.line, head, body, smuggled)); n > 1 || !closed {
					t.Errorf("%s with %s: %d answers, closed: %t", to.line, name, n, closed)
				}
			})
		}
	}
	asked.Wait()
}

// TestThePrefaceOfHTTP2CountsAtTheBeginningOnly, also where its bytes come one by one.
func TestThePrefaceOfHTTP2CountsAtTheBeginningOnly(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	t.Cleanup(up.Close)
	r := run(t, nil)
	if status := administer(t, r, "", "/apis", "name", "e0", "request_path", "/e0", "upstream_url", up.URL); status != http.StatusCreated {
		t.Fatalf("registering answers %d", status)
	}
	for _, path := range []string{"/e0/", "/nowhere"} {
		for _, cut := range []int{1, 4, 24} {
			conn, err := net.Dial("tcp", r.address("gateway"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(patience))
			in := bufio.NewReader(conn)
			const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
			for _, piece := range []string{"GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n", preface[:cut], preface[cut:]} {
				_, _ = io.WriteString(conn, piece) // it may be closed
				if strings.HasPrefix(piece, "GET") {
					resp, err := http.ReadResponse(in, nil)
					if err != nil {
						t.Fatal(err)
					}
					_, _ = io.Copy(io.Discard, resp.Body)
				}
			}
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatalf("behind %s: %v", path, err)
			}
			if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusBadRequest || !resp.Close {
				t.Errorf("behind %s: %s, closes: %t, %v", path, resp.Status, resp.Close, err)
			}
		}
	}
}

// TestAMalformedHostIsRefusedOnEveryListener, whoever reads it.
func TestAMalformedHostIsRefusedOnEveryListener(t *testing.T) {
	r := run(t, nil)
	for _, listener := range []string{"gateway", "subscriber", "admin"} {
		for _, host := range []string{"a b", "<x>", "\"", "a\\b"} {
			if status := say(t, r.address(listener), "GET /v1/topics/none HTTP/1.1\r\nHost: "+host+"\r\n\r\n"); status != http.StatusBadRequest {
				t.Errorf("%s: host %q is answered with %d", listener, host, status)
			}
		}
	}
}

// TestAnEmptyLineBeforeARequestIsSkipped on every listener, as RFC 9112 asks for: some clients send one behind a body.
func TestAnEmptyLineBeforeARequestIsSkipped(t *testing.T) {
	r := run(t, nil)
	for listener, path := range map[string]string{"gateway": "/console/", "admin": "/livez", "subscriber": "/v1/topics/none"} {
		request := "\r\nGET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n"
		if status := say(t, r.address(listener), request); status != http.StatusOK {
			t.Errorf("%s: answered with %d", listener, status)
		}
	}
	c := dialPublisher(t, r)
	for range 2 {
		if status := c.post(`{"n":1}`); status != http.StatusNoContent {
			t.Errorf("a publication is answered with %d", status)
		}
		if _, err := io.WriteString(c.conn, "\r\n"); err != nil {
			t.Fatal(err)
		}
	}
}
