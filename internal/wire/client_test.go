//go:build unix

package wire

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

const fine = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine"

// upstream responds with given bytes, whatever it is asked.
type upstream struct {
	address string

	mu        sync.Mutex
	responses []string   // Guarded by mu. What is left to say.
	asked     []int      // Guarded by mu. The connection that each request came on.
	accepted  []net.Conn // Guarded by mu.
}

func newUpstream(t *testing.T, responses ...string) *upstream {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u := &upstream{address: l.Addr().String(), responses: responses}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			u.mu.Lock()
			u.accepted = append(u.accepted, conn)
			number := len(u.accepted)
			u.mu.Unlock()
			all.Go(func() { u.serve(number, conn) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		u.mu.Lock()
		for _, conn := range u.accepted {
			conn.Close()
		}
		u.mu.Unlock()
		all.Wait()
	})
	return u
}

func (u *upstream) serve(number int, conn net.Conn) {
	defer conn.Close()
	for in := bufio.NewReader(conn); ; {
		if _, err := http.ReadRequest(in); err != nil {
			return
		}
		u.mu.Lock()
		u.asked = append(u.asked, number)
		if len(u.responses) == 0 {
			u.mu.Unlock()
			continue // it says nothing
		}
		text := u.responses[0]
		u.responses = u.responses[1:]
		u.mu.Unlock()
		if _, err := io.WriteString(conn, text); err != nil {
			return
		}
	}
}

// connections says which connection each request came on.
func (u *upstream) connections() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return fmt.Sprint(u.asked)
}

// first is the connection that was accepted first.
func (u *upstream) first() net.Conn {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.accepted[0]
}

func newClient(t *testing.T) *Client {
	c := &Client{Dial: new(net.Dialer).DialContext, Timeout: time.Minute, IdleTimeout: time.Minute, MaxIdle: 10, MaxHead: 64 << 10}
	t.Cleanup(c.Close)
	return c
}

var question = []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")

// ask returns the body of a short response.
func (t *Client) ask(test *testing.T, u *upstream) string {
	test.Helper()
	c, err := t.Send(context.Background(), u.address, question, nil)
	if err != nil {
		test.Fatal(err)
	}
	r := c.Short()
	if r == nil {
		test.Fatal("the response is not short")
	}
	body := string(r.Body)
	c.Done(true)
	return body
}

func TestAClientKeepsItsConnections(t *testing.T) {
	client, u := newClient(t), newUpstream(t, fine, fine, fine+"more", fine)
	for range 4 {
		if body := client.ask(t, u); body != "fine" {
			t.Error(body)
		}
	}
	if got := u.connections(); got != "[1 1 1 2]" { // what said more than it was asked is closed
		t.Error(got)
	}
}

func TestConnectionsThatNobodyUsesAreClosed(t *testing.T) {
	client, u := newClient(t), newUpstream(t, fine)
	client.IdleTimeout = time.Millisecond
	client.ask(t, u)
	eventually(t, "it is closed", func() bool {
		client.mu.Lock()
		defer client.mu.Unlock()
		return len(client.idle) == 0
	})
}

// Servers say 408 on idle connections before they close them; worse ones say anything.
func TestWhatAnUpstreamSaysUnaskedIsNobodysResponse(t *testing.T) {
	client, u := newClient(t), newUpstream(t, fine, fine)
	client.ask(t, u)
	if _, err := io.WriteString(u.first(), "HTTP/1.1 408 Request Timeout\r\nContent-Length: 4\r\n\r\nlate"); err != nil {
		t.Fatal(err)
	}
	idle := client.take(u.address)
	var arrived bool
	if err := idle.raw.Read(func(fd uintptr) bool {
		arrived = hasInput(t, fd)
		return arrived
	}); err != nil {
		t.Fatal(err)
	}
	client.keep(idle)
	if body := client.ask(t, u); body != "fine" {
		t.Errorf("the next request gets %q", body)
	}
	if got := u.connections(); got != "[1 2]" {
		t.Errorf("the requests came on %s", got)
	}
}

// No request of ours is that large. If one is, or the system has little room, it still arrives whole.
func TestARequestThatDoesNotFitInIsSentInPieces(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	request := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	served := make(chan struct{})
	go func() {
		defer close(served)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		got := make([]byte, len(request))
		if _, err := io.ReadFull(conn, got); err == nil && bytes.Equal(got, request) {
			_, _ = io.WriteString(conn, fine)
		}
	}()
	c, err := newClient(t).Send(context.Background(), l.Addr().String(), request, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := c.Short()
	if r == nil || string(r.Body) != "fine" || len(c.request) > 0 {
		t.Errorf("%q, and %d bytes were not sent", r.Body, len(c.request))
	}
	c.Done(false)
	<-served
}

func TestAnUpstreamThatTakesTooLongIsGivenUp(t *testing.T) {
	client, u := newClient(t), newUpstream(t)
	client.Timeout = 10 * time.Millisecond
	if _, err := client.Send(context.Background(), u.address, question, nil); !IsTimeout(err) {
		t.Error(err)
	}
}

func TestARequestWhoseClientGoesIsGivenUp(t *testing.T) {
	client, u := newClient(t), newUpstream(t)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for u.connections() == "[]" {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	if _, err := client.Send(ctx, u.address, question, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestALongHeadIsRefused(t *testing.T) {
	client := newClient(t)
	for name, text := range map[string]string{
		"a header": "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2*int(client.MaxHead)),
		"hints":    strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", int(client.MaxHead)/20),
	} {
		c, err := client.Send(context.Background(), newUpstream(t, text).address, question, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Response(&http.Request{Method: "GET"}, func(*http.Response) {}); !errors.Is(err, errLongHead) {
			t.Errorf("%s: %v", name, err)
		}
		c.Done(false)
	}
}

func TestOtherResponsesAreReadByNetHTTP(t *testing.T) {
	const hinted = "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
	client, u := newClient(t), newUpstream(t, hinted, "HTTP/1.1 101 Switching Protocols\r\n\r\n", "HTTP/1.1 099 What\r\n\r\n")
	var hints []string
	for _, want := range []string{"ok", errSwitched.Error(), ErrBadStatus.Error()} {
		c, err := client.Send(context.Background(), u.address, question, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.Short() != nil {
			t.Error("it is short")
		}
		got := ""
		resp, err := c.Response(&http.Request{Method: "GET"}, func(r *http.Response) { hints = append(hints, r.Status) })
		if err != nil {
			got = err.Error()
		} else {
			body, _ := io.ReadAll(resp.Body)
			got = string(body)
		}
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
		c.Done(err == nil)
	}
	if fmt.Sprint(hints) != "[103 Early Hints]" {
		t.Error(hints)
	}
}

// A connection without a socket is used as any other.
func TestAClientNeedsNoSocket(t *testing.T) {
	client, u := newClient(t), newUpstream(t, fine, fine)
	client.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return struct{ net.Conn }{conn}, err
	}
	for range 2 {
		if body := client.ask(t, u); body != "fine" {
			t.Error(body)
		}
	}
	client.Timeout = 10 * time.Millisecond
	if _, err := client.Send(context.Background(), u.address, question, nil); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
}
