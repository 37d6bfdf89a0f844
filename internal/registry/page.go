package registry

import (
	"net/url"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/store"
)

const (
	usualPage   = 100
	largestPage = 1000
)

// Page is a part of a list: what comes after an identifier, and how many at most.
type Page struct {
	After string
	Size  int64
}

// Listing is a page of a list.
type Listing[T any] struct {
	Items []T
	Total int64
	Next  string // what the next page comes after; empty on the last one
}

// cursor asks for one more, to see whether there is a next page.
func (p Page) cursor() store.Cursor { return store.Cursor{After: p.After, Limit: p.Size + 1} }

func pageOf[T any](p Page, list store.Listing[T], id func(*T) string, err error) (Listing[T], error) {
	if err != nil {
		return Listing[T]{}, err
	}
	out := Listing[T]{Items: list.Items, Total: list.Total}
	if int64(len(out.Items)) > p.Size {
		out.Items = out.Items[:p.Size]
		out.Next = id(&out.Items[p.Size-1])
	}
	return out, nil
}

// Filters select what a list holds; empty fields select everything.
type (
	// APIFilter selects APIs.
	APIFilter = store.APIFilter
	// PluginFilter selects plugins.
	PluginFilter = store.PluginFilter
	// ConsumerFilter selects consumers.
	ConsumerFilter = store.ConsumerFilter
	// CredentialFilter selects keys of consumers.
	CredentialFilter = store.CredentialFilter
)

// APIFilter reads which APIs a list is asked for.
func (v Values) APIFilter() (f APIFilter, p Page, err error) {
	r := reader{values: v}
	if builtIn := r.flag("built_in"); builtIn != nil {
		f.BuiltIn = *builtIn
	}
	if err := r.faults.err(freshet.Invalid); err != nil {
		return f, p, err
	}
	p, err = v.page(map[string]*string{"id": &f.ID, "name": &f.Name, "request_host": &f.RequestHost, "request_path": &f.RequestPath,
		"upstream_url": &f.UpstreamURL, "built_in": nil})
	return f, p, err
}

// PluginFilter reads which plugins a list is asked for.
func (v Values) PluginFilter() (f PluginFilter, p Page, err error) {
	p, err = v.page(map[string]*string{"id": &f.ID, "name": &f.Name, "api_id": &f.APIID, "consumer_id": &f.ConsumerID})
	return f, p, err
}

// ConsumerFilter reads which consumers a list is asked for.
func (v Values) ConsumerFilter() (f ConsumerFilter, p Page, err error) {
	p, err = v.page(map[string]*string{"id": &f.ID, "username": &f.Username, "custom_id": &f.CustomID})
	return f, p, err
}

// CredentialFilter reads which keys a list is asked for.
func (v Values) CredentialFilter() (f CredentialFilter, p Page, err error) {
	var key string
	p, err = v.page(map[string]*string{"id": &f.ID, "key": &key, "consumer_id": &f.ConsumerID})
	f.Key = freshet.Key(key)
	return f, p, err
}

// page reads the filters into their places, and the page.
func (v Values) page(filters map[string]*string) (Page, error) {
	f := faults{}
	page := Page{Size: usualPage}
	for name := range v {
		switch at, known := filters[name]; {
		case known && at != nil:
			*at = v.filter(name, &f)
		case known: // it was read already
		case name == "size":
			page.Size = v.pageSize(&f)
		case name == "offset":
			page.After = v.pageOffset(&f)
		default:
			f.add(name, unknown)
		}
	}
	return page, f.err(freshet.Invalid)
}

func (v Values) filter(name string, f *faults) string {
	read, ok := readText(v[name])
	if !ok && v[name] != nil {
		f.add(name, notText)
		return ""
	}
	text, _ := read.(string)
	return text
}

func (v Values) pageSize(f *faults) int64 {
	n, ok := readNumber(v["size"])
	size, _ := n.(int64)
	if !ok || size < 1 {
		f.add("size", "must be a number from 1 to %d", largestPage)
	}
	return min(size, largestPage)
}

// pageOffset takes the offset, or the whole address of the next page in its place.
func (v Values) pageOffset(f *faults) string {
	after := v.filter("offset", f)
	if u, err := url.Parse(after); err == nil && u.Query().Has("offset") {
		after = u.Query().Get("offset")
	}
	if !freshet.IsID(after) {
		f.add("offset", "is not one of this list")
	}
	return after
}
