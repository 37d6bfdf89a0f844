package subscribe

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
	"github.com/freshet-io/freshet/internal/wire"
)

// readSource understands a request for a data source: what the target is asked, and with which headers.
func readSource(h http.Header, t *requestTarget, raw string) (*catalog.SourceAsk, error) {
	if viaOurselves(h) {
		return nil, freshet.Errorf(freshet.Invalid, "The target leads back to Freshet")
	}
	headers, err := forwarded(h, t)
	if err != nil {
		return nil, err
	}
	return &catalog.SourceAsk{URL: sourceText(raw) + escapeBytes(t.sourceQuery()), Headers: headers}, nil
}

// headerOf returns all fields of a request.
func headerOf(h fields) http.Header {
	if r, ok := h.(*wire.Request); ok {
		return r.RawHTTP().Header
	}
	return h.(http.Header) //nolint:forcetypeassert // there are no others
}

// viaName is how our own pollers sign their requests. One of them as a subscriber is a loop.
const viaName = "freshet"

func viaOurselves(h http.Header) bool {
	for _, line := range h.Values("Via") {
		for hop := range strings.SplitSeq(line, ",") {
			if _, by, ok := strings.Cut(strings.TrimSpace(hop), " "); ok && strings.EqualFold(strings.TrimSpace(by), viaName) {
				return true
			}
		}
	}
	return false
}

// sourceText writes scheme and host in small letters and with two slashes between, so that spellings of one source are one
// topic. The rest stays as it is.
func sourceText(raw string) string {
	scheme, rest, _ := strings.Cut(raw, ":")
	rest = strings.TrimPrefix(strings.TrimPrefix(rest, "/"), "/")
	host, path := rest, "/"
	if slash := strings.IndexByte(rest, '/'); slash >= 0 {
		host, path = rest[:slash], rest[slash:]
	}
	return strings.ToLower(scheme) + "://" + strings.ToLower(host) + escapeBytes(path)
}

// escapeBytes escapes what is not ASCII, byte by byte: it may be no text.
func escapeBytes(s string) string {
	out := make([]byte, 0, len(s))
	for i := range len(s) {
		if s[i] < utf8.RuneSelf {
			out = append(out, s[i])
			continue
		}
		out = fmt.Appendf(out, "%%%02X", s[i])
	}
	return string(out)
}

// hopByHop lists the headers that a client sent for the next hop only.
func hopByHop(h http.Header) (names []string) {
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			names = append(names, http.CanonicalHeaderKey(strings.TrimSpace(name)))
		}
	}
	return names
}

// Bounds of what is passed on to a target.
const (
	maxForwarded      = 64
	maxForwardedBytes = 16 << 10
)

// forwarded collects the headers for the target: credentials and X- headers of the request, then those that were asked for
// by name, which replace the former.
func forwarded(h http.Header, t *requestTarget) ([]freshet.HeaderField, error) {
	var fields []freshet.HeaderField
	hop := hopByHop(h)
	for name, values := range h {
		if !passesOn(name) || slices.Contains(hop, name) {
			continue
		}
		for _, value := range values {
			f, err := freshet.ParseHeader(name, value)
			if err != nil {
				return nil, err
			}
			fields = append(fields, f)
		}
	}
	asked, err := t.sourceHeaders(h)
	if err != nil {
		return nil, err
	}
	fields = slices.DeleteFunc(fields, func(f freshet.HeaderField) bool {
		return slices.ContainsFunc(asked, func(a freshet.HeaderField) bool { return a.Name == f.Name })
	})
	fields = append(fields, asked...)
	slices.SortStableFunc(fields, func(a, b freshet.HeaderField) int { return strings.Compare(a.Name, b.Name) })
	total := 0
	for _, f := range fields {
		total += len(f.Name) + len(f.Value)
	}
	if len(fields) > maxForwarded || total > maxForwardedBytes {
		return nil, freshet.Errorf(freshet.Invalid, "There are too many headers for the target: %d and %d bytes are allowed", maxForwarded, maxForwardedBytes)
	}
	return fields, nil
}

// passesOn reports whether a header of the request is meant for the target.
func passesOn(name string) bool {
	if name == "Authorization" {
		return true
	}
	return strings.HasPrefix(name, "X-") && name != "X-Requested-With" && freshet.MayForward(name)
}

// sourceHeaders are the headers that the client names for the target. Those that no target gets are left out.
func (t *requestTarget) sourceHeaders(h http.Header) ([]freshet.HeaderField, error) {
	entries := slices.Clone(h.Values("X-Sd-Header"))
	for i := range t.params {
		if p := &t.params[i]; strings.EqualFold(p.name, "X-Sd-Header") {
			entries = append(entries, p.value)
		}
	}
	var fields []freshet.HeaderField
	for _, entry := range entries {
		name, value, ok := cutHeader(entry)
		if !ok {
			return nil, errSourceHeader
		}
		f, err := freshet.ParseHeader(name, value)
		if err != nil {
			return nil, err
		}
		if freshet.MayForward(f.Name) && (f.Name != "Accept" || !choosesDelivery(f.Value.Reveal())) {
			fields = append(fields, f)
		}
	}
	return fields, nil
}

var errSourceHeader = freshet.Errorf(freshet.Invalid, "X-Sd-Header must look like Name: value")

// cutHeader splits an entry, which some clients encode twice. An entry that has its colon is not encoded any more: an
// escape in its value is part of the value.
func cutHeader(entry string) (name, value string, ok bool) {
	if !strings.Contains(entry, ":") {
		entry = unescapeOnce(entry)
	} else if head, _, _ := strings.Cut(entry, ":"); strings.Contains(head, "%") {
		entry = unescapeOnce(entry)
	} else if rest := entry[len(head)+1:]; strings.HasPrefix(rest, "%20") {
		entry = unescapeOnce(entry)
	}
	name, value, ok = strings.Cut(entry, ":")
	return strings.TrimSpace(name), strings.TrimSpace(value), ok
}

// choosesDelivery reports whether an Accept header is for us: it names a way of delivery, not a form of the target.
func choosesDelivery(accept string) bool {
	for part := range strings.SplitSeq(accept, ",") {
		switch name, _ := weighted(part); strings.ToLower(name) {
		case "application/json", "application/json-patch+json", "text/event-stream", "*/*", "":
		default:
			return false
		}
	}
	return true
}
