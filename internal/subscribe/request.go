package subscribe

import (
	"strconv"
	"strings"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
	"github.com/freshet-io/freshet/internal/router"
	"github.com/freshet-io/freshet/internal/sse"
)

// request is what a subscriber asks for.
type request struct {
	ask      catalog.SubscribeAsk
	legacy   bool // it carries the deprecated app token
	encoding sse.Encoding
	variant  router.Variant
	lastID   string
	padding  int
	longPoll bool
}

const (
	maxPadding    = 64 << 10 // bytes
	browserBuffer = 2 << 10  // what old browsers hold back
	maxLastID     = 256      // bytes; ours are much shorter
)

// fields are the header of a request, however it was read.
type fields interface {
	Get(name string) string
	Values(name string) []string
}

// either returns a value that may come as a header or, for clients that cannot set headers, as a query parameter.
func either(h fields, t *requestTarget, name string) (value string, found bool, err error) {
	if values := h.Values(name); len(values) > 0 {
		return values[0], true, nil
	}
	value, found, bad := t.param(name)
	if bad {
		return "", true, freshet.Errorf(freshet.Invalid, "The parameter %s cannot be decoded", name)
	}
	return value, found, nil
}

// read reads everything but the path.
func (q *request) read(h fields, t *requestTarget, names eventNames) error {
	if err := q.readCredentials(h, t); err != nil {
		return err
	}
	q.variant.Event = names.forRequest(q.legacy)
	if err := q.readDelivery(h, t); err != nil {
		return err
	}
	if err := q.readFilter(h, t); err != nil {
		return err
	}
	if err := q.readPadding(t); err != nil {
		return err
	}
	q.readLastID(h, t)
	return nil
}

// readCredentials also learns whether the client is of the old kind, before anything can fail: errors look different
// for those.
func (q *request) readCredentials(h fields, t *requestTarget) error {
	token, legacy, err := either(h, t, "X-Sd-Token")
	q.legacy = legacy
	if err != nil {
		return err
	}
	key, _, err := either(h, t, "X-Sd-Subscriber-Key")
	if err != nil {
		return err
	}
	q.ask.Key = key
	if key == "" {
		q.ask.Key = token
	}
	stamp, _, err := either(h, t, "X-Auth-Sd-Ts")
	if err != nil {
		return err
	}
	value, _, err := either(h, t, "X-Auth-Sd-S")
	if err != nil {
		return err
	}
	if value != "" {
		// Base64 has a plus sign, which an unescaped query turns into a space.
		value = strings.ReplaceAll(value, " ", "+")
		q.ask.Signed = &catalog.Signature{Timestamp: stamp, Value: unescapeOnce(value), URLs: t.signedTexts()}
	}
	return nil
}

// unescapeOnce decodes what some clients encode twice. A plus sign stays one.
func unescapeOnce(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	return unescape(strings.ReplaceAll(s, "+", "%2B"))
}

func (q *request) readDelivery(h fields, t *requestTarget) error {
	asked, err := t.sourceAccept()
	if err != nil {
		return err
	}
	transport, _, err := either(h, t, "X-Sd-Transport")
	if err != nil {
		return err
	}
	switch strings.ToLower(transport) {
	case "", "sse", "stream":
	case "long-poll":
		q.longPoll = true
	default:
		return freshet.Errorf(freshet.Invalid, "X-Sd-Transport must be long-poll or left out")
	}
	// For long polling, the Accept header names the form of the answer, not the delivery mode.
	if accepts(asked, "application/json") || !q.longPoll && accepts(h.Values("Accept"), "application/json") {
		q.variant.Mode = router.Snapshots
	}
	compress, _, err := either(h, t, "X-Sd-Compress")
	if err != nil {
		return err
	}
	if strings.EqualFold(compress, "true") {
		q.encoding = chooseEncoding(h.Values("Accept-Encoding"))
		q.variant.Compressed = q.encoding != sse.Identity && !q.longPoll // a long poll's answer is compressed as a whole
	}
	return nil
}

// sourceAccept returns the Accept headers among the headers meant for a data source, which old clients also use to choose
// the delivery mode.
func (t *requestTarget) sourceAccept() ([]string, error) {
	var accept []string
	for i := range t.params {
		p := &t.params[i]
		if !strings.EqualFold(p.name, "X-Sd-Header") {
			continue
		}
		name, value, ok := cutHeader(p.value)
		if p.bad || !ok {
			return nil, errSourceHeader
		}
		if strings.EqualFold(name, "Accept") {
			accept = append(accept, value)
		}
	}
	return accept, nil
}

// accepts reports whether a media type is listed by name.
func accepts(headers []string, mediaType string) bool {
	for _, header := range headers {
		for part := range strings.SplitSeq(header, ",") {
			name, q := weighted(part)
			if strings.EqualFold(name, mediaType) && q > 0 {
				return true
			}
		}
	}
	return false
}

// chooseEncoding picks what the client likes best of what we have, gzip where it does not care.
func chooseEncoding(headers []string) sse.Encoding {
	best, bestQ := sse.Identity, 0.0
	for _, header := range headers {
		for part := range strings.SplitSeq(header, ",") {
			name, q := weighted(part)
			var enc sse.Encoding
			switch strings.ToLower(name) {
			case "gzip", "x-gzip", "*":
				enc = sse.Gzip
			case "deflate":
				enc = sse.Deflate
			default:
				continue
			}
			if q > bestQ || q == bestQ && q > 0 && enc == sse.Gzip {
				best, bestQ = enc, q
			}
		}
	}
	return best
}

// weighted splits an element of an Accept header into its name and its q.
func weighted(part string) (name string, q float64) {
	name, params, _ := strings.Cut(part, ";")
	q = 1
	for p := range strings.SplitSeq(params, ";") {
		if key, value, ok := strings.Cut(strings.TrimSpace(p), "="); ok && strings.EqualFold(key, "q") {
			if f, err := strconv.ParseFloat(value, 64); err == nil {
				q = f
			}
		}
	}
	return strings.TrimSpace(name), q
}

func (q *request) readFilter(h fields, t *requestTarget) error {
	list, _, err := either(h, t, "X-Sd-Filter")
	if err != nil || list == "" {
		return err
	}
	q.variant.Filter = router.ParseFilter(list)
	return nil
}

func (q *request) readPadding(t *requestTarget) error {
	if value, _, _ := t.param("padding"); strings.EqualFold(value, "true") {
		q.padding = browserBuffer
	}
	value, found, bad := t.param("evs_preamble")
	if !found || value == "" {
		return nil
	}
	n, err := strconv.Atoi(value)
	if bad || err != nil || n < 0 || n > maxPadding {
		return freshet.Errorf(freshet.Invalid, "evs_preamble must be a number of bytes up to %d", maxPadding)
	}
	q.padding = max(q.padding, n)
	return nil
}

// readLastID takes the first of the four places that has one. What cannot be an id of ours counts as absent: the stream
// then begins with a snapshot.
func (q *request) readLastID(h fields, t *requestTarget) {
	id := h.Get("Last-Event-ID")
	for _, name := range []string{"lastEventId", "last_event_id", "evs_last_event_id"} {
		if id == "" {
			id, _, _ = t.param(name)
		}
	}
	if len(id) <= maxLastID {
		q.lastID = id
	}
}
