package subscribe

import (
	"net/http"
	"strings"
)

// allowedHeaders are what a page may send when its preflight names none.
const allowedHeaders = "Accept, Cache-Control, Last-Event-ID, X-Requested-With, X-Sd-Compress, X-Sd-Filter, X-Sd-Subscriber-Key, " +
	"X-Sd-Token, X-Sd-Transport, X-Auth-Sd-Ts, X-Auth-Sd-S"

const allowedMethods = "GET, HEAD, OPTIONS"

// allowOrigin opens streams to pages of every origin. Credentials stay off: keys travel in the request itself, so
// another origin's page has nothing to ride on.
func allowOrigin(h http.Header) { h["Access-Control-Allow-Origin"] = anyOrigin }

var anyOrigin = []string{"*"}

// preflight answers OPTIONS.
func preflight(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	allowOrigin(h)
	h.Set("Allow", allowedMethods)
	h.Set("Access-Control-Allow-Methods", allowedMethods)
	h.Set("Access-Control-Allow-Headers", allowedHeaders)
	if asked := strings.Join(r.Header.Values("Access-Control-Request-Headers"), ","); asked != "" && isFieldList(asked) {
		h.Set("Access-Control-Allow-Headers", asked)
	}
	h.Set("Access-Control-Max-Age", "86400")
	h.Add("Vary", "Access-Control-Request-Headers")
	w.WriteHeader(http.StatusNoContent)
}

// isFieldList keeps anything but header names from being reflected.
func isFieldList(s string) bool {
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == ',', c == ' ':
		default:
			return false
		}
	}
	return len(s) <= 2048
}
