package publish_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/freshet-io/freshet/internal/publish"
)

// description is the API as it is served, read by somebody else's library, and closed: an answer has no member that is
// not described.
var description = sync.OnceValues(func() (*openapi3.T, error) {
	text, err := json.Marshal(publish.Description())
	if err != nil {
		return nil, err
	}
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return nil, err
	}
	no := false
	for _, s := range doc.Components.Schemas {
		s.Value.AdditionalProperties = openapi3.BoolSchema{Has: &no}
	}
	return doc, nil
})

// checkDescribed fails the test if the answer is not one that the description promises: status, content type and body.
func checkDescribed(t *testing.T, method string, w *httptest.ResponseRecorder) {
	t.Helper()
	doc, err := description()
	if err != nil {
		t.Fatal(err)
	}
	op := doc.Paths.Value("/topics/{topic_id}").GetOperation(method)
	if op == nil {
		if w.Code != http.StatusMethodNotAllowed {
			t.Errorf("%s answers %d and is not described", method, w.Code)
		}
		return
	}
	response := op.Responses.Value(strconv.Itoa(w.Code))
	if response == nil {
		t.Errorf("%s: status %d is not described: %s", method, w.Code, w.Body)
		return
	}
	if len(response.Value.Content) == 0 {
		if w.Body.Len() > 0 {
			t.Errorf("%s: a body where none is described: %s", method, w.Body)
		}
		return
	}
	if got := w.Header().Get("Content-Type"); got != "application/json" {
		t.Errorf("%s: content type %q", method, got)
	}
	var v any
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		t.Errorf("%s: %v in %s", method, err, w.Body)
		return
	}
	if err := response.Value.Content["application/json"].Schema.Value.VisitJSON(v); err != nil {
		t.Errorf("%s %d: %v", method, w.Code, err)
	}
}

func TestTheDescriptionIsValidOpenAPI(t *testing.T) {
	doc, err := description()
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Error(err)
	}
}
