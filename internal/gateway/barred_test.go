package gateway

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
)

func TestWhichAddressesLeadToTheAdministrationListener(t *testing.T) {
	own := ownAddress(t)
	for _, test := range []struct{ bound, to string }{
		{"127.0.0.1:8001", "127.0.0.1:8001"}, {"127.0.0.1:8001", "0.0.0.0:8001"}, {"127.0.0.1:8001", "[::]:8001"},
		{"127.0.0.1:8001", "[::1]:8001"}, {"127.0.0.1:8001", "[::ffff:127.0.0.1]:8001"}, {"127.0.0.1:8001", "127.9.9.9:8001"},
		{"[::]:8001", "127.0.0.1:8001"}, {"0.0.0.0:8001", "[::1%lo]:8001"}, {"192.0.2.7:8001", "192.0.2.7:8001"},
		{"192.0.2.7:8001", "[::ffff:192.0.2.7]:8001"}, {"192.0.2.7:8001", "0.0.0.0:8001"}, {"[::]:8001", own + ":8001"},
	} {
		if !(Barred{netip.MustParseAddrPort(test.bound)}).covers(netip.MustParseAddrPort(test.to)) {
			t.Errorf("%s does not lead to %s", test.to, test.bound)
		}
	}
	for _, test := range []struct{ bound, to string }{
		{"127.0.0.1:8001", "127.0.0.1:6080"}, {"[::]:8001", "192.0.2.8:8001"}, {"192.0.2.7:8001", "127.0.0.1:8001"}, {"127.0.0.1:8001", "192.0.2.7:8001"},
	} {
		if (Barred{netip.MustParseAddrPort(test.bound)}).covers(netip.MustParseAddrPort(test.to)) {
			t.Errorf("%s leads to %s", test.to, test.bound)
		}
	}
	if (Barred{}).covers(netip.MustParseAddrPort("127.0.0.1:80")) {
		t.Error("nothing is barred, and yet")
	}
}

// ownAddress is an address of this machine, in a form that stands before a port.
func ownAddress(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil || len(all) == 0 {
		t.Fatalf("this machine has no address: %v", err)
	}
	ip := netip.MustParsePrefix(all[len(all)-1].String()).Addr()
	if ip.Is6() {
		return "[" + ip.String() + "]"
	}
	return ip.String()
}

// TestTheAdministrationListenerIsNoUpstream however it came to be registered: a name may mean something else by then, and another
// node may have another address.
func TestTheAdministrationListenerIsNoUpstream(t *testing.T) {
	var reached atomic.Int64
	admin := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer admin.Close()
	_, port, _ := net.SplitHostPort(admin.Listener.Addr().String())
	w := newWorld(t, func(o *Options) { o.Barred = Bar(admin.Listener.Addr()) })
	for path, upstream := range map[string]string{"/a": "http://127.0.0.1:" + port, "/b": "http://localhost:" + port, "/c": "http://0.0.0.0:" + port + "/deep"} {
		w.register(path, upstream)
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			r, err := http.NewRequestWithContext(t.Context(), method, w.front.URL+path, strings.NewReader("x"))
			if err != nil {
				t.Fatal(err)
			}
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
			if answer.StatusCode < 500 {
				t.Errorf("%s %s answers %d", method, upstream, answer.StatusCode)
			}
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("%d requests got through", n)
	}
	if !strings.Contains(w.logs.String(), "administration listener") {
		t.Error("the log does not say why")
	}
}
