package kong

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/httpkit"
	"github.com/freshet-io/freshet/internal/registry"
)

// maxBody is the largest body that is read.
const maxBody = 10 << 20

// readValues reads the query and the body. What the body says wins.
func readValues(w http.ResponseWriter, r *http.Request) (registry.Values, error) {
	values := registry.Values{}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, errQuery
	}
	values.AddForm(query)
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return nil, httpkit.BodyError(err)
	}
	kind, options, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		kind = ""
	}
	switch {
	case kind == "application/json":
		err = addJSON(values, r, body)
	case len(bytes.TrimSpace(body)) == 0:
		err = nil
	case kind == "multipart/form-data":
		err = addMultipart(values, body, options["boundary"])
	case kind == "application/x-www-form-urlencoded" || kind == "":
		err = addEncoded(values, body)
	default:
		err = freshet.Errorf(freshet.UnsupportedMedia, "Send application/x-www-form-urlencoded or application/json")
	}
	if err != nil {
		return nil, err
	}
	return values, values.Check()
}

func addJSON(to registry.Values, r *http.Request, body []byte) error {
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
	to.AddObject(object)
	return nil
}

func addEncoded(to registry.Values, body []byte) error {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return errForm
	}
	to.AddForm(form)
	return nil
}

func addMultipart(to registry.Values, body []byte, boundary string) error {
	r := &http.Request{Method: http.MethodPost, Body: io.NopCloser(bytes.NewReader(body)),
		Header: http.Header{"Content-Type": {mime.FormatMediaType("multipart/form-data", map[string]string{"boundary": boundary})}}}
	if err := r.ParseMultipartForm(maxBody); err != nil { // all of it fits in memory
		return errForm
	}
	to.AddForm(r.MultipartForm.Value)
	return nil
}
