package httpkit

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
)

func TestOnlyTrustedProxiesAreBelieved(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for _, c := range []struct {
		name, remote string
		forwarded    []string
		want         string
	}{
		{"no proxy", "203.0.113.7:5000", nil, "203.0.113.7"},
		{"a stranger who claims to be somebody else", "203.0.113.7:5000", []string{"198.51.100.1"}, "203.0.113.7"},
		{"one proxy", "10.0.0.1:5000", []string{"198.51.100.1"}, "198.51.100.1"},
		{"a client that forged the front", "10.0.0.1:5000", []string{"1.2.3.4, 198.51.100.1"}, "198.51.100.1"},
		{"two proxies", "10.0.0.1:5000", []string{"198.51.100.1, 10.0.0.2"}, "198.51.100.1"},
		{"two headers", "10.0.0.1:5000", []string{"1.2.3.4", "198.51.100.1"}, "198.51.100.1"},
		{"with a port", "10.0.0.1:5000", []string{"198.51.100.1:8080"}, "198.51.100.1"},
		{"IPv6 counts by its network", "[fd00::1]:5000", []string{"2001:db8:1:2:3::4"}, "2001:db8:1:2::/64"},
		{"nonsense before the client", "10.0.0.1:5000", []string{"unknown, 198.51.100.1"}, "198.51.100.1"},
		{"nonsense instead of the client", "10.0.0.1:5000", []string{"unknown"}, "10.0.0.1"},
		{"only proxies", "10.0.0.1:5000", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		{"a proxy that forwards nothing", "10.0.0.1:5000", nil, "10.0.0.1"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = c.remote
		r.Header["X-Forwarded-For"] = c.forwarded
		r.RemoteAddr, _ = Proxies(trusted).Trust(r)
		if got := ClientAddress(r); got != c.want {
			t.Errorf("%s: counted as %s, want %s", c.name, got, c.want)
		}
	}
}
