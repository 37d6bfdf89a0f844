package gateway

import (
	"net/http"
	"strings"

	"github.com/freshet-io/freshet/internal/registry"
)

// requestSize bounds request bodies, by a number of bytes.
type requestSize int64

func newRequestSize(c registry.Config, _ *Gateway) (plugin, error) {
	megabytes, _ := c.Number("allowed_payload_size")
	return requestSize(megabytes << 20), nil
}

const tooLargeText = "Request size limit exceeded"

var tooLargeAnswer = &answer{status: http.StatusRequestEntityTooLarge, message: tooLargeText}

// access refuses what announces too much, and cuts off what turns out to be too much.
func (most requestSize) access(x *exchange) *answer {
	r := x.r
	if r.ContentLength > int64(most) {
		if strings.EqualFold(strings.TrimSpace(r.Header.Get("Expect")), "100-continue") {
			return &answer{status: http.StatusExpectationFailed, message: tooLargeText}
		}
		return tooLargeAnswer
	}
	if r.ContentLength < 0 && r.Body != nil {
		r.Body = http.MaxBytesReader(nil, r.Body, int64(most))
	}
	return nil
}
