package gateway

import (
	"net/url"
	"strings"
)

// sentPath is the path as the client sent it, with escapes as they are; only bytes that no URL may contain are escaped.
// It is what routes are matched with, what plugins see and what is forwarded, so that nobody can make one of them see
// another path than the others.
func sentPath(u *url.URL) string {
	if u.Path == "" && u.Opaque == "" {
		return "/" // http://example.com, as proxies are asked, means its root
	}
	if u.RawPath == "" {
		return u.EscapedPath() // what was sent has the usual escapes and no others
	}
	return escapeForbidden(u.RawPath)
}

const forbidden = `"<>\^` + "`{|}#? "

func isForbidden(c byte) bool { return c <= ' ' || c >= 0x7f || strings.IndexByte(forbidden, c) >= 0 }

func escapeForbidden(path string) string {
	const hex = "0123456789ABCDEF"
	n := 0
	for i := range len(path) {
		if isForbidden(path[i]) {
			n++
		}
	}
	if n == 0 {
		return path
	}
	out := make([]byte, 0, len(path)+2*n)
	for i := range len(path) {
		if c := path[i]; isForbidden(c) {
			out = append(out, '%', hex[c>>4], hex[c&15])
		} else {
			out = append(out, c)
		}
	}
	return string(out)
}

// climbs reports whether any reader could take a segment of the path for "..": an upstream that cleans the path would
// leave the place that the API was registered for. Readers differ in whether they decode %2F, take a backslash for a
// slash, or cut a segment at a semicolon, so the strictest reading counts.
func climbs(path string) bool {
	if !strings.Contains(path, "..") && !strings.Contains(path, "%2e") && !strings.Contains(path, "%2E") && !strings.Contains(path, "%25") {
		return false // nothing that could become two dots
	}
	for range 2 { // also what was escaped twice
		decoded, err := url.PathUnescape(path)
		if err != nil {
			break
		}
		path = decoded
	}
	segments := strings.FieldsFunc(path, func(c rune) bool { return c == '/' || c == '\\' })
	for _, s := range segments {
		s, _, _ = strings.Cut(s, ";")
		if s == ".." {
			return true
		}
	}
	return false
}
