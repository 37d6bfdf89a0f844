package subscribe_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestEveryProtocolStreams: HTTP/1.1 and HTTP/2, in the clear and over TLS, with the same behaviour.
func TestEveryProtocolStreams(t *testing.T) {
	for _, c := range []struct {
		name     string
		tls, two bool
	}{
		{"HTTP/1.1", false, false}, {"HTTP/2 in the clear", false, true}, {"HTTP/1.1 over TLS", true, false}, {"HTTP/2 over TLS", true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			h := newHarness(t, options{heartbeat: 200 * time.Millisecond}, tcpListener{ln}, 1)
			defer h.close()
			var protocols http.Protocols
			protocols.SetHTTP1(!c.two)
			protocols.SetHTTP2(c.two)
			protocols.SetUnencryptedHTTP2(c.two)
			srv := httptest.NewUnstartedServer(h.server)
			srv.Config.Protocols = &protocols
			if c.tls {
				srv.EnableHTTP2 = c.two
				srv.StartTLS()
			} else {
				srv.Start()
			}
			defer srv.Close()
			transport := &http.Transport{Protocols: &protocols, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableCompression: true}
			defer transport.CloseIdleConnections()
			h.client, h.base = &http.Client{Transport: transport}, srv.URL

			topic := h.topic("snapshot")
			h.post(topic, `{"n":0}`)
			open := func(headers header) *stream {
				ctx, cancel := context.WithCancel(t.Context())
				req, err := http.NewRequestWithContext(ctx, "GET", srv.URL+"/v1/topics/"+topic.ID+"?X-Sd-Subscriber-Key=k", nil)
				if err != nil {
					t.Fatal(err)
				}
				for name, value := range headers {
					req.Header.Set(name, value)
				}
				return h.do(req, cancel)
			}
			s := open(nil)
			defer s.close()
			want := 1
			if c.two {
				want = 2
			}
			if s.resp.ProtoMajor != want {
				t.Errorf("protocol %s", s.resp.Proto)
			}
			zipped := open(header{"X-Sd-Compress": "true", "Accept-Encoding": "gzip"})
			defer zipped.close()
			s.expect("snapshot", `{"n":0}`)
			zipped.expect("snapshot", `{"n":0}`)
			for n := range 20 {
				h.post(topic, fmt.Sprintf(`{"n":%d}`, n+1))
				s.expect("patch", "")
				zipped.expect("patch", "")
			}
			if e, err := s.next(); err != nil || e.comment == "" {
				t.Errorf("heartbeat: %v, %v", e, err)
			}
			ctx, cancel := h.within(time.Second)
			defer cancel()
			done := make(chan error, 1)
			go func() { done <- h.server.Drain(ctx) }()
			for {
				e, err := s.next()
				if err != nil {
					break
				}
				if e.retry == "" && e.comment == "" {
					t.Errorf("%v", e)
				}
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}
