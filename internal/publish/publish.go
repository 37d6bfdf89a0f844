// Package publish is the publishing API: it takes documents over HTTP and hands them to the router.
//
// It knows HTTP and nothing else: who may publish is decided by the catalog, what a publication changes by the router. It
// keeps no state. Common publications are answered by [API.FastPath], below net/http, all others by the API as an http.Handler. Both are safe
// for concurrent use.
package publish

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
	"github.com/freshet-io/freshet/internal/httpkit"
	"github.com/freshet-io/freshet/internal/loglimit"
	"github.com/freshet-io/freshet/internal/memory"
	"github.com/freshet-io/freshet/internal/openapi"
	"github.com/freshet-io/freshet/internal/router"
	"github.com/freshet-io/freshet/internal/trace"
)

// Catalog answers who may publish.
type Catalog interface {
	MayPublish(ctx context.Context, topicID, key string) (*catalog.Grant, error)
}

// Router takes publications.
type Router interface {
	Publish(ctx context.Context, topic *freshet.Topic, p router.Publication) (router.Outcome, error)
}

// Options are the limits of the publishing API. Zero values mean the defaults.
type Options struct {
	// MaxBody bounds a body after decompression; 4 MiB by default.
	MaxBody int64

	// BodyTimeout is how long a client may take to send a body; 15 s by default.
	BodyTimeout time.Duration

	// Counter counts the publications of each app against its quota. Nil: there is no limit.
	Counter httpkit.Counter

	// Quota returns what limits the documents of an app and its account; nil where nothing does. Nil: there are no limits.
	Quota func(*catalog.Grant) router.Quota

	// Bodies admits long bodies, by their bytes. Nil: all at once.
	Bodies *memory.Semaphore

	// Tracer follows publications. Nil: nobody does.
	Tracer *trace.Tracer

	// Taken is told of every publication that was taken. It must not block. Nil is nobody.
	Taken func(*catalog.Grant)
}

const (
	defaultMaxBody     = 4 << 20
	defaultBodyTimeout = 15 * time.Second
)

// API is the publishing API and its description to browse. It is an http.Handler.
type API struct {
	handler http.Handler
	log     *slog.Logger
	catalog Catalog
	router  Router
	opts    Options
	refused atomic.Uint64

	refusals *loglimit.Logger // for lack of memory
}

// New makes the publishing API. Its paths are relative to where it is mounted.
func New(log *slog.Logger, catalog Catalog, rt Router, opts Options) (*API, error) {
	if opts.MaxBody <= 0 {
		opts.MaxBody = defaultMaxBody
	}
	if opts.BodyTimeout <= 0 {
		opts.BodyTimeout = defaultBodyTimeout
	}
	a := &API{log: log, catalog: catalog, router: rt, opts: opts,
		refusals: loglimit.New(log, "publications refused for lack of memory", 1)}
	mux := http.NewServeMux()
	for _, r := range routes() {
		mux.Handle(r.method+" "+r.path, httpkit.Serve(log, func(w http.ResponseWriter, req *http.Request) error {
			return a.follow(w, req, r.forms)
		}))
	}
	if err := openapi.Browse(compressed{mux}, Description(), "openapi", "api-browser"); err != nil {
		return nil, err
	}
	a.handler = httpkit.Chain(httpkit.JSONMux(log, mux), httpkit.CORS())
	return a, nil
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.handler.ServeHTTP(w, r) }

// follow publishes, and follows the publication if somebody wants that.
func (a *API) follow(w http.ResponseWriter, r *http.Request, forms map[string]router.Form) error {
	if a.opts.Tracer == nil {
		return a.publish(w, r, forms)
	}
	span := a.opts.Tracer.Start("publish", trace.Server, trace.ParseParent(r.Header.Get("Traceparent")))
	defer span.End()
	span.Set("http.request.method", r.Method)
	if id := r.PathValue("topic_id"); freshet.IsID(id) { // anything else may be a secret that went astray
		span.Set("freshet.topic", id)
	}
	err := a.publish(w, r.WithContext(trace.With(r.Context(), span)), forms)
	status := http.StatusNoContent
	if err != nil {
		status = httpkit.Status(err)
	}
	span.SetInt("http.response.status_code", int64(status))
	if status >= http.StatusInternalServerError {
		span.Fail(http.StatusText(status))
	}
	return err
}

