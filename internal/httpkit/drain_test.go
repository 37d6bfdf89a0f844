package httpkit

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestNobodyWaitsForABodyThatIsNotSent(t *testing.T) {
	handlers := map[string]http.HandlerFunc{
		"refused unread": func(w http.ResponseWriter, _ *http.Request) {
			WriteJSON(w, http.StatusUnauthorized, ErrorBody{Message: "refused"})
		},
		"refused for its size": func(w http.ResponseWriter, r *http.Request) {
			if r.ContentLength > 4 {
				WriteJSON(w, http.StatusRequestEntityTooLarge, ErrorBody{Message: "refused"})
			}
		},
	}
	for name, handler := range handlers {
		for _, length := range []int{100, 300 << 10, 99_999_999} {
			for _, expect := range []string{"", "Expect: 100-continue\r\n"} {
				srv := httptest.NewServer(DrainBodies(handler))
				c, err := net.Dial("tcp", srv.Listener.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\n%sContent-Length: %d\r\n\r\n", expect, length)
				_ = c.SetReadDeadline(time.Now().Add(drainTime / 2)) // the answer does not wait until patience ends
				answer, err := http.ReadResponse(bufio.NewReader(c), nil)
				if err != nil || answer.StatusCode < 400 || answer.ContentLength <= 0 {
					t.Errorf("%s, %d bytes, %q: %v, %v", name, length, expect, answer, err)
				}
				_ = c.Close()
				srv.Close()
			}
		}
	}
}

func TestAConnectionWhoseBodyNeverComesIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		defer client.Close()
		srv := &http.Server{Handler: DrainBodies(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			WriteJSON(w, http.StatusUnauthorized, ErrorBody{Message: "refused"})
		}))}
		defer srv.Close()
		go srv.Serve(&oneConn{conn: server, closed: make(chan struct{})})
		go fmt.Fprintf(client, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n")
		before := time.Now()
		if _, err := io.ReadAll(client); err != nil {
			t.Error(err)
		}
		if took := time.Since(before); took < drainTime || took > 2*drainTime {
			t.Errorf("it was closed after %v", took)
		}
	})
}

// oneConn is a listener with one connection.
type oneConn struct {
	conn   net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *oneConn) Accept() (net.Conn, error) {
	if c := l.conn; c != nil {
		l.conn = nil
		return c, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *oneConn) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (*oneConn) Addr() net.Addr { return &net.TCPAddr{} }

func TestAClientThatSendsEverythingFirstStillGetsTheAnswer(t *testing.T) {
	srv := httptest.NewServer(DrainBodies(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer r.Body.Close()
		if _, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1024)); err != nil {
			WriteJSON(w, http.StatusRequestEntityTooLarge, ErrorBody{Message: "too large"})
		}
	})))
	defer srv.Close()
	c, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const length = 20 << 20
	fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", length)
	if n, err := io.Copy(c, bytes.NewReader(make([]byte, length))); err != nil {
		t.Fatalf("after %d bytes: %v", n, err)
	}
	answer, err := io.ReadAll(c)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 413 ") || !strings.Contains(string(answer), "too large") {
		t.Errorf("got %q, %v", answer, err)
	}
}
