package gateway

import (
	"net/http"
	"strings"
)

// dropSpoofed takes away what only the gateway may say to an upstream. Many servers read X_Consumer_ID as the same
// header as X-Consumer-ID, so that spelling goes too. The forwarding headers in their usual spelling are the proxy's
// business: it knows whether to believe them.
func dropSpoofed(h http.Header) {
	for name := range h {
		if name == "" || name[0] != 'X' {
			continue
		}
		if hasPrefixLike(name, "X-Consumer-") ||
			strings.IndexByte(name, '_') >= 0 && (hasPrefixLike(name, "X-Forwarded-") || hasPrefixLike(name, "X-Real-Ip")) {
			delete(h, name)
		}
	}
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
