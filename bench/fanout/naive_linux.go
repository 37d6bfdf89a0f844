package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// naive is how most people would write it: a handler, so a goroutine, and a channel per subscriber. Publishing waits for
// channels that are full, so nothing is lost.
type naive struct {
	mu          sync.RWMutex
	subscribers map[string]map[chan []byte]struct{} // by path
}

const (
	naiveQueue     = 64
	heartbeatEvery = 10 * time.Second // of every server here
)

func startNaive(ctx context.Context, _ *bench, at *place) (*endpoint, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	address := loopback(ports[0])
	p, err := startProcess(self, "-naive", address.String())
	if err != nil {
		return nil, err
	}
	return &endpoint{
		publish:   address.String(),
		subscribe: address,
		topics:    at.makeTopics(func(name string) topic { return peerTopic("/"+name, "/"+name) }),
		process:   p,
	}, awaitPort(ctx, p, address.String())
}

// serveNaive is the server's own process.
func serveNaive(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return http.Serve(l, &naive{subscribers: make(map[string]map[chan []byte]struct{})})
}

func (n *naive) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		n.publish(w, r)
		return
	}
	ch := make(chan []byte, naiveQueue)
	n.enter(r.URL.Path, ch)
	defer n.leave(r.URL.Path, ch)
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w).Flush
	_ = flush() // a broken connection shows at the next write
	beat := time.NewTicker(heartbeatEvery)
	defer beat.Stop()
	for {
		frame := []byte(":\n\n")
		select {
		case frame = <-ch:
		case <-beat.C:
		case <-r.Context().Done():
			return
		}
		if _, err := w.Write(frame); err != nil || flush() != nil {
			return
		}
	}
}

func (n *naive) enter(path string, ch chan []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.subscribers[path] == nil {
		n.subscribers[path] = make(map[chan []byte]struct{})
	}
	n.subscribers[path][ch] = struct{}{}
}

// leave empties the channel until nobody can be waiting to fill it.
func (n *naive) leave(path string, ch chan []byte) {
	go func() {
		for range ch {
		}
	}()
	n.mu.Lock()
	delete(n.subscribers[path], ch)
	close(ch)
	n.mu.Unlock()
}

func (n *naive) publish(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	frame := fmt.Appendf(nil, "data: %s\n\n", body)
	n.mu.RLock()
	for ch := range n.subscribers[r.URL.Path] {
		ch <- frame
	}
	n.mu.RUnlock()
	w.WriteHeader(http.StatusNoContent)
}
