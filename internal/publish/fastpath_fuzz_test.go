package publish

import (
	"bufio"
	"bytes"
	"net/http"
	"testing"

	"github.com/freshet-io/freshet/internal/wire"
)

// FuzzCommonPublication: what the fast path takes, net/http reads as the same publication.
func FuzzCommonPublication(f *testing.F) {
	for _, head := range []string{
		"POST /publish/v1/topics/0f8fad5b-d9cb-469f-a165-70867728950e HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nX-Sd-Publisher-Key: k\r\nContent-Length: 2\r\n\r\n",
		"POST /a HTTP/1.1\r\nhost: [::1]:80\r\nCONTENT-TYPE: application/json; charset=utf-8\r\nx-sd-publisher-key:\t k \r\ncontent-length:2\r\nConnection: Keep-Alive\r\nAccept: */*\r\n\r\n",
		"POST /a HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nX-Sd-Publisher-Key: k\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
		"POST // HTTP/1.1\r\n\r\n\r\n",
	} {
		f.Add([]byte(head))
	}
	f.Fuzz(func(t *testing.T, read []byte) {
		var req wire.Request
		if !req.Parse(string(read)) {
			return
		}
		key, ok := commonKey(&req)
		if !ok {
			return
		}
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(read)))
		if err != nil {
			t.Fatalf("common, but %v", err)
		}
		h := r.Header
		if r.Method != http.MethodPost || r.URL.Path != req.Target || r.URL.RawQuery != "" || r.ProtoMinor != 1 || r.Close != req.IsLast ||
			len(r.TransferEncoding) > 0 || r.ContentLength != req.Length || h.Get("X-Sd-Publisher-Key") != key {
			t.Errorf("read as %+v, net/http says %+v", req, r)
		}
		for _, name := range []string{"Expect", "Upgrade", "If-Match", "Idempotency-Key", "Content-Encoding", "Origin"} {
			if h.Get(name) != "" {
				t.Errorf("common with %s", name)
			}
		}
	})
}
