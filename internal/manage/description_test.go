package manage

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"
)

func TestTheDescriptionsAreValidOpenAPI(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for _, name := range []string{"/openapi.json", "/openapi-admin.json"} {
		a := s.stranger().call("GET", name, nil).want(200)
		doc, err := openapi3.NewLoader().LoadFromData(a.body)
		if err != nil {
			t.Fatal(err)
		}
		if err := doc.Validate(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.HasPrefix(doc.OpenAPI, "3.1") {
			t.Errorf("%s is OpenAPI %s", name, doc.OpenAPI)
		}
		if again := s.stranger().call("GET", name, nil); string(again.body) != string(a.body) {
			t.Errorf("%s differs from one time to the next", name)
		}
	}
}

// muxRecorder notes which patterns are registered.
type muxRecorder struct {
	*http.ServeMux
	patterns []string
}

func (m *muxRecorder) HandleFunc(pattern string, h func(http.ResponseWriter, *http.Request)) {
	m.patterns = append(m.patterns, pattern)
	m.ServeMux.HandleFunc(pattern, h)
}

// pages are what is served beside the operations.
var pages = []string{
	"GET /api-browser", "GET /api-browser/{file...}", "GET /api-browser-admin", "GET /api-browser-admin/{file...}",
	"GET /openapi.json", "GET /openapi-admin.json",
}

func TestWhatIsServedIsDescribedAndWhatIsDescribedIsServed(t *testing.T) {
	mux := &muxRecorder{ServeMux: http.NewServeMux()}
	if err := register(mux, Options{}); err != nil {
		t.Fatal(err)
	}
	docs, err := descriptions()
	if err != nil {
		t.Fatal(err)
	}
	described := slices.Clone(pages)
	for _, doc := range docs {
		for path, item := range doc.Paths.Map() {
			for method := range item.Operations() {
				described = append(described, method+" "+path)
			}
		}
	}
	slices.Sort(described)
	slices.Sort(mux.patterns)
	if diff := cmp.Diff(described, mux.patterns); diff != "" {
		t.Errorf("described and served differ (-described +served):\n%s", diff)
	}
}

// decided is every row of the table of the management API that this part of the service has.
var decided = []string{
	"POST /users", "GET /users/{user_id}", "PATCH /users/{user_id}", "DELETE /users/{user_id}", "GET /users/{user_id}/apps",
	"PUT /session", "DELETE /session", "POST /apps", "GET /apps", "GET /apps/{app_id}", "PATCH /apps/{app_id}", "DELETE /apps/{app_id}",
	"PUT /apps/{app_id}/subscriber_key", "PUT /apps/{app_id}/publisher_key", "PUT /apps/{app_id}/signature_key",
	"POST /apps/{app_id}/topics", "GET /apps/{app_id}/topics", "GET /apps/{app_id}/topics/{topic_id}", "PATCH /apps/{app_id}/topics/{topic_id}",
	"DELETE /apps/{app_id}/topics/{topic_id}", "GET /topics/{topic_id}", "PATCH /topics/{topic_id}", "DELETE /topics/{topic_id}",
	"GET /topics/{topic_id}/document", "GET /admin/users", "PATCH /admin/users/{user_id}", "GET /admin/audit",
}

func TestEveryDecidedRouteIsThere(t *testing.T) {
	for _, route := range decided {
		method, path, _ := strings.Cut(route, " ")
		if findOperation(t, method, path) == nil {
			t.Errorf("%s is not described", route)
		}
	}
}

func TestADescriptionReadsWell(t *testing.T) {
	docs, err := descriptions()
	if err != nil {
		t.Fatal(err)
	}
	odd := regexp.MustCompile(`Struct|Optional|\[|\]|^[a-z]|List|Request$|Response$`)
	for _, doc := range docs {
		if len(doc.Servers) != 2 || doc.Servers[0].URL != "/api/v1" || doc.Servers[1].URL != "/api/latest" {
			t.Errorf("servers %v", doc.Servers)
		}
		for name, schema := range doc.Components.Schemas {
			if odd.MatchString(name) {
				t.Errorf("%s is no name for people", name)
			}
			if len(schema.Value.Properties) == 0 {
				t.Errorf("%s has no properties", name)
			}
		}
		for path, item := range doc.Paths.Map() {
			for method, op := range item.Operations() {
				checkOperation(t, method+" "+path, op)
			}
		}
	}
}

func checkOperation(t *testing.T, name string, op *openapi3.Operation) {
	if op.Summary == "" || op.OperationID == "" || len(op.Tags) != 1 {
		t.Errorf("%s: summary %q, id %q, tags %v", name, op.Summary, op.OperationID, op.Tags)
	}
	if open := op.OperationID == "create-user" || op.OperationID == "sign-in"; open == (op.Security != nil) {
		t.Errorf("%s: security %v", name, op.Security)
	}
	for part := range strings.SplitSeq(name, "/") {
		if param, ok := strings.CutPrefix(part, "{"); ok && op.Parameters.GetByInAndName("path", strings.TrimSuffix(param, "}")) == nil {
			t.Errorf("%s: parameter %s is not described", name, part)
		}
	}
	if op.Responses.Value("422") != nil {
		t.Errorf("%s: 422 is described, and never sent", name)
	}
	for _, status := range []string{"400", "429", "500", "503"} {
		response := op.Responses.Value(status)
		if response == nil || response.Value.Content["application/json"].Schema.Ref != "#/components/schemas/Error" {
			t.Errorf("%s: %s is not described as an error", name, status)
		}
	}
	for status, response := range op.Responses.Map() {
		if response.Value.Headers["X-RateLimit-Remaining-Minute"] == nil {
			t.Errorf("%s: %s has no rate-limit headers", name, status)
		}
	}
}

func TestAMemberInAnotherCaseIsNotTakenForIt(t *testing.T) {
	t.Parallel()
	s := serve(t)
	admin := s.admin()
	app := admin.newApp().text("id")
	topic := admin.newTopic(app).text("id")
	ids := strings.NewReplacer("{user_id}", admin.id, "{app_id}", app, "{topic_id}", topic)
	for _, route := range bodyRoutes(t) {
		for name := range findOperation(t, route[0], route[1]).RequestBody.Value.Content["application/json"].Schema.Value.Properties {
			for _, other := range []string{strings.ToUpper(name), strings.ToUpper(name[:1]) + name[1:], strings.Replace(name, "s", "ſ", 1)} {
				if other == name {
					continue
				}
				a := admin.call(route[0], ids.Replace(route[1]), map[string]any{other: "x"}).want(400)
				if got := a.faults()[other]; got != unknown {
					t.Errorf("%s %s: %s %q: %s", route[0], route[1], other, got, a.body)
				}
			}
		}
	}
}

func TestAMemberThatMayBeNullSaysSo(t *testing.T) {
	for _, test := range []struct {
		method, path, body string
		valid              bool
	}{
		{"PATCH", "/apps/x", `{"default_configurations":null,"auto_provisioning_allowed":null}`, true},
		{"PATCH", "/apps/x", `{"default_configurations":{"http-poller":{"polling_frequency":null},"http-post":null}}`, true},
		{"PATCH", "/apps/x", `{"name":null}`, false},
		{"PATCH", "/topics/x", `{"publisher":{"config":{"polling_frequency":null,"force_publishing":null}}}`, true},
		{"PATCH", "/topics/x", `{"publisher":null}`, false},
		{"PATCH", "/topics/x", `{"publisher":{"config":{"url":null}}}`, false},
		{"PATCH", "/users/x", `{"email":null}`, false},
		{"PATCH", "/admin/users/x", `{"quotas":{"connections":null}}`, true},
		{"PATCH", "/admin/users/x", `{"status":null}`, false},
		{"PUT", "/apps/x/subscriber_key", `{"key":null,"overlap_seconds":null}`, true},
		{"POST", "/apps", `{"name":"a","Name":"b"}`, false},
	} {
		var v any
		if err := json.Unmarshal([]byte(test.body), &v); err != nil {
			t.Fatal(err)
		}
		schema := findOperation(t, test.method, test.path).RequestBody.Value.Content["application/json"].Schema.Value
		err := schema.VisitJSON(v, openapi3.EnableJSONSchema2020(), openapi3.VisitAsRequest())
		if (err == nil) != test.valid {
			t.Errorf("%s %s %s: %v", test.method, test.path, test.body, err)
		}
	}
}

func TestEveryExampleInTheDescriptionWorks(t *testing.T) {
	t.Parallel()
	s := serve(t)
	admin, c := s.admin(), s.tenant()
	ids := strings.NewReplacer("{user_id}", c.id, "{app_id}", c.app, "{topic_id}", c.topic)
	registered := registerOne(admin)
	docs, err := descriptions()
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, doc := range docs {
		for path, item := range doc.Paths.Map() {
			for method, op := range item.Operations() {
				if op.RequestBody == nil {
					continue
				}
				caller := c.client
				if strings.HasPrefix(path, "/admin") {
					caller = admin
					op = doc.Paths.Value(path).GetOperation(method)
				}
				for name, example := range op.RequestBody.Value.Content["application/json"].Examples {
					if name == "disable" {
						continue // the caller would not come back
					}
					tried++
					if a := caller.call(method, registered.Replace(ids.Replace(path)), example.Value.Value); a.status != 200 && a.status != 201 {
						t.Errorf("%s %s %s: %d %s", method, path, name, a.status, a.body)
					}
				}
			}
		}
	}
	if tried < 20 {
		t.Errorf("only %d examples", tried)
	}
	s.stranger().call("POST", "/users", exampleOf(t, "POST", "/users")).want(201)
	s.stranger().call("PUT", "/session", exampleOf(t, "PUT", "/session")).want(200)
}

// exampleOf builds a body from the examples of its members, as the page does.
func exampleOf(t *testing.T, method, path string) map[string]any {
	body := map[string]any{}
	for name, member := range findOperation(t, method, path).RequestBody.Value.Content["application/json"].Schema.Value.Properties {
		if len(member.Value.Examples) == 0 {
			t.Fatalf("%s %s: %s has no example", method, path, name)
		}
		body[name] = member.Value.Examples[0]
	}
	return body
}
