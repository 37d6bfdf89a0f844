package manage

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
)

// Tester polls a data source once and publishes nothing. The poller's tester is one.
type Tester interface {
	Try(ctx context.Context, source *catalog.Source) (*catalog.Trial, error)
}

type newTrial struct {
	Publisher newPublisher     `json:"publisher" doc:"As for a new topic; an http-poller"`
	TopicID   optional[string] `json:"topic_id,omitempty" nullable:"true" example:"0198c5f2-7d6e-7a10-8c3e-2f5b8e1d4a77" doc:"A topic of the app, whose secrets stand for those given as [hidden]"`
}

type trial struct {
	Status   int             `json:"status,omitempty" example:"200" doc:"What the target answered with; missing if it did not"`
	Duration int64           `json:"duration_ms" example:"38" doc:"How long that took, with redirects and tokens"`
	Bytes    int             `json:"bytes" example:"1042" doc:"The size of its answer, decompressed"`
	Document json.RawMessage `json:"document,omitempty" doc:"What would be published; missing if nothing would be"`
	Error    string          `json:"error,omitempty" example:"The host name of the data source is not known" doc:"Why nothing would be published"`
}

func (a *api) trials(h huma.API) {
	handle(a, h, huma.Operation{
		OperationID: "test-topic", Method: http.MethodPost, Path: "/apps/{app_id}/topics/test", Tags: []string{topicsTag}, Security: signedIn,
		Summary: "Try a URL before it is polled",
		Description: "Polls the target once, as a topic with these settings would be, and shows what would be published. Nothing is published or kept. " +
			"A target that fails answers 200 here, with `error`. An account may try two at a time (429).",
		RequestBody: bodyExamples(
			example{"A URL", map[string]any{"publisher": map[string]any{
				"type": "http-poller", "config": map[string]any{"url": "https://example.com/quotes.json"},
			}}},
		),
	}, a.testTopic)
}

func (a *api) testTopic(ctx context.Context, in *struct {
	AppPath
	Body newTrial
}) (*body[trial], error) {
	wanted := newTopic{Name: "trial", Publisher: in.Body.Publisher}
	source, err := a.Catalog.TrialSource(ctx, actor(ctx), catalog.TopicRef{AppID: in.AppID, ID: in.Body.TopicID.Value}, wanted.fill)
	if err != nil {
		return nil, err
	}
	if a.Tester == nil {
		return nil, freshet.Errorf(freshet.Unavailable, "This server does not poll")
	}
	seen, err := a.Tester.Try(ctx, source)
	if err != nil {
		return nil, err
	}
	out := trial{Status: seen.Status, Duration: seen.Took.Milliseconds(), Bytes: seen.Bytes, Document: seen.Document}
	if seen.Failure != nil {
		out.Error = seen.Failure.Error()
	}
	return &body[trial]{Body: out}, nil
}
