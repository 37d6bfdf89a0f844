package manage

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
	"github.com/freshet-io/freshet/internal/httpkit"
	"github.com/freshet-io/freshet/internal/openapi"
)

// maxBody bounds a request; the longest sensible one is a topic with a very long URL.
const maxBody = 256 << 10

// handle registers an operation. The caller is known before its request is even read: a stranger learns nothing
// from our validation.
func handle[In, Out any](a *api, h huma.API, op huma.Operation, do func(context.Context, *In) (*Out, error)) {
	op.MaxBodyBytes = maxBody
	op.Errors = append(op.Errors, http.StatusBadRequest, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable)
	op.Middlewares = huma.Middlewares{a.meter, openapi.JSONOnly}
	if op.Security != nil {
		op.Errors = append(op.Errors, http.StatusUnauthorized)
		op.Middlewares = huma.Middlewares{a.requireUser, openapi.JSONOnly}
	}
	if strings.Contains(op.Path, "{") || strings.HasPrefix(op.Path, "/admin") {
		op.Errors = append(op.Errors, http.StatusNotFound)
	}
	if op.Method != http.MethodGet && op.Method != http.MethodDelete {
		op.Errors = append(op.Errors, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	}
	huma.Register(h, op, func(ctx context.Context, in *In) (*Out, error) {
		out, err := do(ctx, in)
		if err != nil {
			return nil, a.fail(ctx, err)
		}
		return out, nil
	})
}

// example is a request body that works, for people who try an operation.
type example struct {
	summary string
	value   map[string]any
}

// bodyExamples describes a body by examples; the library adds its schema.
func bodyExamples(all ...example) *huma.RequestBody {
	media := &huma.MediaType{Examples: map[string]*huma.Example{}}
	for _, e := range all {
		name := strings.ReplaceAll(strings.ToLower(e.summary), " ", "-")
		media.Examples[name] = &huma.Example{Summary: e.summary, Value: e.value}
	}
	return &huma.RequestBody{Content: map[string]*huma.MediaType{"application/json": media}}
}

// challenge goes with every 401.
const challenge = `Bearer realm="freshet"`

// fail logs what is our fault and returns the answer.
func (a *api) fail(ctx context.Context, err error) error {
	if httpkit.Status(err) >= http.StatusInternalServerError && ctx.Err() == nil && !freshet.IsLogged(err) {
		a.Log.Error("management request failed", "err", err)
	}
	e := openapi.Fail(err)
	if e.GetStatus() == http.StatusUnauthorized {
		e.GetHeaders().Set("WWW-Authenticate", challenge)
	}
	return e
}

type actorKey struct{}

// actor returns who is asking. It is never nil in an operation that requires a token.
func actor(ctx context.Context) *catalog.Actor {
	who, _ := ctx.Value(actorKey{}).(*catalog.Actor)
	return who
}

// requireUser lets only holders of a good token pass, within their quota. The others count by address.
func (a *api) requireUser(ctx huma.Context, next func(huma.Context)) {
	who, err := a.Catalog.Authenticate(ctx.Context(), bearerToken(ctx))
	if err == nil {
		err = a.take(ctx, "manage user "+who.User.ID, who.User.Quotas.RequestsPerMinute)
	} else if limited := a.takeAddress(ctx); limited != nil {
		err = limited
	}
	if err != nil {
		a.refuse(ctx, err)
		return
	}
	keepPrivate(ctx)
	ctx = huma.WithValue(ctx, actorKey{}, who)
	next(huma.WithValue(ctx, addressKey{}, address(ctx)))
}

// meter counts callers without an account by their address, and knows those who bring a token all the same.
func (a *api) meter(ctx huma.Context, next func(huma.Context)) {
	if err := a.takeAddress(ctx); err != nil {
		a.refuse(ctx, err)
		return
	}
	keepPrivate(ctx)
	if token := bearerToken(ctx); token != "" {
		if who, err := a.Catalog.Authenticate(ctx.Context(), token); err == nil {
			ctx = huma.WithValue(ctx, actorKey{}, who)
		}
	}
	next(huma.WithValue(ctx, addressKey{}, address(ctx)))
}

// keepPrivate keeps caches from remembering answers: they hold keys and tokens.
func keepPrivate(ctx huma.Context) {
	ctx.SetHeader("Cache-Control", "no-store")
	ctx.SetHeader("X-Content-Type-Options", "nosniff")
}

type addressKey struct{}

// addressOf returns where the request comes from; see httpkit.ClientAddress.
func addressOf(ctx context.Context) string {
	text, _ := ctx.Value(addressKey{}).(string)
	return text
}

func (a *api) takeAddress(ctx huma.Context) error {
	return a.take(ctx, "manage address "+address(ctx), a.RequestsPerMinute)
}

func (a *api) take(ctx huma.Context, name string, limit int64) error {
	budget, err := httpkit.Take(ctx.Context(), a.Counter, name, limit, a.Now())
	_, w := humago.Unwrap(ctx)
	budget.SetHeaders(w.Header())
	return err
}

func (a *api) refuse(ctx huma.Context, err error) {
	r, w := humago.Unwrap(ctx)
	if freshet.KindOf(err) == freshet.Unauthenticated {
		w.Header().Set("WWW-Authenticate", challenge)
	}
	httpkit.WriteError(w, r, a.Log, err)
}

func address(ctx huma.Context) string {
	r, _ := humago.Unwrap(ctx)
	return httpkit.ClientAddress(r)
}

// bearerToken returns the token of the Authorization header, or "".
func bearerToken(ctx huma.Context) string {
	scheme, token, _ := strings.Cut(ctx.Header("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}
