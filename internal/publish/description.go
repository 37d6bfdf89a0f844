package publish

import (
	"net/http"
	"reflect"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/freshet-io/freshet/internal/httpkit"
	"github.com/freshet-io/freshet/internal/router"
)

// route is one way in. The mux and the description are both made from it, so they cannot disagree.
type route struct {
	method, path string
	forms        map[string]router.Form // by media type of the body
	id           string
	summary      string
	text         string
}

func routes() []route {
	return []route{
		{
			method: http.MethodPost, path: "/topics/{topic_id}", id: "publish",
			forms:   map[string]router.Form{"application/json": router.Whole},
			summary: "Publish a document",
			text: "Replaces the topic's document, or, on an item topic, the items in the array. Subscribers get the difference. " +
				"A publication that is equal to the document before it is accepted and sends nothing.",
		},
		{
			method: http.MethodPatch, path: "/topics/{topic_id}", id: "publishPatch",
			forms: map[string]router.Form{
				"application/json-patch+json":  router.JSONPatch,
				"application/merge-patch+json": router.MergePatch,
			},
			summary: "Change the document by a patch",
			text: "Applies a JSON Patch (RFC 6902) or a merge patch (RFC 7396) to the newest document. A patch that does not " +
				"apply changes nothing.",
		},
	}
}

// Description describes the publishing API, relative to where it is mounted.
func Description() *huma.OpenAPI {
	schemas := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	api := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title:       "Freshet publishing API",
			Version:     "1",
			Description: "Publish JSON to a topic; every subscriber gets the document once and then only what changed.",
		},
		Servers: []*huma.Server{{URL: "/publish/v1"}, {URL: "/publish/latest"}},
		Tags:    []*huma.Tag{{Name: "topics", Description: "Topics of type http-post"}},
		Components: &huma.Components{
			Schemas: schemas,
			SecuritySchemes: map[string]*huma.SecurityScheme{
				"publisherKey": {Type: "apiKey", In: "header", Name: "X-Sd-Publisher-Key", Description: "The publisher key of the topic's app"},
			},
		},
	}
	failure := schemas.Schema(reflect.TypeFor[httpkit.ErrorBody](), true, "Error")
	for _, r := range routes() {
		api.AddOperation(r.operation(failure))
	}
	return api
}

func (r route) operation(failure *huma.Schema) *huma.Operation {
	op := &huma.Operation{
		OperationID: r.id,
		Method:      r.method,
		Path:        r.path,
		Summary:     r.summary,
		Description: r.text,
		Tags:        []string{"topics"},
		Security:    []map[string][]string{{"publisherKey": {}}},
		Parameters:  parameters(),
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{}},
		Responses:   map[string]*huma.Response{"204": accepted()},
	}
	for name, form := range r.forms {
		op.RequestBody.Content[name] = &huma.MediaType{Schema: bodySchema(form)}
	}
	for status, text := range failures(r.method) {
		op.Responses[strconv.Itoa(status)] = &huma.Response{
			Description: text,
			Content:     map[string]*huma.MediaType{"application/json": {Schema: failure}},
		}
	}
	return op
}

func bodySchema(form router.Form) *huma.Schema {
	switch form {
	case router.JSONPatch:
		return &huma.Schema{Type: huma.TypeArray, Description: "Operations of RFC 6902", Items: &huma.Schema{
			Type:     huma.TypeObject,
			Required: []string{"op", "path"},
			Properties: map[string]*huma.Schema{
				"op":    {Type: huma.TypeString, Enum: []any{"add", "remove", "replace", "move", "copy", "test"}},
				"path":  {Type: huma.TypeString, Format: "json-pointer"},
				"from":  {Type: huma.TypeString, Format: "json-pointer"},
				"value": {Description: "Any JSON"},
			},
		}}
	case router.MergePatch:
		return &huma.Schema{Description: "A merge patch of RFC 7396"}
	}
	return &huma.Schema{Description: "Any JSON document; an array of objects on an item topic", Examples: []any{map[string]any{"price": 101.25}}}
}

func parameters() []*huma.Param {
	text := &huma.Schema{Type: huma.TypeString}
	return []*huma.Param{
		{Name: "topic_id", In: "path", Required: true, Description: "The topic", Schema: &huma.Schema{Type: huma.TypeString}},
		{Name: "If-Match", In: "header", Description: `Publish only if the newest document has this entity tag: as it was given, or the version number alone, like "7"`, Schema: text},
		{Name: "Idempotency-Key", In: "header", Description: "Repetitions with the same key within 24 hours change nothing and get the first answer", Schema: &huma.Schema{Type: huma.TypeString, MaxLength: ptr(maxIdempotencyKey)}},
		{Name: "Content-Encoding", In: "header", Description: "How the body is compressed", Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{"gzip", "identity"}}},
	}
}

func accepted() *huma.Response {
	count := &huma.Schema{Type: huma.TypeInteger}
	return &huma.Response{
		Description: "The publication is stored and ordered",
		Headers: map[string]*huma.Header{
			"ETag":                         {Description: "The newest document's epoch and version; none if the publication was dropped because nobody is subscribed, or was made before by a node that died over it", Schema: &huma.Schema{Type: huma.TypeString}},
			"Idempotent-Replayed":          {Description: "true if an earlier request with the same Idempotency-Key had this effect", Schema: &huma.Schema{Type: huma.TypeString}},
			"X-RateLimit-Limit-Minute":     {Description: "Publications the app may make in a minute", Schema: count},
			"X-RateLimit-Remaining-Minute": {Description: "Publications left in this minute", Schema: count},
		},
	}
}

func failures(method string) map[int]string {
	all := map[int]string{
		http.StatusBadRequest:            "The body is not what the topic takes; the message says where",
		http.StatusUnauthorized:          "The publisher key is missing, unknown, revoked, or of another app",
		http.StatusNotFound:              "There is no such topic",
		http.StatusMethodNotAllowed:      "The topic is fed by polling",
		http.StatusConflict:              "The Idempotency-Key was used for another publication, or the first one is still under way",
		http.StatusPreconditionFailed:    "The document changed meanwhile",
		http.StatusRequestEntityTooLarge: "The body is too large",
		http.StatusInsufficientStorage:   "The documents of the app or of its account would be longer together than the quota `document_bytes` allows, and not shorter than before",
		http.StatusUnsupportedMediaType:  "The content type or encoding is not supported",
		http.StatusTooManyRequests:       "The app published too often; Retry-After says when to go on",
		http.StatusInternalServerError:   "Our fault",
		http.StatusServiceUnavailable:    "The publication could not be stored now, or it is not known whether it was, which the message says; try again with the same Idempotency-Key",
	}
	if method == http.MethodPatch {
		all[http.StatusBadRequest] = "The patch is malformed or does not apply to the document"
	}
	return all
}

func ptr[T any](v T) *T { return &v }
