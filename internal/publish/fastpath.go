package publish

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
	"github.com/freshet-io/freshet/internal/httpkit"
	"github.com/freshet-io/freshet/internal/router"
	"github.com/freshet-io/freshet/internal/wire"
)

// Bypass tells which requests reach the publishing API without meeting anything on their way.
type Bypass interface {
	// Enter reports whether a request for the path would reach the publishing API as it is, and which path it would see. If
	// so, Leave must be called when it is answered.
	Enter(path string) (inside string, ok bool)
	Leave()
}

// FastPath returns a handler for common publications: JSON of a known length, with a key and without conditions. What net/http does for each of
// them costs more than to compare the documents. One that is refused before its body was read is passed.
func (a *API) FastPath(b Bypass) wire.Handler { return &fastPath{api: a, bypass: b} }

type fastPath struct {
	api    *API
	bypass Bypass
}

// maxFastBody is how long a body may be. A client that announces more and sends nothing must not cost that much; readBody knows how.
const maxFastBody = firstRead

// ServeWire implements wire.Handler.
func (f *fastPath) ServeWire(x *wire.Exchange) wire.Outcome {
	key, ok := commonKey(&x.Request)
	if !ok || f.api.opts.Tracer != nil { // to follow publications takes more
		return wire.Pass
	}
	inside, ok := f.bypass.Enter(x.Target)
	if !ok {
		return wire.Pass
	}
	defer f.bypass.Leave()
	ctx := x.Context()
	grant, budget, ok := f.api.admit(ctx, inside, key, x.Length)
	if !ok {
		return wire.Pass
	}
	body := make([]byte, x.Length)
	if err := x.ReadFull(body, f.api.opts.BodyTimeout); err != nil {
		f.refuse(x, inside, budget, httpkit.BodyError(err))
		return wire.Done
	}
	out, err := f.api.tryHand(ctx, grant, router.Publication{
		Form: router.Whole, Body: body, Gone: func() bool { return httpkit.IsGone(ctx, x.Request.IsLast) },
	})
	if err != nil {
		f.refuse(x, inside, budget, err)
	} else {
		f.accept(x, out, budget)
	}
	return wire.Done
}

// commonKey returns the key of a common publication. A field that is not known here may mean something, so it makes a publication uncommon.
func commonKey(r *wire.Request) (key string, ok bool) {
	if r.Method != http.MethodPost || !r.IsLiteral || strings.IndexByte(r.Target, '?') >= 0 || r.Length == 0 || r.Length > maxFastBody {
		return "", false
	}
	hasType := false
	for i := range r.Fields() {
		name, value := r.Field(i)
		var lower [32]byte
		if len(name) > len(lower) {
			return "", false
		}
		for i := range len(name) {
			lower[i] = name[i] | 0x20 // a hyphen has it
		}
		switch string(lower[:len(name)]) {
		case "content-type":
			ok = !hasType && (value == "application/json" || value == "application/json; charset=utf-8")
			hasType = true
		case "x-sd-publisher-key":
			ok = key == ""
			key = value
		case "content-length", "connection", // they were looked at
			"user-agent", "accept", "accept-encoding", "accept-language", "traceparent", "tracestate", "forwarded", "via",
			"x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-port", "x-real-ip", "x-request-id":
			ok = true // nobody asks for them
		default:
			ok = false
		}
		if !ok {
			return "", false
		}
	}
	return key, hasType && key != ""
}

// admit asks everything that a publication's head can be refused for. To say why is left to net/http's handler.
func (a *API) admit(ctx context.Context, path, key string, length int64) (grant *catalog.Grant, b httpkit.Budget, ok bool) {
	id, ok := strings.CutPrefix(path, "/topics/")
	if !ok || !freshet.IsID(id) || length > a.opts.MaxBody {
		return nil, b, false
	}
	grant, err := a.catalog.MayPublish(ctx, id, key)
	if err != nil || grant.Topic.Publisher.Type != freshet.HTTPPost {
		return nil, b, false
	}
	// Who has nothing left is counted again there, which changes nothing.
	b, err = a.take(ctx, grant)
	return grant, b, err == nil
}

// tryHand gives a publication to the router. One bad publication cannot end a connection.
func (a *API) tryHand(ctx context.Context, grant *catalog.Grant, p router.Publication) (out router.Outcome, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the publication panicked: %v\n%s", v, debug.Stack())
		}
	}()
	return a.hand(ctx, grant, p)
}

// accept sends the response to a publication that was taken, the same as net/http's handler would.
func (f *fastPath) accept(x *wire.Exchange, out router.Outcome, budget httpkit.Budget) {
	b := append(x.Buffer(), "HTTP/1.1 204 No Content\r\n"...)
	if x.IsLast() {
		b = append(b, "Connection: close\r\n"...)
	}
	if !out.Position.IsZero() {
		b = append(append(append(b, `Etag: "`...), out.Position.String()...), "\"\r\n"...)
	}
	b = append(b, "Vary: Origin\r\n"...)
	if budget.Limit > 0 {
		b = strconv.AppendInt(append(b, "X-Ratelimit-Limit-Minute: "...), budget.Limit, 10)
		b = strconv.AppendInt(append(b, "\r\nX-Ratelimit-Minute: "...), budget.Limit, 10)
		b = strconv.AppendInt(append(b, "\r\nX-Ratelimit-Remaining-Minute: "...), budget.Remaining, 10)
		b = append(b, "\r\n"...)
	}
	for name, values := range x.Header() {
		b = wire.AppendFields(b, name, values)
	}
	x.Reply(append(wire.AppendDate(b), "\r\n"...))
}

// refuse sends the response to a publication that was not taken.
func (f *fastPath) refuse(x *wire.Exchange, path string, budget httpkit.Budget, reason error) {
	w := x.Response()
	w.Header().Set("Vary", "Origin")
	budget.SetHeaders(w.Header())
	r := (&http.Request{Method: http.MethodPost, URL: &url.URL{Path: path}, Close: x.Request.IsLast}).WithContext(x.Context())
	httpkit.WriteError(w, r, f.api.log, reason)
}
