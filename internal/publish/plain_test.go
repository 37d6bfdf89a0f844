package publish

import (
	"bufio"
	"bytes"
	"net/http"
	"testing"
)

// FuzzReadPlain holds the desk's reader of heads against the library's: what it calls plain, the library reads as the same
// publication.
func FuzzReadPlain(f *testing.F) {
	for _, head := range []string{
		"POST /publish/v1/topics/0f8fad5b-d9cb-469f-a165-70867728950e HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nX-Sd-Publisher-Key: k\r\nContent-Length: 2\r\n\r\n",
		"POST /a HTTP/1.1\r\nhost: [::1]:80\r\nCONTENT-TYPE: application/json; charset=utf-8\r\nx-sd-publisher-key:\t k \r\ncontent-length:0002\r\nConnection: Keep-Alive\r\nAccept: */*\r\n\r\n{}",
		"POST /a HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nX-Sd-Publisher-Key: k\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
		"POST // HTTP/1.1\r\n\r\n\r\n",
	} {
		f.Add([]byte(head))
	}
	f.Fuzz(func(t *testing.T, read []byte) {
		req, ok := readPlain(read)
		if !ok {
			return
		}
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(read)))
		if err != nil {
			t.Fatalf("plain, but %v", err)
		}
		h := r.Header
		if r.Method != http.MethodPost || r.URL.Path != req.path || r.URL.RawQuery != "" || r.ProtoMinor != 1 || r.Close ||
			len(r.TransferEncoding) > 0 || r.ContentLength != int64(req.length) || h.Get("X-Sd-Publisher-Key") != req.key {
			t.Errorf("read as %+v, the library says %+v", req, r)
		}
		for _, name := range []string{"Expect", "Upgrade", "If-Match", "Idempotency-Key", "Content-Encoding", "Origin"} {
			if h.Get(name) != "" {
				t.Errorf("plain with %s", name)
			}
		}
	})
}
