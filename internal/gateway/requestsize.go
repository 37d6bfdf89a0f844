package gateway

import (
	"net/http"
	"strings"
)

// request-size-limiting bounds request bodies.
var _ = attachable(kind{
	name:     "request-size-limiting",
	priority: 950,
	schema: schema{
		Fields: map[string]field{
			"allowed_payload_size": {Type: typeNumber, Default: int64(128), check: checkPayloadSize}, // megabytes
		},
	},
	configure: func(c config, _ *Gateway) (plugin, error) {
		n, _ := c.number("allowed_payload_size")
		return requestSize(n << 20), nil
	},
})

const maxPayload = 1 << 30 // megabytes: more would overflow, and is no limit

func checkPayloadSize(v any) string {
	if n, _ := v.(int64); n <= 0 || n > maxPayload {
		return "allowed_payload_size must be greater than zero"
	}
	return ""
}

// requestSize is a number of bytes.
type requestSize int64

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
