package manage

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/freshet-io/freshet"
)

type document struct {
	Status       int
	ContentType  string `header:"Content-Type" hidden:"true"`
	CacheControl string `header:"Cache-Control" hidden:"true"`
	ETag         string `header:"ETag" doc:"The version of the document, in quotes"`
	Body         []byte // as it was published: the library sends bytes as they are
}

func (a *api) documents(h huma.API) {
	handle(a, h, huma.Operation{
		OperationID: "get-document", Method: http.MethodGet, Path: "/topics/{topic_id}/document", Tags: []string{topicsTag}, Security: signedIn,
		Summary: "Read the current document", Description: "What a new subscriber would get first. 404 while nothing was published.",
		Responses: map[string]*huma.Response{
			"200": {
				Description: "The document",
				Content: map[string]*huma.MediaType{"application/json": {
					Schema:  &huma.Schema{Description: "Any JSON; an array of items on item topics"},
					Example: map[string]any{"CAC40": 8012.5},
				}},
			},
			"304": {Description: "The document is still the one of If-None-Match"},
		},
	}, a.getDocument)
}

func (a *api) getDocument(ctx context.Context, in *struct {
	TopicPath
	IfNoneMatch string `header:"If-None-Match" example:"\"k3j2h1-42\"" doc:"An ETag, or several: answer 304 if the document is still one of them"`
}) (*document, error) {
	found, err := a.Catalog.Topic(ctx, actor(ctx), in.ref())
	if err != nil {
		return nil, err
	}
	text, at, err := a.Documents.Document(ctx, *found)
	if err != nil {
		return nil, err
	}
	if at.IsZero() {
		return nil, freshet.Errorf(freshet.NotFound, "Nothing was published to this topic yet")
	}
	etag := `"` + at.String() + `"`
	answer := &document{Status: http.StatusNotModified, ETag: etag, CacheControl: "private, no-cache"}
	if !matches(in.IfNoneMatch, etag) {
		answer.Status, answer.ContentType, answer.Body = http.StatusOK, "application/json", text
	}
	return answer, nil
}

// matches reports whether an If-None-Match header names the tag: by itself, in a list, marked as weak by a proxy
// that compressed the answer, or as "*".
func matches(header, etag string) bool {
	for candidate := range strings.SplitSeq(header, ",") {
		candidate = strings.TrimSpace(candidate)
		if candidate == "*" || strings.TrimPrefix(candidate, "W/") == etag {
			return true
		}
	}
	return false
}
