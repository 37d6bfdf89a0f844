package poll

import (
	"errors"
	"net/netip"
	"syscall"

	"code.dny.dev/ssrf"
)

// newGuard returns a check of every address that is dialled: after the name was resolved, for each of its addresses, and
// so again after each redirect. What is not a public address of the internet is refused, however it was spelled: loopback,
// private, link-local (with the metadata services of clouds), carrier NAT, multicast, reserved, and IPv6 forms that lead to
// IPv4. Any port is fine: APIs live on many.
func newGuard() func(network, address string, _ syscall.RawConn) error {
	return ssrf.New(ssrf.WithAnyPort(), ssrf.WithDeniedV4Prefixes(wireServer)).Safe
}

// wireServer is a public address at which one cloud's machines find their metadata.
var wireServer = netip.MustParsePrefix("168.63.129.16/32")

// isGuarded reports whether the guard refused to dial.
func isGuarded(err error) bool {
	return errors.Is(err, ssrf.ErrProhibitedIP) || errors.Is(err, ssrf.ErrProhibitedNetwork) || errors.Is(err, ssrf.ErrInvalidHostPort)
}
