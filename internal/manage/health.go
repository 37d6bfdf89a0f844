package manage

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

// Health knows how this process is: in a word, and each part by itself, "ok" or why not.
type Health interface {
	Health(ctx context.Context) (status string, checks map[string]string)
}

type health struct {
	Status string            `json:"status" enum:"ready,starting,draining,failing" example:"ready" doc:"Whether the process that answered should be sent requests"`
	Checks map[string]string `json:"checks" nullable:"false" doc:"Its parts: ok, or what is wrong"`
}

func (a *api) health(h huma.API) {
	handle(a, h, huma.Operation{
		OperationID: "admin-health", Method: http.MethodGet, Path: "/admin/health", Tags: []string{adminTag}, Security: signedIn,
		Summary: "See how every part is", Description: "Of the process that answers; in a cluster, each tells about itself. Probes use `/readyz` of the admin listener.",
	}, func(ctx context.Context, _ *struct{}) (*body[health], error) {
		if err := a.Catalog.MayAdminister(actor(ctx)); err != nil {
			return nil, err
		}
		status, checks := a.Health.Health(ctx)
		return &body[health]{Body: health{Status: status, Checks: checks}}, nil
	})
}
