package wire

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// TestHTTP2ConnectionsShareNothingUnguarded: of a connection that speaks HTTP/2 net/http reads frames in one goroutine, tells
// states in another, and runs handlers in many. The race detector sees what they share.
func TestHTTP2ConnectionsShareNothingUnguarded(t *testing.T) {
	for name, listen := range map[string]func(net.Listener) net.Listener{
		"guard": Guard,
		"server": func(l net.Listener) net.Listener {
			s := &Server{Handlers: []Handler{handlerFunc(byPath)}, HeadTimeout: time.Minute, IdleTimeout: time.Minute}
			return s.Listen(l)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				// net/http tells that a connection is idle when the last frame is written. What it writes later would order that
				// before the next read; so this frame is too long to wait in its buffer, and is alone.
				_ = http.NewResponseController(w).Flush()
				_, _ = w.Write(make([]byte, 4<<10))
			}))
			s.Config.Protocols = new(http.Protocols)
			s.Config.Protocols.SetHTTP1(true)
			s.Config.Protocols.SetUnencryptedHTTP2(true)
			s.Config.ConnState = GuardState
			s.Listener = listen(s.Listener)
			s.Start()
			defer s.Close()
			var two http.Protocols
			two.SetUnencryptedHTTP2(true)
			client := &http.Client{Transport: &http.Transport{Protocols: &two, MaxConnsPerHost: 1}}
			defer client.CloseIdleConnections()
			for range 20 { // idle and active again
				var asked sync.WaitGroup
				for range 2 {
					asked.Go(func() {
						resp, err := client.Get(s.URL)
						if err != nil {
							t.Error(err)
							return
						}
						_, _ = io.Copy(io.Discard, resp.Body)
						_ = resp.Body.Close()
					})
				}
				asked.Wait()
			}
		})
	}
}
