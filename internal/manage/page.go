package manage

import (
	"fmt"
	"net/url"

	"github.com/danielgtaylor/huma/v2"

	"github.com/freshet-io/freshet/internal/catalog"
)

// Paging is the query of every listing. Exported, like every struct that inputs share: the library looks only
// into those.
type Paging struct {
	Page    int64 `query:"page" minimum:"0" maximum:"1000000000" default:"0" doc:"Which page, from 0"`
	PerPage int64 `query:"per_page" minimum:"1" maximum:"1000" default:"100" doc:"How many items a page has"`
}

// Resolve refuses what the library lets pass: a parameter that is given twice, or empty, or not properly encoded.
func (p *Paging) Resolve(ctx huma.Context) []error {
	var errs []error
	at := ctx.URL()
	query, err := url.ParseQuery(at.RawQuery)
	for _, name := range []string{"page", "per_page"} {
		values, given := query[name]
		if given && (len(values) != 1 || values[0] == "") {
			errs = append(errs, &huma.ErrorDetail{Location: "query." + name, Message: "must be one integer"})
		}
	}
	if err != nil {
		errs = append(errs, &huma.ErrorDetail{Location: "query.query string", Message: "is not properly encoded"})
	}
	return errs
}

func (p *Paging) rows() catalog.Page {
	return catalog.Page{Offset: p.Page * p.PerPage, Limit: p.PerPage}
}

// page is one page of a listing.
type page[T any] struct {
	Items   []T    `json:"items" nullable:"false"`
	Links   []link `json:"links" nullable:"false" doc:"self, first, next (except on the last page) and last"`
	Page    int64  `json:"page" example:"0" doc:"Which page this is, from 0"`
	PerPage int64  `json:"per_page" example:"100" doc:"How many items a page has"`
	Total   int64  `json:"total" example:"1" doc:"How many items there are in all"`
}

// link is a way on from here.
type link struct {
	Rel  string `json:"rel" example:"self" doc:"What it leads to"`
	Href string `json:"href" example:"/v1/apps" doc:"A path that begins with the version; put /api in front of it"`
}

func linkTo(rel, format string, args ...any) link {
	return link{Rel: rel, Href: linkPrefix + fmt.Sprintf(format, args...)}
}

// pageOf shows a listing. path is the listing's own, from behind the version; filter is added to its query.
func pageOf[N, T any](list catalog.Listing[N], p Paging, path string, filter url.Values, show func(*N) T) *body[page[T]] {
	out := page[T]{Items: make([]T, len(list.Items)), Page: p.Page, PerPage: p.PerPage, Total: list.Total}
	for i := range list.Items {
		out.Items[i] = show(&list.Items[i])
	}
	more := ""
	if len(filter) > 0 {
		more = "&" + filter.Encode()
	}
	at := func(rel string, n int64) link {
		return linkTo(rel, "%s?page=%d&per_page=%d%s", path, n, p.PerPage, more)
	}
	last := max(0, (list.Total-1)/p.PerPage)
	out.Links = append(out.Links, at("self", p.Page), at("first", 0))
	if p.Page < last {
		out.Links = append(out.Links, at("next", p.Page+1))
	}
	out.Links = append(out.Links, at("last", last))
	return &body[page[T]]{Body: out}
}

// body is an answer that is nothing but its body.
type body[T any] struct{ Body T }

// created is the answer to a request that made something.
type created[T any] struct {
	Location string `header:"Location" doc:"Where the new resource is"`
	Body     T
}
