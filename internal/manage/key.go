package manage

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
)

type renewal struct {
	Key            optional[string] `json:"key,omitempty" nullable:"true" doc:"A key to bring along from elsewhere; left out, a fresh one is made"`
	OverlapSeconds optional[int64]  `json:"overlap_seconds,omitempty" nullable:"true" example:"3600" doc:"How long the old key goes on working beside the new one; by default not at all, 30 days at most"`
}

func (r *renewal) how() catalog.Renewal {
	// What is out of range stays so, and is refused by the catalog.
	const bound = int64(2 * catalog.MaxOverlap / time.Second)
	seconds := max(-bound, min(r.OverlapSeconds.Value, bound))
	return catalog.Renewal{Key: r.Key.given(), Overlap: time.Duration(seconds) * time.Second}
}

// broughtKeys are examples. Nobody has them.
var broughtKeys = map[freshet.KeyKind]string{
	freshet.SubscriberKey: "my-subscriber-key-from-elsewhere",
	freshet.PublisherKey:  "my-publisher-key-from-elsewhere",
	freshet.SignatureKey: "MTExMTExMTEtMjIyMi0zMzMzLTQ0NDQtNTU1NTU1NTU1NTU1" +
		"YWFhYWFhYWEtYmJiYi1jY2NjLWRkZGQtZWVlZWVlZWVlZWVl",
}

// appKeys registers an operation for each kind of key.
func (a *api) appKeys(h huma.API) {
	for _, kind := range freshet.KeyKinds() {
		a.renewal(h, kind)
	}
}

func (a *api) renewal(h huma.API, kind freshet.KeyKind) {
	handle(a, h, huma.Operation{
		OperationID: "renew-" + string(kind) + "-key", Method: http.MethodPut, Path: "/apps/{app_id}/" + string(kind) + "_key",
		Tags: []string{appsTag}, Security: signedIn, Summary: "Renew the " + string(kind) + " key",
		Description: "The old key is revoked, at once or after an overlap. The body may be left out. A key that any app has, or had, is refused (409).",
		Errors:      []int{http.StatusConflict},
		RequestBody: bodyExamples(
			example{"A fresh key", map[string]any{}},
			example{"With an overlap", map[string]any{"overlap_seconds": 3600}},
			example{"A key from elsewhere", map[string]any{"key": broughtKeys[kind]}},
		),
	}, func(ctx context.Context, in *struct {
		AppPath
		Body *renewal
	}) (*body[app], error) {
		if in.Body == nil {
			in.Body = &renewal{}
		}
		changed, err := a.Catalog.RenewKey(ctx, actor(ctx), in.AppID, kind, in.Body.how())
		if err != nil {
			return nil, err
		}
		return &body[app]{Body: showApp(changed)}, nil
	})
}
