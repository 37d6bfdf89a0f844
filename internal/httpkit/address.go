package httpkit

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

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

// BelieveProxies replaces the remote address of requests that come from a trusted proxy by the client's that it
// forwards. Of the addresses in X-Forwarded-For the last one that is no trusted proxy itself counts: everything
// before it could have been written by the client.
func BelieveProxies(trusted []netip.Prefix) Middleware {
	isTrusted := func(addr netip.Addr) bool {
		return slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(addr) })
	}
	return func(next http.Handler) http.Handler {
		if len(trusted) == 0 {
			return next
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if peer, ok := parseAddress(r.RemoteAddr); ok && isTrusted(peer) {
				if client, found := forwardedFor(r.Header.Values("X-Forwarded-For"), isTrusted); found {
					r = r.WithContext(r.Context()) // a copy: the server still needs the original
					r.RemoteAddr = net.JoinHostPort(client.String(), "0")
				}
			}
			next.ServeHTTP(w, r)
		})
	}
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
