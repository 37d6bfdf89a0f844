package publish

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/httpkit"
	"github.com/freshet-io/freshet/internal/router"
)

// readForm chooses by content type what the body means.
func readForm(w http.ResponseWriter, r *http.Request, forms map[string]router.Form) (router.Form, error) {
	mediaType, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset := params["charset"]
	form, known := forms[mediaType]
	if err != nil || !known || charset != "" && !strings.EqualFold(charset, "utf-8") {
		accepted := mediaTypes(forms)
		if r.Method == http.MethodPatch {
			w.Header().Set("Accept-Patch", accepted)
		}
		return 0, freshet.Errorf(freshet.UnsupportedMedia, "The content type must be %s, in UTF-8", accepted)
	}
	return form, nil
}

func mediaTypes(forms map[string]router.Form) string {
	names := make([]string, 0, len(forms))
	for name := range forms {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// readMatch reads If-Match: entity tags of ours, or the bare version number in quotes.
func readMatch(headers []string) ([]router.Match, error) {
	var all []router.Match
	for _, header := range headers {
		for tag := range strings.SplitSeq(header, ",") {
			m, ok := parseTag(strings.TrimSpace(tag))
			if !ok {
				return nil, freshet.Errorf(freshet.Invalid, `If-Match must hold entity tags like "7", or *`)
			}
			all = append(all, m)
		}
	}
	return all, nil
}

func parseTag(tag string) (router.Match, bool) {
	if tag == "*" {
		return router.Match{Any: true}, true
	}
	if weak := strings.TrimPrefix(tag, "W/"); weak != tag {
		// Weak tags never match in If-Match, but they are no mistake: a proxy may have weakened ours.
		return router.Match{Epoch: "-"}, len(weak) >= 2
	}
	if len(tag) < 2 || tag[0] != '"' || tag[len(tag)-1] != '"' {
		return router.Match{}, false
	}
	text := tag[1 : len(tag)-1]
	if p, ok := freshet.ParsePosition(text); ok {
		return router.Match{Epoch: p.Epoch, Version: p.Version}, true
	}
	if v, err := strconv.ParseUint(text, 10, 64); err == nil {
		return router.Match{Version: freshet.Version(v)}, true
	}
	// Well formed, but not from us: it cannot be the newest document.
	return router.Match{Epoch: "-"}, true
}

const maxIdempotencyKey = 255

func readIdempotencyKey(h http.Header) (string, error) {
	values := h.Values("Idempotency-Key")
	if len(values) == 0 {
		return "", nil
	}
	key := values[0]
	if len(values) > 1 || key == "" || len(key) > maxIdempotencyKey {
		return "", freshet.Errorf(freshet.Invalid, "Idempotency-Key must be one text of 1 to %d characters", maxIdempotencyKey)
	}
	return key, nil
}

// firstRead is what is set aside for a body before its first byte: a client that announces much and sends nothing must
// not cost much.
const firstRead = 64 << 10

// readBody returns the decoded body. The limit holds for what was sent and again for what it decodes to, so that a
// small body cannot blow up.
func (a *API) readBody(w http.ResponseWriter, r *http.Request, place *bodyPlace) ([]byte, error) {
	tooLarge := freshet.Errorf(freshet.TooLarge, "The body is larger than %d bytes", a.opts.MaxBody)
	if r.ContentLength > a.opts.MaxBody {
		w.Header().Set("Connection", "close")
		return nil, tooLarge
	}
	var body io.Reader = http.MaxBytesReader(w, r.Body, a.opts.MaxBody)
	size := r.ContentLength
	switch encoding := strings.ToLower(strings.TrimSpace(r.Header.Get("Content-Encoding"))); encoding {
	case "", "identity":
	case "gzip", "x-gzip":
		size = -1
		body = &gunzip{src: body}
	default:
		w.Header().Set("Accept-Encoding", "gzip")
		return nil, freshet.Errorf(freshet.UnsupportedMedia, "The content encoding must be gzip or none")
	}
	ctrl := http.NewResponseController(w)
	// Not every connection has deadlines; those without are not from the network.
	_ = ctrl.SetReadDeadline(time.Now().Add(a.opts.BodyTimeout))
	data, err := readAll(body, size, a.opts.MaxBody, place.grow)
	switch {
	case err == nil:
		// Only now: net/http reads on in a refused body, and must not wait for it longer than we did.
		_ = ctrl.SetReadDeadline(time.Time{})
		return data, nil
	case errors.Is(err, errTooLarge):
		w.Header().Set("Connection", "close")
		return nil, tooLarge
	case errors.Is(err, errGzip):
		return nil, freshet.Wrap(freshet.Invalid, err, "The body is not valid gzip")
	}
	w.Header().Set("Connection", "close")
	if freshet.KindOf(err) == freshet.Unavailable {
		return nil, err
	}
	return nil, httpkit.BodyError(err)
}

var (
	errTooLarge = errors.New("body over the limit")
	errGzip     = errors.New("gzip")
)

// readAll reads at most limit bytes. size is how many are announced, or -1. What is announced is set aside in steps, as it comes; grow
// is asked before each.
func readAll(r io.Reader, size, limit int64, grow func(bytes int64) error) ([]byte, error) {
	buf := make([]byte, 0, min(max(size, 512), firstRead)+1) // one more, so that the end is seen without growing
	if size < 0 {
		buf = make([]byte, 0, 4<<10)
	}
	for {
		if len(buf) == cap(buf) {
			grown := min(4*int64(cap(buf)), max(2*int64(cap(buf)), size+1), limit+1)
			if err := grow(grown); err != nil {
				return nil, err
			}
			next := make([]byte, len(buf), grown)
			copy(next, buf)
			buf = next
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if int64(len(buf)) > limit {
			return nil, errTooLarge
		}
		if err == io.EOF {
			return buf, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// gunzip opens its source at the first read, so that a bad header is an error of the body, and marks its own errors.
type gunzip struct {
	src io.Reader
	zr  *gzip.Reader
}

func (g *gunzip) Read(p []byte) (int, error) {
	if g.zr == nil {
		zr, err := gzip.NewReader(g.src)
		if err != nil {
			return 0, markGzip(err)
		}
		g.zr = zr
	}
	n, err := g.zr.Read(p)
	return n, markGzip(err)
}

// markGzip tells bad gzip from a client that stopped sending or sent too much.
func markGzip(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return err
	}
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: %w", errGzip, err)
	}
	var corrupt interface{ Temporary() bool }
	if errors.As(err, &corrupt) { // a network error keeps its own meaning
		return err
	}
	return fmt.Errorf("%w: %w", errGzip, err)
}
