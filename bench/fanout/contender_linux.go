package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// contender is a server that can be measured.
type contender struct {
	name    string
	ready   func(*bench) error // installs or builds what is needed, once per run; its error says what is missing
	start   func(context.Context, *bench, *place) (*endpoint, error)
	patches bool // sends patches of a document, and may merge publications that a subscriber has not got yet
	lossy   bool // promises nothing: what did not arrive is lost
	limit   bool // no product: what the machine allows
	silent  bool // of a limit: nothing is published to it
}

// endpoint is a running server.
type endpoint struct {
	publish   string // host:port
	subscribe netip.AddrPort
	topics    []topic // as many as were asked for

	// document is what a subscriber of patches must hold once it has payload; nil for others.
	document func(payload []byte) []byte

	parallel int // connections it can take at a time, if that is less than usual
	process  *process
	admin    string // where profiles can be had
}

// topic is what publishers and subscribers of one stream send.
type topic struct {
	request  []byte // of a subscriber
	compress []byte // the same, asking for compression; nil if the server cannot

	// appendPublication appends the request that publishes payload, a JSON string.
	appendPublication func(dst, payload []byte) []byte
}

// makeTopics makes as many as were asked for, of servers where a topic is there once its name is used.
func (p *place) makeTopics(named func(name string) topic) []topic {
	all := make([]topic, p.topics)
	for i := range all {
		all[i] = named(strconv.Itoa(i))
	}
	return all
}

// place is what one start of a server is given.
type place struct {
	dir        string // for its files
	payloadLen int    // of every publication, with its quotes
	topics     int    // how many there shall be
}

func (p *place) path(name string) string { return filepath.Join(p.dir, name) }

func (p *place) write(name, text string) (string, error) {
	return p.path(name), os.WriteFile(p.path(name), []byte(text), 0o644)
}

// freePorts returns ports of the loopback interface that nobody listens on.
func freePorts(n int) ([]int, error) {
	ports := make([]int, 0, n)
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

func loopback(port int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port))
}

// getRequest is a subscriber's request for path.
func getRequest(path, more string) []byte {
	return fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n%s\r\n", path, more)
}

// appendPost appends a POST of the given parts of a body.
func appendPost(dst []byte, head string, parts ...[]byte) []byte {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	dst = append(dst, head...)
	dst = append(dst, "Content-Length: "...)
	dst = strconv.AppendInt(dst, int64(n), 10)
	dst = append(dst, "\r\n\r\n"...)
	for _, p := range parts {
		dst = append(dst, p...)
	}
	return dst
}

// Peers are sent an object with one member.
var objectBegin, objectEnd = []byte(`{"live":`), []byte(`}`)

// peerTopic is a topic of a server that delivers what it is sent.
func peerTopic(publish, subscribe string) topic {
	head := "POST " + publish + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	return topic{
		request:           getRequest(subscribe, ""),
		appendPublication: func(dst, payload []byte) []byte { return appendPost(dst, head, objectBegin, payload, objectEnd) },
	}
}

// awaitPort waits until somebody listens.
func awaitPort(ctx context.Context, p *process, address string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		c, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			return c.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("nobody listens on %s; the server says: %s", address, p.output())
		case <-p.ended:
			return fmt.Errorf("the server ended; it says: %s", p.output())
		case <-time.After(20 * time.Millisecond):
		}
	}
}
