package manage

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

type accepted struct {
	Message string `json:"message" example:"The topic is being polled"`
}

func (a *api) refreshes(h huma.API) {
	handle(a, h, huma.Operation{
		OperationID: "refresh-topic", Method: http.MethodPost, Path: "/topics/{topic_id}/refresh", Tags: []string{topicsTag}, Security: signedIn,
		DefaultStatus: http.StatusAccepted, Summary: "Poll now",
		Description: "Has an `http-poller` topic polled now, whether or not somebody is subscribed. 409 for other topics.",
		Errors:      []int{http.StatusConflict},
	}, a.refreshTopic)
}

func (a *api) refreshTopic(ctx context.Context, in *TopicPath) (*body[accepted], error) {
	if err := a.Catalog.Refresh(ctx, actor(ctx), in.ref()); err != nil {
		return nil, err
	}
	return &body[accepted]{Body: accepted{Message: "The topic is being polled"}}, nil
}
