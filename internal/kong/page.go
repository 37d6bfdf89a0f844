package kong

import (
	"net/url"
	"strconv"

	"github.com/freshet-io/freshet/internal/registry"
)

// pageBody is a page of a list.
type pageBody[T any] struct {
	Data  []T    `json:"data"`
	Total int64  `json:"total"`
	Next  string `json:"next,omitempty"`
}

// pageOf shows a page, with the address of the next one.
func pageOf[T, B any](c *call, p registry.Page, list registry.Listing[T], body func(*T) B, err error) (response, error) {
	if err != nil {
		return response{}, err
	}
	out := pageBody[B]{Data: []B{}, Total: list.Total}
	for i := range list.Items {
		out.Data = append(out.Data, body(&list.Items[i]))
	}
	if list.Next != "" {
		out.Next = c.nextPage(list.Next, p.Size)
	}
	return shown(out)
}

func (c *call) nextPage(after string, size int64) string {
	next := url.URL{Scheme: "http", Host: c.r.Host, Path: c.r.URL.Path, RawPath: c.r.URL.RawPath}
	if c.r.TLS != nil {
		next.Scheme = "https"
	}
	query := c.r.URL.Query()
	query.Set("offset", after)
	query.Set("size", strconv.FormatInt(size, 10))
	next.RawQuery = query.Encode()
	return next.String()
}
