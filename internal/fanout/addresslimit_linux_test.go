package fanout

import (
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/freshet-io/freshet/internal/wire"
)

func TestAFloodFromOneAddressLeavesRoomForOthers(t *testing.T) {
	const limit = 5
	addresses := wire.NewAddressLimit(limit, nil)
	lt := startLimited(t, addresses)
	from := func(address string) net.Conn {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
		c, err := d.Dial("tcp", lt.ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	served := func(c net.Conn, path string) bool {
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		_, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n")
		if err == nil {
			_, err = c.Read(make([]byte, 1))
		}
		return err == nil
	}
	held := make([]net.Conn, 0, limit)
	for i := range limit {
		// Streams that were taken, requests of net/http, and streams that net/http passed on: all of them count.
		path := []string{"/stream", "/plain", "/stream"}[i%3]
		c := from("127.0.0.2")
		if i%3 == 2 {
			before := lt.passedOn()
			if _, err := io.WriteString(c, "GET "); err != nil {
				t.Fatal(err)
			}
			eventually(t, func() bool { return lt.passedOn() > before })
			if _, err := io.WriteString(c, "/stream HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		} else if !served(c, path) {
			t.Fatalf("connection %d was refused", i)
		}
		held = append(held, c)
	}
	for range 20 {
		if served(from("127.0.0.2"), "/stream") {
			t.Fatal("one too many was served")
		}
	}
	if !served(from("127.0.0.3"), "/stream") {
		t.Error("somebody else was refused")
	}
	if n := addresses.Refused(); n != 20 {
		t.Errorf("%d refusals are counted", n)
	}
	for _, c := range held {
		c.Close()
	}
	eventually(t, func() bool { // every one of them is noticed
		permits := make([]wire.Permit, 0, limit)
		for range limit {
			if p, ok := addresses.Acquire(netip.MustParseAddr("127.0.0.2")); ok {
				permits = append(permits, p)
			}
		}
		for _, p := range permits {
			addresses.Release(p)
		}
		return len(permits) == limit
	})
	for i := range limit {
		if !served(from("127.0.0.2"), "/stream") {
			t.Fatalf("a place that became free was not given again, after %d", i)
		}
	}
}
