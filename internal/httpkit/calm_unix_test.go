//go:build unix

package httpkit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"
)

// calmPair is a calm connection and the client's end of it.
func calmPair(t *testing.T) (*Client, net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	peer, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { peer.Close() })
	conn, err := Calm(l).Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn.(*Client), peer
}

var longAgo = time.Unix(1, 0)

// TestDeadlinesOfCalmConnectionsAreThoseLastWanted: whatever the socket was told before.
func TestDeadlinesOfCalmConnectionsAreThoseLastWanted(t *testing.T) {
	soon := func() time.Time { return time.Now().Add(20 * time.Millisecond) }
	for name, deadlines := range map[string][]time.Time{
		"moved on":       {soon(), time.Now().Add(time.Hour)},
		"taken back":     {soon(), {}},
		"long past":      {longAgo, {}},
		"past and moved": {longAgo, time.Now().Add(time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			c, peer := calmPair(t)
			buf := make([]byte, 8)
			_ = c.SetReadDeadline(deadlines[0])
			if _, err := c.Read(buf); !errors.Is(err, os.ErrDeadlineExceeded) { // which tells the socket
				t.Fatalf("with a deadline: %v", err)
			}
			_ = c.SetReadDeadline(deadlines[1])
			go func() {
				time.Sleep(50 * time.Millisecond) // so that the read has begun, mostly
				fmt.Fprint(peer, "hello")
			}()
			if n, err := c.Read(buf); err != nil || string(buf[:n]) != "hello" {
				t.Errorf("with another one: %q, %v", buf[:n], err)
			}
		})
	}
	t.Run("sooner", func(t *testing.T) {
		c, peer := calmPair(t)
		buf := make([]byte, 8)
		_ = c.SetDeadline(time.Now().Add(time.Hour))
		fmt.Fprint(peer, "hello")
		if _, err := c.Read(buf); err != nil {
			t.Fatal(err)
		}
		_ = c.SetReadDeadline(soon())
		if _, err := c.Read(buf); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
	t.Run("while reading", func(t *testing.T) {
		c, _ := calmPair(t)
		ended := make(chan error)
		go func() {
			_, err := c.Read(make([]byte, 8))
			ended <- err
		}()
		time.Sleep(10 * time.Millisecond) // either order must do
		_ = c.SetReadDeadline(longAgo)
		if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
}

// unwatched serves with h, whose client the library looks after no more.
func unwatched(t *testing.T, h func(c *Client, w http.ResponseWriter, r *http.Request)) (net.Conn, *bufio.Reader) {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := Unwatch(r.Context())
		defer c.Done()
		if c == nil {
			t.Error("the connection is not calm")
			return
		}
		h(c, w, r)
	}))
	s.Listener = RefuseAmbiguous(Calm(s.Listener))
	s.Config.ConnState, s.Config.ConnContext = ConnState, ConnContext
	s.Start()
	t.Cleanup(s.Close)
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn, bufio.NewReader(conn)
}

// dismissed waits until the library has looked, and was told that it need not.
func dismissed(t *testing.T, c *Client) {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		c.mu.Lock()
		reading, dismissed := c.reading, c.dismissed
		c.mu.Unlock()
		if reading || dismissed { // it may have been quicker than the handler
			return
		}
		if time.Now().After(deadline) {
			t.Error("the library does not look for clients that go away any more, or not as it used to")
			return
		}
	}
}

func TestAWatchedClientThatGoesIsNoticed(t *testing.T) {
	watching, noticed := make(chan struct{}), make(chan error)
	conn, _ := unwatched(t, func(c *Client, _ http.ResponseWriter, r *http.Request) {
		dismissed(t, c)
		ctx, stop := c.Watch(r.Context())
		defer stop()
		close(watching)
		<-ctx.Done()
		noticed <- ctx.Err()
	})
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	<-watching
	conn.Close()
	if err := <-noticed; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestAWatchedClientThatStaysIsServed: also one that sends its next request meanwhile, and one that was not watched in the end.
func TestAWatchedClientThatStaysIsServed(t *testing.T) {
	const requests = 30
	next := make(chan struct{}, 1)
	conn, in := unwatched(t, func(c *Client, w http.ResponseWriter, r *http.Request) {
		n := len(r.URL.Path)
		if n%3 > 0 {
			dismissed(t, c)
			ctx, stop := c.Watch(r.Context())
			if n%3 == 1 {
				next <- struct{}{}
				time.Sleep(time.Millisecond)
			}
			if ctx.Err() != nil {
				t.Errorf("request %d: the client seems to have gone", n)
			}
			stop()
		}
		fmt.Fprint(w, n)
	})
	path := "/"
	send := func() {
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path)
		path += "x"
	}
	send()
	for i := range requests {
		n := i + 1
		early := n%3 == 1
		if early {
			<-next
			send()
		}
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("request %d: %v", n, err)
		}
		if body, err := io.ReadAll(resp.Body); err != nil || string(body) != fmt.Sprint(n) {
			t.Fatalf("request %d: %q, %v", n, body, err)
		}
		if !early && n < requests {
			send()
		}
	}
}

// TestWriteDeadlinesOfCalmConnectionsHold: also those that are taken back.
func TestWriteDeadlinesOfCalmConnectionsHold(t *testing.T) {
	c, _ := calmPair(t)
	_ = c.SetWriteDeadline(time.Time{})
	if _, err := c.Write([]byte("x")); err != nil {
		t.Errorf("without a deadline: %v", err)
	}
	_ = c.SetDeadline(longAgo)
	if _, err := c.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after the deadline: %v", err)
	}
	_ = c.SetWriteDeadline(time.Time{})
	if _, err := c.Write([]byte("x")); err != nil {
		t.Errorf("when it was taken back: %v", err)
	}
}
