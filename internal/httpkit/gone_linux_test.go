package httpkit

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestAClientThatHungUpIsGoneSoon(t *testing.T) {
	for _, encrypted := range []bool{false, true} {
		t.Run(fmt.Sprint("tls ", encrypted), func(t *testing.T) {
			entered, answers := make(chan struct{}), make(chan bool, 2)
			leave := make(chan struct{})
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				answers <- ClientGone(r)
				close(entered)
				<-leave
				for deadline := time.Now().Add(time.Minute); !ClientGone(r) && time.Now().Before(deadline); {
					time.Sleep(time.Millisecond)
				}
				answers <- ClientGone(r)
			}))
			s.Config.ConnContext = ConnContext
			start := s.Start
			if encrypted {
				start = s.StartTLS
			}
			start()
			defer s.Close()
			conn, err := net.Dial("tcp", s.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			if encrypted {
				conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // the test's own server
			}
			// The body never comes to its end, so that the library does not look at the connection by itself.
			if _, err := fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			<-entered
			conn.Close()
			close(leave)
			if before, after := <-answers, <-answers; before || !after {
				t.Errorf("gone before %v, after %v", before, after)
			}
		})
	}
}

// TestAClientThatHasNothingMoreToSayIsThere: not at every try, on a busy machine, but the context says at every try that it is gone.
func TestAClientThatHasNothingMoreToSayIsThere(t *testing.T) {
	gone := make(chan bool, 1)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		gone <- ClientGone(r)
	}))
	s.Config.ConnContext = ConnContext
	s.Start()
	defer s.Close()
	for range 100 {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		_ = conn.(*net.TCPConn).CloseWrite()
		is := <-gone
		conn.Close()
		if !is {
			return
		}
	}
	t.Error("it is always gone")
}
