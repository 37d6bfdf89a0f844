package wire

import (
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"
)

func TestAnAddressLimitCountsNetworksAndSparesProxies(t *testing.T) {
	l := NewAddressLimit(1, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})
	acquire := func(ip string) (Permit, bool) { return l.Acquire(netip.MustParseAddr(ip)) }
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
	l.Release(first)
	if _, ok := acquire("2001:db8::2"); !ok {
		t.Error("a free place was not given")
	}
	if _, ok := NewAddressLimit(0, nil).Acquire(netip.MustParseAddr("192.0.2.1")); !ok {
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
	for deadline := time.Now().Add(time.Minute); get() != nil; time.Sleep(time.Millisecond) { // somebody is served again
		if time.Now().After(deadline) {
			t.Fatal("nobody is served again")
		}
	}
}
