package poll

import (
	"errors"
	"syscall"

	"code.dny.dev/ssrf"
)

// newGuard returns a check of every address that is dialled: after the name was resolved, for each of its addresses, and
// so again after each redirect. What is not a public address of the internet is refused, however it was spelled: loopback,
// private, link-local (with the metadata services of clouds), carrier NAT, multicast, reserved, and IPv6 forms that lead to
// IPv4. Any port is fine: APIs live on many.
func newGuard() func(network, address string, _ syscall.RawConn) error {
	return ssrf.New(ssrf.WithAnyPort()).Safe
}

// isGuarded reports whether the guard refused to dial.
func isGuarded(err error) bool {
	return errors.Is(err, ssrf.ErrProhibitedIP) || errors.Is(err, ssrf.ErrProhibitedNetwork) || errors.Is(err, ssrf.ErrInvalidHostPort)
}
