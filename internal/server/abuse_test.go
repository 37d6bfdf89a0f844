package server

import (
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// TestHeadersThatDripAreCutAndDisturbNobody: many connections that send their request byte by byte, on every listener, are
// cut by the server, while it answers others.
func TestHeadersThatDripAreCutAndDisturbNobody(t *testing.T) {
	r := run(t, nil)
	paths := map[string]string{"gateway": "/console/", "admin": "/livez", "subscriber": "/v1/topics/none"}
	var dripping sync.WaitGroup
	for listener := range paths {
		for range 20 {
			dripping.Go(func() { drip(t, r.address(listener), "GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ") })
		}
	}
	cut := make(chan struct{})
	go func() { dripping.Wait(); close(cut) }()
	others := &http.Client{Transport: client.Transport}
	answered := 0
	for done := false; !done; answered++ {
		for listener, path := range paths {
			resp, err := others.Get("http://" + r.address(listener) + path)
			if err != nil {
				t.Fatalf("meanwhile the %s listener answers: %v", listener, err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				t.Fatalf("meanwhile the %s listener answers %d", listener, resp.StatusCode)
			}
		}
		select {
		case <-cut:
			done = true
		case <-time.After(100 * time.Millisecond):
		}
	}
	if answered == 0 {
		t.Error("nobody else was answered")
	}
}

// drip sends a request that never ends, until the server has had enough.
func drip(t *testing.T, address, begin string) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	closed := make(chan struct{})
	go func() { // it may say why
		defer close(closed)
		_, _ = io.Copy(io.Discard, conn)
	}()
	_ = conn.SetDeadline(time.Now().Add(2 * time.Minute)) // far beyond any limit of the server's
	for _, b := range []byte(begin) {
		_, _ = conn.Write([]byte{b})
	}
	for began := time.Now(); ; {
		select {
		case <-closed:
			return
		case <-time.After(200 * time.Millisecond):
			if time.Since(began) > 90*time.Second {
				t.Error("the server waits for ever")
				return
			}
			_, _ = conn.Write([]byte("x"))
		}
	}
}

// TestBodiesThatDripAreCutOnEveryListener, whether somebody reads them or not.
func TestBodiesThatDripAreCutOnEveryListener(t *testing.T) {
	t.Parallel()
	r := runWithin(t, bounds{body: 2 * time.Second}, nil)
	var dripping sync.WaitGroup
	for listener, lines := range map[string][]string{
		"gateway":    {"PUT /api/v1/session", "POST /console/", "POST /nowhere"},
		"admin":      {"POST /apis/", "POST /livez"},
		"subscriber": {"POST /v1/topics/none", "GET /v1/topics/none"},
	} {
		for _, line := range lines {
			for _, framing := range []string{"Content-Length: 1000000\r\n\r\n\"", "Transfer-Encoding: chunked\r\n\r\nfffff\r\n\""} {
				dripping.Go(func() {
					drip(t, r.address(listener), line+" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+framing)
				})
			}
		}
	}
	dripping.Wait()
}
