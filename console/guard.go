package console

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// guard sets the headers that keep a page with a token in its memory from being turned against its user. Scripts come from
// us alone and never from a text (no inline script, no eval, and Trusted Types turn every use of a text as markup into an
// error); requests go to us and to the subscriber interface; nobody may frame the page.
func guard(h http.Header, subscriberURL string) {
	connect := "'self'"
	if source := originSource(subscriberURL); source != "" {
		connect += " " + source
	}
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; "+
		"img-src 'self' data:; connect-src "+connect+"; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; "+
		"require-trusted-types-for 'script'; trusted-types 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
}

// originSource is how a policy names the origin of a URL. The language of policies has no IPv6 addresses, so for those
// it names the scheme.
func originSource(raw string) string {
	u, err := url.Parse(raw)
	if raw == "" || err != nil {
		return ""
	}
	if strings.Contains(u.Hostname(), ":") {
		return u.Scheme + ":"
	}
	return u.Scheme + "://" + u.Host
}

// subscriberURL is where the browser that sent r finds the subscriber interface: where the settings say, or on the
// host it found us on. Empty if nobody knows.
func (s *site) subscriberURL(r *http.Request) string {
	if s.SubscriberURL != "" {
		return strings.TrimRight(s.SubscriberURL, "/")
	}
	host := hostname(r.Host)
	if s.SubscriberPort == 0 || host == "" {
		return ""
	}
	scheme := "http"
	if s.Secure {
		scheme = "https"
	}
	return scheme + "://" + net.JoinHostPort(host, strconv.Itoa(s.SubscriberPort))
}

// hostname returns the host of a Host header without its port, or "" for what is no plain name or address: the text ends
// up in a policy, where it must not be able to say anything else.
func hostname(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(hostport, "["), "]")
	}
	if address, err := netip.ParseAddr(host); err == nil && address.Zone() == "" {
		return host
	}
	for _, c := range []byte(host) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '-' || c == '_') {
			return ""
		}
	}
	return host
}
