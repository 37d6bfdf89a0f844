package manage

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/freshet-io/freshet/internal/openapi"
)

// descriptions are both APIs as they are served, read by somebody else's library.
var descriptions = sync.OnceValues(func() ([]*openapi3.T, error) {
	var all []*openapi3.T
	a := &api{}
	for _, describe := range []func(openapi.Mux) any{
		func(m openapi.Mux) any { return a.management(m) },
		func(m openapi.Mux) any { return a.admin(m) },
	} {
		text, err := json.Marshal(describe(http.NewServeMux()))
		if err != nil {
			return nil, err
		}
		doc, err := openapi3.NewLoader().LoadFromData(text)
		if err != nil {
			return nil, err
		}
		closeSchemas(doc)
		all = append(all, doc)
	}
	return all, nil
})

// closeSchemas makes the check stricter than the description is for clients: an answer has no member that is not
// described.
func closeSchemas(doc *openapi3.T) {
	no := false
	for _, s := range doc.Components.Schemas {
		if len(s.Value.Properties) > 0 {
			s.Value.AdditionalProperties = openapi3.BoolSchema{Has: &no}
		}
	}
}

// findOperation returns the described operation for a request, or nil.
func findOperation(t *testing.T, method, path string) *openapi3.Operation {
	t.Helper()
	docs, err := descriptions()
	if err != nil {
		t.Fatal(err)
	}
	if method == http.MethodHead {
		method = http.MethodGet
	}
	for _, doc := range docs {
		for template, item := range doc.Paths.Map() {
			if op := item.GetOperation(method); op != nil && matchesTemplate(template, path) {
				return op
			}
		}
	}
	return nil
}

func matchesTemplate(template, path string) bool {
	want, got := strings.Split(template, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return false
	}
	for i := range want {
		if !strings.HasPrefix(want[i], "{") && want[i] != got[i] {
			return false
		}
	}
	return true
}

// checkDescribed fails the test if the answer is not one that the description promises: status, content type and
// body. What leads nowhere is answered with the error body all the same.
func checkDescribed(t *testing.T, r *http.Request, a *response) {
	t.Helper()
	path := strings.TrimPrefix(strings.TrimPrefix(r.URL.EscapedPath(), "/api/v1"), "/api/latest")
	if strings.HasPrefix(path, "/api-browser") || strings.HasPrefix(path, "/openapi") {
		return
	}
	if a.status == http.StatusUnprocessableEntity || a.status >= 500 {
		t.Errorf("%s: status %d: %s", a.name, a.status, a.body)
	}
	if a.status >= 400 {
		checkError(t, a)
	}
	op := findOperation(t, r.Method, path)
	if op == nil {
		if a.status != http.StatusNotFound && a.status != http.StatusMethodNotAllowed && r.Method != http.MethodOptions {
			t.Errorf("%s: status %d for what is not described", a.name, a.status)
		}
		return
	}
	if got := a.header.Values("Cache-Control"); len(got) != 1 || !(got[0] == "no-store" || strings.HasSuffix(path, "/document")) {
		t.Errorf("%s: Cache-Control %q", a.name, got)
	}
	response := op.Responses.Value(strconv.Itoa(a.status))
	if response == nil {
		t.Errorf("%s: status %d is not described: %s", a.name, a.status, a.body)
		return
	}
	if r.Method != http.MethodHead {
		checkContent(t, response.Value, a)
	}
}

func checkContent(t *testing.T, response *openapi3.Response, a *response) {
	t.Helper()
	if len(response.Content) == 0 {
		if len(a.body) > 0 {
			t.Errorf("%s: a body where none is described: %s", a.name, a.body)
		}
		return
	}
	if got := a.header.Get("Content-Type"); got != "application/json" {
		t.Errorf("%s: content type %q", a.name, got)
	}
	var v any
	if err := json.Unmarshal(a.body, &v); err != nil {
		t.Errorf("%s: %v in %s", a.name, err, a.body)
		return
	}
	schema := response.Content["application/json"].Schema.Value
	if err := schema.VisitJSON(v, openapi3.EnableJSONSchema2020(), openapi3.VisitAsResponse()); err != nil {
		t.Errorf("%s: answer against its schema: %v\n%s", a.name, err, a.body)
	}
}

// leaks are texts that an answer to a mistake must not have: words of Go and of SQL, and what tests use as password.
var leaks = []string{"int64", "struct", "json:", "manage.", "freshet.", "catalog.", "unmarshal", "sqlite", "SQL", "panic",
	"goroutine", "nil", "%!", "\x00", "hunter2", password}

func checkError(t *testing.T, a *response) {
	t.Helper()
	if a.header.Get("Content-Type") != "application/json" {
		t.Errorf("%s: an error of content type %q", a.name, a.header.Get("Content-Type"))
	}
	for field, message := range a.faults() {
		if field == "" || message == "" {
			t.Errorf("%s: a fault without a name or a text: %s", a.name, a.body)
		}
	}
	for _, leak := range leaks {
		if strings.Contains(string(a.body), leak) {
			t.Errorf("%s: the answer has %q in it: %s", a.name, leak, a.body)
		}
	}
}

// decompress insists on gzip for every answer that has a body, and on none for one that has not.
func decompress(t *testing.T, r *http.Request, w *httptest.ResponseRecorder) []byte {
	t.Helper()
	coding := w.Header().Get("Content-Encoding")
	if w.Body.Len() == 0 || r.Method == http.MethodHead {
		if coding != "" && r.Method != http.MethodHead {
			t.Errorf("%s %s: Content-Encoding %q without a body", r.Method, r.URL, coding)
		}
		return nil
	}
	if coding != "gzip" {
		t.Errorf("%s %s: Content-Encoding %q, want gzip", r.Method, r.URL, coding)
		return w.Body.Bytes()
	}
	z, err := gzip.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return body
}
