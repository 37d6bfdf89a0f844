package httpkit

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// ParseAddress reads an address with or without a port.
func ParseAddress(text string) (netip.Addr, bool) { return parseAddress(text) }

// ClientAddress is the address a request is counted under: IPv4 as it is, IPv6 by its /64, since one customer
// commands a whole one.
func ClientAddress(r *http.Request) string {
	addr, ok := parseAddress(r.RemoteAddr)
	if !ok {
		return r.RemoteAddr
	}
	if addr.Is4() {
		return addr.String()
	}
	prefix, err := addr.Prefix(64)
	if err != nil {
		return addr.String()
	}
	return prefix.String()
}

// parseAddress reads an address with or without a port.
func parseAddress(text string) (netip.Addr, bool) {
	if host, _, err := net.SplitHostPort(text); err == nil {
		text = host
	}
	addr, err := netip.ParseAddr(strings.TrimSpace(text))
	return addr.Unmap().WithZone(""), err == nil
}

// Proxies are the networks of proxies whose forwarding headers are believed.
type Proxies []netip.Prefix

// Trust reports whether the peer that sent the request is such a proxy, and the address of the client that it
// forwards: of those in X-Forwarded-For the last one that is no trusted proxy itself, since everything before it could
// have been written by the client. Without one the peer itself is the client.
func (p Proxies) Trust(r *http.Request) (client string, trusted bool) {
	if len(p) == 0 {
		return r.RemoteAddr, false
	}
	peer, ok := parseAddress(r.RemoteAddr)
	if !ok || !p.contain(peer) {
		return r.RemoteAddr, false
	}
	if client, found := forwardedFor(r.Header.Values("X-Forwarded-For"), p.contain); found {
		return net.JoinHostPort(client.String(), "0"), true
	}
	return r.RemoteAddr, true
}

func (p Proxies) contain(addr netip.Addr) bool {
	return slices.ContainsFunc(p, func(network netip.Prefix) bool { return network.Contains(addr) })
}

// forwardedFor walks from the nearest hop outwards and stops at what it cannot read.
func forwardedFor(headers []string, isTrusted func(netip.Addr) bool) (client netip.Addr, found bool) {
	hops := strings.Split(strings.Join(headers, ","), ",")
	for _, hop := range slices.Backward(hops) {
		addr, ok := parseAddress(strings.TrimSpace(hop))
		if !ok {
			return client, found
		}
		client, found = addr, true
		if !isTrusted(addr) {
			return client, true
		}
	}
	return client, found
}
