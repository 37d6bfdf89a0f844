package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/httpkit"
)

// params is what a request says, whichever way it says it: string from a form, and what JSON has; nested where names
// have dots. nil unsets a field.
type params map[string]any

// blank is a field of a form that was sent with nothing in it. No type accepts it.
type blank struct{}

// Limits of a request to the administration.
const (
	maxAdminBody = 10 << 20
	maxFields    = 1000
)

var errJSON = refuse(http.StatusBadRequest, message{"Cannot parse JSON body"})

// readParams reads the query and the body. What the body says wins.
func readParams(w http.ResponseWriter, r *http.Request) (params, error) {
	p := params{}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, message{"Cannot parse the query"})
	}
	p.addForm(query)
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxAdminBody))
	if err != nil {
		return nil, httpkit.BodyError(err)
	}
	kind, options, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		kind = ""
	}
	switch {
	case kind == "application/json":
		err = p.addJSON(r, body)
	case len(bytes.TrimSpace(body)) == 0:
		err = nil
	case kind == "multipart/form-data":
		err = p.addMultipart(body, options["boundary"])
	case kind == "application/x-www-form-urlencoded" || kind == "":
		err = p.addEncoded(body)
	default:
		err = freshet.Errorf(freshet.UnsupportedMedia, "Send application/x-www-form-urlencoded or application/json")
	}
	if err == nil && len(p) > maxFields {
		err = refuse(http.StatusBadRequest, message{"Too many fields"})
	}
	return p, err
}

func (p params) addJSON(r *http.Request, body []byte) error {
	if len(bytes.TrimSpace(body)) == 0 && (r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodDelete) {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var object map[string]any
	if err := decoder.Decode(&object); err != nil || object == nil {
		return errJSON
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errJSON // something follows
	}
	for _, nested := range []bool{false, true} { // so that config.minute adds to config, whichever was read first
		for name, v := range object {
			if strings.Contains(name, ".") == nested {
				p.put(name, v)
			}
		}
	}
	return nil
}

func (p params) addEncoded(body []byte) error {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return refuse(http.StatusBadRequest, message{"Cannot parse the form"})
	}
	p.addForm(form)
	return nil
}

func (p params) addMultipart(body []byte, boundary string) error {
	r := &http.Request{Method: http.MethodPost, Body: io.NopCloser(bytes.NewReader(body)),
		Header: http.Header{"Content-Type": {mime.FormatMediaType("multipart/form-data", map[string]string{"boundary": boundary})}}}
	if err := r.ParseMultipartForm(maxAdminBody); err != nil { // all of it fits in memory
		return refuse(http.StatusBadRequest, message{"Cannot parse the form"})
	}
	p.addForm(r.MultipartForm.Value)
	return nil
}

// addForm takes a=1, a=1&a=2, a[]=1 and a[1]=1&a[2]=2; the last three are lists.
func (p params) addForm(form url.Values) {
	names := make([]string, 0, len(form))
	for name := range form {
		names = append(names, name)
	}
	slices.Sort(names) // a[1] before a[2]
	lists := map[string][]any{}
	for _, name := range names {
		base, index, indexed := strings.Cut(strings.TrimSuffix(name, "]"), "[")
		if indexed = indexed && strings.HasSuffix(name, "]") && strings.Trim(index, "0123456789") == ""; !indexed {
			base = name
		}
		values := make([]any, len(form[name]))
		for i, v := range form[name] {
			values[i] = v
			if v == "" {
				values[i] = blank{}
			}
		}
		if !indexed && len(values) == 1 {
			p.put(base, values[0])
			continue
		}
		lists[base] = append(lists[base], values...)
	}
	for base, values := range lists {
		p.put(base, values)
	}
}

// put makes config.minute an entry of config. Something else in the place of config is replaced.
func (p params) put(name string, v any) {
	first, rest, nested := strings.Cut(name, ".")
	if !nested || first == "" || rest == "" {
		p[name] = v
		return
	}
	object, ok := p[first].(map[string]any)
	if !ok {
		object = map[string]any{}
		p[first] = object
	}
	object[rest] = v
}

// given reports whether the request says anything about the field.
func (p params) given(name string) bool { _, ok := p[name]; return ok }

// text reads a field into to. A field that is not given leaves it alone; null empties it.
func (p params) text(name string, to *string, f faults) {
	v, ok := p[name]
	if !ok {
		return
	}
	*to = ""
	if v == nil {
		return
	}
	s, ok := readText(v)
	if !ok {
		f.add(name, "%s is not a string", name)
		return
	}
	*to, _ = s.(string)
}

// flag is text for booleans.
func (p params) flag(name string, to *bool, f faults) {
	v, ok := p[name]
	if !ok {
		return
	}
	*to = false
	if v == nil {
		return
	}
	b, ok := readFlag(v)
	if !ok {
		f.add(name, "%s is not a boolean", name)
		return
	}
	*to, _ = b.(bool)
}

// need adds a fault of several fields, of which one is needed. A change is told of those only that it would take away.
func (p params) need(f faults, e extent, text string, fields ...string) {
	for _, name := range fields {
		if e == whole || p.given(name) {
			f.add(name, "%s", text)
		}
	}
}

// onlyKnown finds fields that do not exist.
func (p params) onlyKnown(f faults, known ...string) {
	for name := range p {
		if !slices.Contains(known, name) {
			f.add(name, "%s is an unknown field", name)
		}
	}
}
