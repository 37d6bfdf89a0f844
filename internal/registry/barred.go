package registry

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"

	"github.com/freshet-io/freshet"
)

// Barred is an address of this process that no upstream may lead to: what is registered is reached by everybody, and an
// administration listener must not be. The zero value bars nothing.
type Barred struct{ at netip.AddrPort }

// Bar returns the address of a listener as one that is barred.
func Bar(listener net.Addr) Barred {
	at, _ := netip.ParseAddrPort(listener.String()) // one that is no such address cannot be reached by an upstream's
	return Barred{at}
}

var errBarred = errors.New("the upstream is the administration listener of this server, which is not for its clients: register another upstream_url")

// Covers reports whether a connection to the address would end at the barred one.
func (b Barred) Covers(to netip.AddrPort) bool {
	bound, ip := b.at.Addr().Unmap().WithZone(""), to.Addr().Unmap().WithZone("")
	switch {
	case !b.at.IsValid() || to.Port() != b.at.Port():
		return false
	case ip.IsUnspecified(): // leads to the machine itself
		return true
	case ip.IsLoopback():
		return bound.IsLoopback() || bound.IsUnspecified()
	case bound.IsUnspecified():
		return isOwn(ip)
	}
	return ip == bound
}

// isOwn reports whether an address is one of this machine's.
func isOwn(ip netip.Addr) bool {
	all, err := net.InterfaceAddrs()
	return err != nil || slices.ContainsFunc(all, func(a net.Addr) bool {
		own, err := netip.ParsePrefix(a.String())
		return err == nil && own.Addr().Unmap() == ip
	})
}

// Control is asked for each address that is dialled, after its name was resolved: whatever a name meant when it was registered,
// and whoever registered it.
func (b Barred) Control(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err == nil && b.Covers(to) {
		return errBarred
	}
	return nil
}

// check refuses to register what plainly leads to the barred address. Other names are looked at when they are dialled.
func (b Barred) check(api *freshet.API) error {
	u, _ := url.Parse(api.UpstreamURL)
	if u == nil {
		return nil // it was refused already
	}
	host, port := u.Hostname(), u.Port()
	if port == "" {
		port = "80"
		if u.Scheme == "https" {
			port = "443"
		}
	}
	if name := strings.ToLower(strings.TrimSuffix(host, ".")); name == "localhost" || strings.HasSuffix(name, ".localhost") {
		host = "127.0.0.1"
	}
	if to, err := netip.ParseAddrPort(net.JoinHostPort(host, port)); err == nil && b.Covers(to) {
		f := faults{}
		f.add("upstream_url", "must not lead to the administration listener: it is not for clients of the gateway")
		return f.err(freshet.Invalid)
	}
	return nil
}
