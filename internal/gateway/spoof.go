package gateway

import (
	"net/http"
	"slices"
	"strings"
)

// identities are what upstreams of the dialect take for the gateway's word about who asks. Not all of them are ours.
var identities = []string{"X-Consumer-", "X-Credential-", "X-Anonymous-", "X-Authenticated-"}

// dropSpoofed takes away what only the gateway may say to an upstream. Many servers read X_Consumer_ID as the same
// header as X-Consumer-ID, so that spelling goes too. What is said about the way here stays only if a trusted proxy says
// it in the usual spelling.
func dropSpoofed(r *http.Request) {
	for name := range r.Header {
		if isFraming(name) {
			delete(r.Header, name)
			continue
		}
		if name == "" || name[0] != 'X' {
			continue
		}
		aboutTheWay := hasPrefixLike(name, "X-Forwarded") || hasPrefixLike(name, "X-Real-Ip")
		if isIdentity(name) || aboutTheWay && (strings.IndexByte(name, '_') >= 0 || !isTrusted(r)) {
			delete(r.Header, name)
		}
	}
	if values, ok := r.Header["Connection"]; ok {
		r.Header["Connection"] = withoutIdentities(values)
	}
}

// isFraming reports whether a header says where the body ends in a spelling that we do not go by, but an upstream may. The
// library has taken Transfer-Encoding itself out, and seen to it that there is one length.
func isFraming(name string) bool {
	return len(name) == len("Transfer-Encoding") && hasPrefixLike(name, "Transfer-Encoding") ||
		len(name) == len("Content-Length") && name != "Content-Length" && hasPrefixLike(name, "Content-Length")
}

func isIdentity(name string) bool {
	return slices.ContainsFunc(identities, func(prefix string) bool { return hasPrefixLike(name, prefix) })
}

func isTrusted(r *http.Request) bool {
	_, ok := r.Context().Value(trustedPeer{}).(string)
	return ok
}

// withoutIdentities takes names out of a Connection header. Whatever is named there ends at this hop; so the proxy would
// take away what key-auth says about the client, and the upstream would take the client for nobody in particular.
func withoutIdentities(values []string) []string {
	const shortest = len("X-Consumer-") // so that the usual values cost nothing
	if !slices.ContainsFunc(values, func(v string) bool { return len(v) >= shortest }) {
		return values
	}
	var kept []string
	for _, v := range values {
		for name := range strings.SplitSeq(v, ",") {
			if name = strings.TrimSpace(name); name != "" && !isIdentity(name) {
				kept = append(kept, name)
			}
		}
	}
	return kept
}

// hasPrefixLike ignores case and takes an underscore for a dash.
func hasPrefixLike(name, prefix string) bool {
	if len(name) < len(prefix) {
		return false
	}
	for i := range len(prefix) {
		c, p := name[i]|0x20, prefix[i]|0x20
		if name[i] == '_' {
			c = '-' | 0x20
		}
		if c != p {
			return false
		}
	}
	return true
}

// dropTunnels takes away the wish to speak HTTP/2, or anything over TLS, on this connection: an upstream that agrees could
// be asked for everything it has, and no plugin would see it.
func dropTunnels(h http.Header) {
	for _, v := range h["Upgrade"] {
		for protocol := range strings.SplitSeq(v, ",") {
			name, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(protocol)), "/")
			if name == "h2c" || name == "h2" || name == "http" || name == "tls" {
				delete(h, "Upgrade")
				return
			}
		}
	}
}
