package manage

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/freshet-io/freshet"
)

// well is a process in good health.
type well struct{}

func (well) Health(context.Context) (string, map[string]string) {
	return "ready", map[string]string{"store": "ok"}
}

// echo stands for the gateway's administration: it answers with what it is told to, or with what it was asked.
type echo struct {
	status int
	body   string
	asked  []string
}

func (e *echo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	e.asked = append(e.asked, fmt.Sprintf("%s %s %s", r.Method, r.URL, body))
	status := e.status
	if status == 0 {
		status = map[string]int{"POST": 201, "DELETE": 204}[r.Method]
	}
	if status != 0 {
		w.WriteHeader(status)
	}
	switch {
	case e.body != "":
		_, _ = io.WriteString(w, e.body)
	case status != 204:
		_, _ = io.WriteString(w, `{"id":"made","data":[]}`)
	}
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
	gateway := &echo{}
	s := serve(t, setting{manage: func(o *Options) { o.Gateway = gateway }})
	admin, ada := s.admin(), s.signUp()
	for i, test := range []struct {
		method, path, body, asked string
		status                    int
		action, subject           string
	}{
		{"GET", "/apis?size=2", "", "GET /apis?size=2 ", 200, "", ""},
		{"POST", "/apis", `{"name":"quotes"}`, `POST /apis {"name":"quotes"}`, 201, "gateway.create_api", "made"},
		{"PATCH", "/apis/a%2Fb", `{"name":"q"}`, `PATCH /apis/a%2Fb {"name":"q"}`, 200, "gateway.update_api", "made"},
		{"POST", "/apis/quotes/plugins", `{"name":"key-auth"}`, `POST /apis/quotes/plugins {"name":"key-auth"}`, 201, "gateway.create_plugin", "made"},
		{"POST", "/consumers/mobile/key-auth", `{}`, `POST /consumers/mobile/key-auth {}`, 201, "gateway.create_key", "made"},
		{"DELETE", "/consumers/mobile/key-auth/k", "", "DELETE /consumers/mobile/key-auth/k ", 204, "gateway.delete_key", "k"},
		{"DELETE", "/apis/quotes", "", "DELETE /apis/quotes ", 204, "gateway.delete_api", "quotes"},
	} {
		var body any
		if test.body != "" {
			body = test.body
		}
		ada.call(test.method, "/admin/gateway"+test.path, body).want(404)
		if len(gateway.asked) != i {
			t.Fatalf("somebody else reached it: %v", gateway.asked)
		}
		admin.call(test.method, "/admin/gateway"+test.path, body).want(test.status)
		if got := gateway.asked[len(gateway.asked)-1]; got != test.asked {
			t.Errorf("asked %q, want %q", got, test.asked)
		}
		if test.action == "" {
			continue
		}
		entry := admin.call("GET", "/admin/audit", nil).want(200).at("items").([]any)[0].(map[string]any)
		if entry["action"] != test.action || entry["subject"] != test.subject || entry["actor"] != admin.id {
			t.Errorf("after %s %s the audit begins with %v", test.method, test.path, entry)
		}
	}
}

func TestRefusalsOfTheGatewayAreErrorsOfThisAPI(t *testing.T) {
	t.Parallel()
	gateway := &echo{status: 400, body: `{"name":"name must be good","upstream_url":["upstream_url is not a url","another"]}`}
	s := serve(t, setting{manage: func(o *Options) { o.Gateway = gateway }})
	admin := s.admin()
	faults := admin.call("POST", "/admin/gateway/apis", `{}`).want(400).faults()
	if faults["name"] != "must be good" || faults["upstream_url"] != "another" {
		t.Errorf("%v", faults)
	}
	for _, status := range []int{404, 405, 409} {
		gateway.status, gateway.body = status, `{"message":"Not today"}`
		if a := admin.call("DELETE", "/admin/gateway/apis/x", nil).want(status); !strings.Contains(string(a.body), "Not today") {
			t.Errorf("%d: %s", status, a.body)
		}
	}
	if n := admin.call("GET", "/admin/audit", nil).want(200).at("total"); n != 0.0 {
		t.Errorf("%v entries for what did not happen", n)
	}
}

func TestTroubleOfTheGatewayIsTroubleOfThisAPI(t *testing.T) {
	for status, want := range map[int]freshet.Kind{503: freshet.Unavailable, 500: freshet.Internal, 502: freshet.Internal} {
		if got := freshet.KindOf(gatewayError(status, []byte(`{"message":"secret"}`))); got != want {
			t.Errorf("%d: %v", status, got)
		}
	}
}

func TestTheNextPageOfTheGatewayIsOnThisAPI(t *testing.T) {
	t.Parallel()
	gateway := &echo{body: `{"data":[{}],"total":3,"next":"http:///consumers/mobile/key-auth?offset=x&size=1"}`}
	s := serve(t, setting{manage: func(o *Options) { o.Gateway = gateway }})
	a := s.admin().call("GET", "/admin/gateway/consumers/mobile/key-auth?size=1", nil).want(200)
	if got := a.text("next"); got != "/v1/admin/gateway/consumers/mobile/key-auth?offset=x&size=1" {
		t.Errorf("next: %s", got)
	}
}

func TestAProcessWithoutAGatewaySaysSo(t *testing.T) {
	t.Parallel()
	s := serve(t, setting{manage: func(o *Options) { o.Gateway = nil }})
	if a := s.admin().call("GET", "/admin/gateway/apis", nil).want(404); !strings.Contains(string(a.body), "has no gateway") {
		t.Errorf("%s", a.body)
	}
}
