package gateway

import (
	"bufio"
	"net/http"
	"strings"
	"testing"
)

func BenchmarkShortAnswer(b *testing.B) {
	text := "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Sun, 15 Nov 2026 21:22:08 GMT\r\nContent-Type: application/json\r\nContent-Length: 432\r\nConnection: keep-alive\r\n\r\n" + strings.Repeat("x", 432)
	c := &straightConn{in: bufio.NewReader(nil)}
	from := strings.NewReader(text)
	for b.Loop() {
		from.Reset(text)
		c.in.Reset(from)
		_, _ = c.in.Peek(1)
		if _, _, ok := c.shortAnswer(http.Header{}); !ok {
			b.Fatal("not short")
		}
	}
}
