package client

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
)

// Page is one page of a listing.
type Page[T any] struct {
	Items   []T    `json:"items"`
	Links   []Link `json:"links"`
	Page    int64  `json:"page"`
	PerPage int64  `json:"per_page"`
	Total   int64  `json:"total"`
}

// Link leads on from a resource.
type Link struct {
	Rel  string `json:"rel"`
	Href string `json:"href"`
}

const perPage = 1000 // the most that servers allow

// list walks through all pages of a listing. Things that come or go meanwhile may be missed or seen twice.
func list[T any](ctx context.Context, c *Client, path string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		separator := "?"
		if strings.Contains(path, "?") {
			separator = "&"
		}
		for n := 0; ; n++ {
			var page Page[T]
			at := fmt.Sprintf("%s%spage=%d&per_page=%d", path, separator, n, perPage)
			if err := c.manage(ctx, http.MethodGet, at, nil, &page); err != nil {
				yield(none, err)
				return
			}
			for _, item := range page.Items {
				if !yield(item, nil) {
					return
				}
			}
			if len(page.Items) == 0 || int64(n+1)*perPage >= page.Total {
				return
			}
		}
	}
}

// Collect gathers a listing into a slice.
func Collect[T any](all iter.Seq2[T, error]) ([]T, error) {
	var out []T
	for item, err := range all {
		if err != nil {
			return nil, err
		}
		out = append(out, item)
	}
	return out, nil
}

// escape puts an identifier into a path.
func escape(id string) string { return url.PathEscape(id) }
