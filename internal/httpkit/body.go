package httpkit

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// TimeBodies gives a client so long to send a body, whether the handler reads it or not. Where it does not, net/http does, once
// it has answered.
func TimeBodies(patience time.Duration) Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Body != nil && r.Body != http.NoBody {
				conn := http.NewResponseController(w)
				_ = conn.SetReadDeadline(time.Now().Add(patience)) // connections without deadlines are not from the network
				r = withBody(r, &timedBody{r.Body, conn})
			}
			next.ServeHTTP(w, r)
		})
	}
}

type timedBody struct {
	io.ReadCloser
	conn *http.ResponseController
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		_ = b.conn.SetReadDeadline(time.Time{}) // the handler may take its time
	}
	return n, err
}
