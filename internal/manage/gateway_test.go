package manage

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/registry"
)

// well is a process in good health.
type well struct{}

func (well) Health(context.Context) (string, map[string]string) {
	return "ready", map[string]string{"store": "ok"}
}

func TestAnAdminSeesHealth(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a := s.admin().call("GET", "/admin/health", nil).want(200)
	if a.text("status") != "ready" || a.text("checks.store") != "ok" {
		t.Errorf("%s", a.body)
	}
	s.signUp().call("GET", "/admin/health", nil).want(404)
}

func TestAnAdminReachesTheGatewayAndIsOnRecord(t *testing.T) {
	t.Parallel()
	s := serve(t)
	admin, ada := s.admin(), s.signUp()
	made := map[string]string{} // what a path calls by its name
	for _, test := range []struct {
		method, path, body string
		status             int
		action, subject    string // the subject is an identifier that was answered, unless it is named
	}{
		{"GET", "/apis?size=2", "", 200, "", ""},
		{"POST", "/apis", `{"name":"quotes","request_path":"/quotes","upstream_url":"http://x.example"}`, 201, "gateway.create_api", ""},
		{"PATCH", "/apis/quotes", `{"preserve_host":true}`, 200, "gateway.update_api", ""},
		{"POST", "/apis/quotes/plugins", `{"name":"key-auth"}`, 201, "gateway.create_plugin", ""},
		{"POST", "/consumers", `{"username":"a/b"}`, 201, "gateway.create_consumer", ""},
		{"PATCH", "/consumers/a%2Fb", `{"username":"mobile"}`, 200, "gateway.update_consumer", ""},
		{"POST", "/consumers/mobile/key-auth", `{}`, 201, "gateway.create_key", ""},
		{"DELETE", "/consumers/mobile/key-auth/{id}", "", 204, "gateway.delete_key", "{id}"},
		{"DELETE", "/apis/quotes", "", 204, "gateway.delete_api", "quotes"},
	} {
		var body any
		if test.body != "" {
			body = test.body
		}
		path := "/admin/gateway" + strings.ReplaceAll(test.path, "{id}", made["{id}"])
		before := admin.call("GET", "/admin/audit", nil).at("total")
		ada.call(test.method, path, body).want(404)
		if after := admin.call("GET", "/admin/audit", nil).at("total"); after != before {
			t.Fatalf("somebody else reached %s %s", test.method, path)
		}
		a := admin.call(test.method, path, body).want(test.status)
		if test.action == "" {
			continue
		}
		subject := strings.ReplaceAll(test.subject, "{id}", made["{id}"])
		if subject == "" {
			subject = a.text("id")
			made["{id}"] = subject
		}
		entry := admin.call("GET", "/admin/audit", nil).want(200).at("items").([]any)[0].(map[string]any)
		if entry["action"] != test.action || entry["subject"] != subject || entry["actor"] != admin.id {
			t.Errorf("after %s %s the audit begins with %v", test.method, path, entry)
		}
	}
}

func TestWhatIsNotRegisteredIsAnErrorAndNotOnRecord(t *testing.T) {
	t.Parallel()
	admin := serve(t).admin()
	faults := admin.call("POST", "/admin/gateway/apis", `{"name":"a b","upstream_url":7,"request_path":"/x"}`).want(400).faults()
	if !strings.HasPrefix(faults["name"], "must only contain") || faults["upstream_url"] != "is not a url" {
		t.Errorf("%v", faults)
	}
	admin.call("DELETE", "/admin/gateway/apis/none", nil).want(404)
	admin.call("DELETE", "/admin/gateway/apis/api", nil).want(405)
	admin.call("PATCH", "/admin/gateway/apis/api", `{"name":"x"}`).want(405)
	if n := admin.call("GET", "/admin/audit", nil).want(200).at("total"); n != 0.0 {
		t.Errorf("%v entries for what did not happen", n)
	}
}

// unwritable is a process that cannot write.
type unwritable struct {
	registry.Writer
	err error
}

func (u unwritable) WriteAPI(context.Context, registry.APIWrite) (*freshet.API, error) {
	return nil, u.err
}

func TestTroubleOfTheRegistryIsTroubleOfThisAPI(t *testing.T) {
	for _, test := range []struct {
		err  error
		want freshet.Kind
	}{
		{freshet.Errorf(freshet.Unavailable, "Come back later"), freshet.Unavailable}, {errors.New("secret"), freshet.Internal},
	} {
		r := registry.New(nil, nil, registry.Options{Writer: unwritable{err: test.err}})
		if _, err := deleteAPI(r, &GatewayCall{ctx: t.Context(), api: "quotes"}); freshet.KindOf(err) != test.want {
			t.Errorf("%v: %v", test.err, err)
		}
	}
}

func TestTheNextPageOfTheGatewayIsOnThisAPI(t *testing.T) {
	t.Parallel()
	admin := serve(t).admin()
	admin.call("POST", "/admin/gateway/consumers", `{"username":"a/b"}`).want(201)
	for _, key := range []string{"one", "two"} {
		admin.call("POST", "/admin/gateway/consumers/a%2Fb/key-auth", map[string]any{"key": key}).want(201)
	}
	next := admin.call("GET", "/admin/gateway/consumers/a%2Fb/key-auth?size=1", nil).want(200).text("next")
	path, ok := strings.CutPrefix(next, "/v1")
	if !ok || !strings.HasPrefix(path, "/admin/gateway/consumers/a%2Fb/key-auth?offset=") || !strings.HasSuffix(path, "&size=1") {
		t.Fatalf("next: %s", next)
	}
	if last := admin.call("GET", path, nil).want(200); !strings.Contains(string(last.body), `"key":"two"`) || strings.Contains(string(last.body), `"next"`) {
		t.Errorf("the next page is %s", last.body)
	}
}

func TestAProcessWithoutAGatewaySaysSo(t *testing.T) {
	t.Parallel()
	s := serve(t, setting{manage: func(o *Options) { o.Registry = nil }})
	if a := s.admin().call("GET", "/admin/gateway/apis", nil).want(404); !strings.Contains(string(a.body), "has no gateway") {
		t.Errorf("%s", a.body)
	}
}
