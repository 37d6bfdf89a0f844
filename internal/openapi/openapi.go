// Package openapi describes HTTP APIs in OpenAPI 3.1, serves the descriptions as pages to browse, and checks
// requests against them before a handler sees them. It bends the huma library to the service's manners: strict JSON,
// one error body, field names in messages, and never a rejected value in an answer (it may be a password).
//
// It knows no route of the service. An API is built once at start and then safe for concurrent use.
package openapi

import (
	"mime"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/httpkit"
)

// Mux is where an API puts its routes. An http.ServeMux is one.
type Mux interface {
	HandleFunc(pattern string, handler func(http.ResponseWriter, *http.Request))
	ServeHTTP(http.ResponseWriter, *http.Request)
}

// Info is the front page of a description.
type Info struct {
	Title       string
	Description string
	BasePaths   []string // where clients find the API, e.g. /api/v1
	Tags        []*huma.Tag
	Security    map[string]*huma.SecurityScheme
}

// New returns an API that serves its operations on mux, with paths relative to the base path.
func New(mux Mux, info Info) huma.API {
	return humago.New(mux, Config(info))
}

// Config is the configuration of an API: also good for a description whose handlers stand elsewhere.
func Config(info Info) huma.Config {
	c := huma.DefaultConfig(info.Title, "1.0.0")
	c.Info.Description = info.Description
	c.Info.License = &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"}
	for _, path := range info.BasePaths {
		c.Servers = append(c.Servers, &huma.Server{URL: path})
	}
	c.Tags = info.Tags
	c.Components.Schemas = huma.NewMapRegistry("#/components/schemas/", schemaName)
	c.Components.SecuritySchemes = info.Security
	c.DocsPath, c.OpenAPIPath, c.SchemasPath = "", "", ""
	c.CreateHooks = nil
	strict := huma.Format{Marshal: encode, Unmarshal: decode}
	c.Formats = map[string]huma.Format{"application/json": strict, "json": strict}
	return c
}

// schemaName turns the library's name for a generic type, PageApp, into what people call it: AppPage.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	if rest, ok := strings.CutPrefix(name, "Page"); ok {
		return rest + "Page"
	}
	return name
}

// JSONOnly is a middleware for operations. It answers 415 for bodies that are not JSON text as it is: the library
// takes what it cannot parse as a content type for JSON, and would call compressed bytes bad JSON.
func JSONOnly(ctx huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(ctx)
	if ctx.Operation().RequestBody == nil || r.ContentLength == 0 {
		next(ctx)
		return
	}
	if err := checkMedia(r.Header); err != nil {
		httpkit.SetErrorHeaders(w.Header(), err)
		httpkit.WriteJSON(w, httpkit.Status(err), httpkit.Body(err))
		return
	}
	next(ctx)
}

func checkMedia(h http.Header) error {
	if coding := h.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return freshet.Errorf(freshet.UnsupportedMedia, "The body must not be compressed: leave Content-Encoding out")
	}
	kind := h.Get("Content-Type")
	if kind == "" {
		return nil // nobody means anything else
	}
	media, _, err := mime.ParseMediaType(kind)
	// A JSON Patch would not mean what its sender thinks.
	if err != nil || (media != "application/json" && media != "application/merge-patch+json") {
		return errNotJSON
	}
	return nil
}

var errNotJSON = freshet.Errorf(freshet.UnsupportedMedia, "The body must be JSON: send Content-Type: application/json")