// publish refuses for the cheapest reason first: a body is read only from somebody who may send it.
func (a *API) publish(w http.ResponseWriter, r *http.Request, forms map[string]router.Form) error {
	grant, err := a.catalog.MayPublish(r.Context(), r.PathValue("topic_id"), r.Header.Get("X-Sd-Publisher-Key"))
	if err != nil {
		return err
	}
	if grant.Topic.Publisher.Type != freshet.HTTPPost {
		w.Header().Set("Allow", http.MethodOptions)
		return freshet.Errorf(freshet.MethodNotAllowed, "This topic is fed by polling; nobody can post to it")
	}
	budget, err := a.take(r.Context(), grant)
	budget.SetHeaders(w.Header())
	if err != nil {
		return err
	}
	var p router.Publication
	if p.Form, err = readForm(w, r, forms); err != nil {
		return err
	}
	if p.Match, err = readMatch(r.Header.Values("If-Match")); err != nil {
		return err
	}
	if p.IdempotencyKey, err = readIdempotencyKey(r.Header); err != nil {
		return err
	}
	place := bodyPlace{api: a, ctx: r.Context(), owner: grant.UserID}
	defer place.leave()
	if p.Body, err = a.readBody(w, r, &place); err != nil {
		return err
	}
	trace.From(r.Context()).SetInt("http.request.body.size", int64(len(p.Body)))
	p.Gone = func() bool { return httpkit.ClientGone(r) }
	out, err := a.hand(r.Context(), grant, p)
	if err != nil {
		if freshet.KindOf(err) == freshet.MethodNotAllowed {
			w.Header().Set("Allow", http.MethodOptions+", "+http.MethodPost)
		}
		return err
	}
	if !out.Position.IsZero() {
		w.Header().Set("ETag", `"`+out.Position.String()+`"`)
	}
	if out.Replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// take counts a publication against the app's quota.
func (a *API) take(ctx context.Context, grant *catalog.Grant) (httpkit.Budget, error) {
	if a.opts.Counter == nil {
		return httpkit.Budget{}, nil
	}
	return httpkit.Take(ctx, a.opts.Counter, "publish/"+grant.AppID, grant.AppQuotas.RequestsPerMinute, time.Now())
}

// hand gives a publication to the router. Whether its publisher has given up is asked right before the publication takes effect.
//
// Whoever published lets those go first who were woken by it. Where there is more to do than processors can, a publisher is answered
// once they had their turn, and what it sends next is less often old before it leaves.
func (a *API) hand(ctx context.Context, grant *catalog.Grant, p router.Publication) (router.Outcome, error) {
	p.Limit, p.Owner = int(a.opts.MaxBody), grant.UserID
	if a.opts.Quota != nil {
		p.Quota = a.opts.Quota(grant)
	}
	if ctx.Done() != nil {
		ctx = context.WithoutCancel(ctx) // it may end because the publisher has nothing more to say
	}
	out, err := a.router.Publish(ctx, &grant.Topic, p)
	if err == nil && a.opts.Taken != nil && !out.Replayed {
		a.opts.Taken(grant)
	}
	if out.Changed {
		runtime.Gosched()
	}
	if errors.Is(err, router.ErrGone) {
		err = errClosedEnd
	}
	return out, err
}

// errClosedEnd is for the few who close their end of a connection and wait for the answer.
var errClosedEnd = freshet.Errorf(freshet.Unavailable, "Nothing was published, because the client closed its end of the connection first; "+
	"who does that and waits for the answer sends Connection: close with the request")

// compressed is a mux for pages. The other answers are not compressed: a publication's has no body to speak of, and there are
// many of them.
type compressed struct{ *http.ServeMux }

// HandleFunc implements openapi.Mux.
func (m compressed) HandleFunc(pattern string, handler func(http.ResponseWriter, *http.Request)) {
	m.Handle(pattern, httpkit.Gzip()(http.HandlerFunc(handler)))
}
