package openapi

import (
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// Describe finishes the description of an API once every operation is registered: what the library documents but we
// never send goes, what every answer carries comes, and answers may grow members without breaking anybody.
func Describe(h huma.API) *huma.OpenAPI {
	d := h.OpenAPI()
	d.Components.Headers = commonHeaders
	inRequests := map[string]bool{}
	for _, path := range d.Paths {
		for _, op := range operations(path) {
			delete(op.Responses, "422") // the library's; a bad request is always 400 here
			for status, response := range op.Responses {
				describeHeaders(status, response)
			}
			if op.RequestBody == nil {
				continue
			}
			for _, media := range op.RequestBody.Content {
				collect(d.Components.Schemas, media.Schema, inRequests)
			}
		}
	}
	for name, schema := range d.Components.Schemas.Map() {
		if !inRequests[name] {
			// Only answers use it. Members may be added to answers within a major version.
			schema.AdditionalProperties = nil
		}
	}
	return d
}

func operations(p *huma.PathItem) []*huma.Operation {
	var all []*huma.Operation
	for _, op := range []*huma.Operation{p.Get, p.Put, p.Post, p.Delete, p.Options, p.Head, p.Patch, p.Trace} {
		if op != nil {
			all = append(all, op)
		}
	}
	return all
}

var commonHeaders = map[string]*huma.Header{
	"RateLimit":          number("How many requests a minute are allowed", 6000),
	"RateLimitRemaining": number("How many of them are left in this minute", 5999),
	"RetryAfter":         number("Seconds to wait before trying again", 12),
}

func number(text string, example int) *huma.Header {
	return &huma.Header{Description: text, Schema: &huma.Schema{Type: huma.TypeInteger, Examples: []any{example}}}
}

func describeHeaders(status string, r *huma.Response) {
	if r.Headers == nil {
		r.Headers = map[string]*huma.Param{}
	}
	refer := func(header, component string) {
		r.Headers[header] = &huma.Param{Ref: "#/components/headers/" + component}
	}
	refer("X-RateLimit-Limit-Minute", "RateLimit")
	refer("X-RateLimit-Remaining-Minute", "RateLimitRemaining")
	if status == "429" {
		refer("Retry-After", "RetryAfter")
	}
}

// collect adds the names of every schema that s leads to.
func collect(r huma.Registry, s *huma.Schema, names map[string]bool) {
	if s == nil {
		return
	}
	if s.Ref != "" {
		name := s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]
		if names[name] {
			return
		}
		names[name] = true
		collect(r, r.SchemaFromRef(s.Ref), names)
		return
	}
	for _, property := range s.Properties {
		collect(r, property, names)
	}
	collect(r, s.Items, names)
}
