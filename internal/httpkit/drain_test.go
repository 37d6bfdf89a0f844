package httpkit

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

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
