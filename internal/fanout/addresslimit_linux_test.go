package fanout

import (
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"
)

func TestAFloodFromOneAddressLeavesRoomForOthers(t *testing.T) {
	const limit = 5
	ft := startLimited(t, NewAddressLimit(limit, nil))
	from := func(address string) net.Conn {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
		c, err := d.Dial("tcp", ft.ln.Addr().String())
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
		// Streams of the front, requests of net/http, and streams that net/http passed on: all of them count.
		path := []string{"/stream", "/plain", "/stream"}[i%3]
		c := from("127.0.0.2")
		if i%3 == 2 {
			before := ft.passedOn()
			if _, err := io.WriteString(c, "GET "); err != nil {
				t.Fatal(err)
			}
			eventually(t, func() bool { return ft.passedOn() > before })
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
	if n := ft.fan.addresses.Refused(); n != 20 {
		t.Errorf("%d refusals are counted", n)
	}
	for _, c := range held {
		c.Close()
	}
	eventually(t, func() bool { // every one of them is noticed
		ft.fan.addresses.mu.Lock()
		defer ft.fan.addresses.mu.Unlock()
		return len(ft.fan.addresses.permits) == 1
	})
	for i := range limit {
		if !served(from("127.0.0.2"), "/stream") {
			t.Fatalf("a place that became free was not given again, after %d", i)
		}
	}
}

func TestAnAddressLimitCountsNetworksAndSparesProxies(t *testing.T) {
	l := NewAddressLimit(1, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})
	acquire := func(ip string) (Permit, bool) { return l.acquire(netip.MustParseAddr(ip)) }
	first, ok := acquire("2001:db8::1")
	if _, again := acquire("2001:db8::ffff"); !ok || again {
		t.Error("a /64 is not one address")
	}
	if _, ok := acquire("2001:db8:0:1::1"); !ok {
		t.Error("another /64 was refused")
	}
	for range 3 {
		if _, ok := acquire("10.1.2.3"); !ok {
			t.Error("a proxy was refused")
		}
	}
	l.release(first)
	if _, ok := acquire("2001:db8::2"); !ok {
		t.Error("a free place was not given")
	}
	if _, ok := NewAddressLimit(0, nil).acquire(netip.MustParseAddr("192.0.2.1")); !ok {
		t.Error("no limit refused somebody")
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.NotFoundHandler()}
	go srv.Serve(NewAddressLimit(1, nil).Listen(ln))
	defer srv.Close()
	get := func() error {
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + ln.Addr().String())
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	holder, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for range 100 { // the listener may not have accepted the holder yet
		if err = get(); err != nil {
			break
		}
	}
	if err == nil {
		t.Error("a second connection was served")
	}
	holder.Close()
	eventually(t, func() bool { return get() == nil }) // somebody is served again
}
