package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	api "github.com/freshet-io/freshet/client"
)

// publisherConn is one connection on which publications come one after the other.
type publisherConn struct {
	t       *testing.T
	conn    net.Conn
	answers *bufio.Reader
	head    string
}

func dialPublisher(t *testing.T, r *running) *publisherConn {
	t.Helper()
	c, err := api.New(api.Options{BaseURL: "http://" + r.address("gateway")})
	if err != nil {
		t.Fatal(err)
	}
	topic, app := makeTopic(t.Context(), t, c)
	conn, err := net.Dial("tcp", r.address("gateway"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	return &publisherConn{t, conn, bufio.NewReader(conn), "POST /publish/latest/topics/" + topic +
		" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nX-Sd-Publisher-Key: " + app.PublisherKey}
}

func (c *publisherConn) post(body string) int {
	c.t.Helper()
	if _, err := fmt.Fprintf(c.conn, "%s\r\nContent-Length: %d\r\n\r\n%s", c.head, len(body), body); err != nil {
		c.t.Fatal(err)
	}
	resp, err := http.ReadResponse(c.answers, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		c.t.Fatal(err)
	}
	return resp.StatusCode
}

// Publications that come on one connection meet nothing but the fast path, until there is something to meet.
func TestPluginsHoldForConnectionsThatArePublishingAlready(t *testing.T) {
	r := run(t, nil)
	c := dialPublisher(t, r)
	before := requests(t, r)
	for i := range 3 {
		if status := c.post(fmt.Sprintf(`{"n":%d}`, i)); status != http.StatusNoContent {
			t.Fatalf("publication %d is answered with %d", i, status)
		}
	}
	if n := requests(t, r) - before; n != 3 {
		t.Errorf("3 publications are counted as %d requests", n)
	}
	if status := administer(t, r, "", "/apis/publish/plugins", "name", "key-auth"); status != http.StatusCreated {
		t.Fatalf("attaching answers %d", status)
	}
	if status := c.post(`{"n":4}`); status != http.StatusUnauthorized {
		t.Errorf("without the plugin's key a publication is answered with %d", status)
	}
}

// requests is how many requests the gateway has seen.
func requests(t *testing.T, r *running) (n int) {
	t.Helper()
	_, body := get(t, r.address("admin"), "/status")
	_, rest, _ := strings.Cut(body, `"total_requests":`)
	if _, err := fmt.Sscan(strings.TrimRight(strings.SplitN(rest, ",", 2)[0], "}\n"), &n); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return n
}

// A publisher that keeps its connection does not hold up the end of a process.
func TestAProcessEndsWithPublishersConnected(t *testing.T) {
	r := run(t, nil)
	c := dialPublisher(t, r)
	if status := c.post(`1`); status != http.StatusNoContent {
		t.Fatalf("answered with %d", status)
	}
	r.cancel()
	if err := r.wait(); err != nil {
		t.Error(err)
	}
	if b, err := c.answers.ReadByte(); err == nil {
		t.Errorf("then comes %q", b)
	}
}

// say sends a request, closes its end of the connection, and returns what is answered.
func say(t *testing.T, address, request string) int {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	_ = conn.(*net.TCPConn).CloseWrite()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%.40q: %v", request, err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// TestWhoHasNothingMoreToSayIsAnswered: not everybody who closes its end of a connection has given up.
func TestWhoHasNothingMoreToSayIsAnswered(t *testing.T) {
	r := run(t, nil)
	head := dialPublisher(t, r).head
	for range 20 {
		if status := say(t, r.address("gateway"), "GET /api/v1/public/nothing HTTP/1.1\r\nHost: localhost\r\n\r\n"); status != http.StatusNotFound {
			t.Errorf("an API answers %d", status)
		}
		if status := say(t, r.address("gateway"), "POST /api/v1/users HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"); status != http.StatusUnprocessableEntity && status != http.StatusBadRequest {
			t.Errorf("users are answered %d", status)
		}
		if status := say(t, r.address("admin"), "GET /apis HTTP/1.1\r\nHost: localhost\r\n\r\n"); status != http.StatusOK {
			t.Errorf("the gateway's administration answers %d", status)
		}
	}
	// A publication must say that it is the last; see the publishing API.
	for name, rest := range map[string]string{
		"plain":      "\r\nConnection: close\r\nContent-Length: 7\r\n\r\n{\"n\":1}",
		"with more":  "\r\nConnection: close\r\nIdempotency-Key: a\r\nContent-Length: 7\r\n\r\n{\"n\":2}",
		"in a chunk": "\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n7\r\n{\"n\":3}\r\n0\r\n\r\n",
	} {
		// On a machine that is very busy it may count as given up.
		waitFor(t, name, func() bool { return say(t, r.address("gateway"), head+rest) == http.StatusNoContent })
	}
}
