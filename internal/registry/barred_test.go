package registry

import (
	"net"
	"net/netip"
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
		if !(Barred{netip.MustParseAddrPort(test.bound)}).Covers(netip.MustParseAddrPort(test.to)) {
			t.Errorf("%s does not lead to %s", test.to, test.bound)
		}
	}
	for _, test := range []struct{ bound, to string }{
		{"127.0.0.1:8001", "127.0.0.1:6080"}, {"[::]:8001", "192.0.2.8:8001"}, {"192.0.2.7:8001", "127.0.0.1:8001"}, {"127.0.0.1:8001", "192.0.2.7:8001"},
	} {
		if (Barred{netip.MustParseAddrPort(test.bound)}).Covers(netip.MustParseAddrPort(test.to)) {
			t.Errorf("%s leads to %s", test.to, test.bound)
		}
	}
	if (Barred{}).Covers(netip.MustParseAddrPort("127.0.0.1:80")) {
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
