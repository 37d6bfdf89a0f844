package server

import (
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// TestWhoTakesNoAnswersIsCut: it asks on and on, and reads nothing.
func TestWhoTakesNoAnswersIsCut(t *testing.T) {
	t.Parallel()
	const stall = 2 * time.Second
	r := runWithin(t, bounds{stall: stall}, nil)
	for listener, path := range map[string]string{"gateway": "/api/v1/api-browser/index.html", "admin": "/metrics"} {
		t.Run(listener, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", r.address(listener))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			requests := []byte(strings.Repeat("GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n", 100))
			for end := time.Now().Add(60 * stall); time.Now().Before(end); {
				_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
				if _, err := conn.Write(requests); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
					return
				}
			}
			t.Error("it is never cut")
		})
	}
}
