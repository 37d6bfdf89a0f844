package gateway

import (
	"net/url"
	"strconv"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/store"
)

const (
	usualPage   = 100
	largestPage = 1000
)

// listed is a page of a list.
type listed[T any] struct {
	Data  []T    `json:"data"`
	Total int64  `json:"total"`
	Next  string `json:"next,omitempty"`
}

// filters reads what a list is asked for besides its page: by field, into the places given.
func (c *call) filters(to map[string]*string) (store.Cursor, error) {
	f := faults{}
	page := store.Cursor{Limit: usualPage + 1}
	for name := range c.params {
		switch at, known := to[name]; {
		case known:
			c.params.text(name, at, f)
		case name == "size":
			page.Limit = pageSize(c.params, f) + 1 // one more, to see whether there is a next page
		case name == "offset":
			page.After = pageOffset(c.params, f)
		default:
			f.add(name, "%s is an unknown field", name)
		}
	}
	return page, f.err()
}

func pageSize(p params, f faults) int64 {
	n, ok := readNumber(p["size"])
	size, _ := n.(int64)
	if !ok || size < 1 {
		f.add("size", "size must be a number from 1 to %d", largestPage)
	}
	return min(size, largestPage)
}

// pageOffset takes the offset, or the whole address of the next page in its place.
func pageOffset(p params, f faults) (after string) {
	p.text("offset", &after, f)
	if u, err := url.Parse(after); err == nil && u.Query().Has("offset") {
		after = u.Query().Get("offset")
	}
	if !freshet.IsID(after) {
		f.add("offset", "offset is not one of this list")
	}
	return after
}

// pageOf cuts what was read to the page and adds the address of the next one.
func pageOf[T, B any](c *call, page store.Cursor, list store.Listing[T], id func(*T) string, body func(*T) B) (reply, error) {
	out := listed[B]{Data: []B{}, Total: list.Total}
	size := int(page.Limit) - 1
	for i := range list.Items[:min(size, len(list.Items))] {
		out.Data = append(out.Data, body(&list.Items[i]))
	}
	if len(list.Items) > size {
		out.Next = c.nextPage(id(&list.Items[size-1]), size)
	}
	return shown(out)
}

func (c *call) nextPage(after string, size int) string {
	next := url.URL{Scheme: "http", Host: c.r.Host, Path: c.r.URL.Path, RawPath: c.r.URL.RawPath}
	if c.r.TLS != nil {
		next.Scheme = "https"
	}
	query := c.r.URL.Query()
	query.Set("offset", after)
	query.Set("size", strconv.Itoa(size))
	next.RawQuery = query.Encode()
	return next.String()
}
