package publish_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/publish"
	"github.com/freshet-io/freshet/internal/router"
)

// TestWhoClosesItsEndWithoutSayingSoHasGivenUp: behind a network that was cut for some time, what was given up comes with the end of its
// connection right behind it, and its publisher has long published something else.
func TestWhoClosesItsEndWithoutSayingSoHasGivenUp(t *testing.T) {
	t.Parallel()
	old := strings.Replace(post(`"old"`), "HTTP/1.1", "HTTP/1.0", 1)
	for _, c := range []struct {
		name      string
		sent      string
		published bool
	}{
		{"plain", post(`"old"`), false},
		{"plain, for more than one request", post(`"old"`, "Connection: keep-alive"), false},
		{"that the library takes", post(`"old"`, "Idempotency-Key: a"), false},
		{"its last", post(`"old"`, "Connection: close"), true},
		{"of HTTP/1.0", old, true},
		{"of HTTP/1.0, for more than one request", strings.Replace(old, "Host:", "Connection: keep-alive\r\nHost:", 1), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, true, publish.Options{})
			held := s.router.hold()
			for {
				status, document := s.closeBehind(t, held, c.sent)
				switch {
				case !c.published && (status != http.StatusServiceUnavailable || document != `"new"`):
					t.Errorf("answered %d, and the document is %s", status, document)
				case c.published && status == http.StatusServiceUnavailable:
					continue // a machine so busy that it took too long to look
				case c.published && (status != http.StatusNoContent || document != `"old"`):
					t.Errorf("answered %d, and the document is %s", status, document)
				}
				return
			}
		})
	}
}

// closeBehind sends a publication and closes its end. Before that is taken up, another one is published.
func (s *fastServer) closeBehind(t *testing.T, held *hold, sent string) (status int, document string) {
	t.Helper()
	conn := dial(t, s)
	if _, err := io.WriteString(conn, sent); err != nil {
		t.Fatal(err)
	}
	<-held.begun
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	topic := freshet.Topic{ID: fastTopic, Publisher: freshet.Publisher{Type: freshet.HTTPPost, Payload: freshet.Payload{Type: freshet.PayloadSnapshot}}}
	if _, err := s.router.Router.Publish(t.Context(), &topic, router.Publication{Body: []byte(`"new"`)}); err != nil {
		t.Fatal(err)
	}
	held.through <- struct{}{}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	body, _, err := s.router.Document(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}
