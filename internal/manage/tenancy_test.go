package manage

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/freshet-io/freshet"
)

// tenant is a user with one of everything.
type tenant struct {
	*client
	app, topic string
}

func (s *server) tenant() tenant {
	c := s.signUp()
	app := c.newApp().text("id")
	return tenant{client: c, app: app, topic: c.newTopic(app).text("id")}
}

// goodBodies are bodies that the owner may send, by operation; a route that reads one and is missing here fails
// the matrix.
var goodBodies = map[string]any{
	"update-user":          map[string]any{"first_name": "Eve"},
	"create-topic":         topicBody("http-post", nil, nil),
	"test-topic":           map[string]any{"publisher": topicBody("http-poller", map[string]any{"url": "http://192.0.2.1/"}, nil)["publisher"]},
	"update-app":           map[string]any{"name": "Eve's"},
	"renew-subscriber-key": map[string]any{},
	"renew-publisher-key":  map[string]any{},
	"renew-signature-key":  map[string]any{},
	"update-topic":         map[string]any{"name": "Eve's"},
	"update-app-topic":     map[string]any{"name": "Eve's"},
	"admin-update-user":    map[string]any{"status": "active"},
	"admin-update-app":     map[string]any{"quotas": map[string]any{"connections": 1}},

	"gateway-create-api":      map[string]any{"name": "eves"},
	"gateway-update-api":      map[string]any{"name": "eves"},
	"gateway-create-plugin":   map[string]any{"name": "key-auth"},
	"gateway-update-plugin":   map[string]any{"enabled": false},
	"gateway-create-consumer": map[string]any{"username": "eve"},
	"gateway-update-consumer": map[string]any{"username": "eve"},
	"gateway-create-key":      map[string]any{},
}

// ownRoutes have no identifier: everybody has their own.
var ownRoutes = map[string]bool{"create-user": true, "sign-in": true, "sign-out": true, "sign-out-everywhere": true, "create-app": true, "list-apps": true}

func TestWhatBelongsToSomebodyElseDoesNotExist(t *testing.T) {
	t.Parallel()
	s := serve(t)
	ada, eve := s.tenant(), s.tenant()
	before := ada.call("GET", "/apps/"+ada.app, nil).want(200).body
	docs, err := descriptions()
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, doc := range docs {
		for template, item := range doc.Paths.Map() {
			for method, op := range item.Operations() {
				if ownRoutes[op.OperationID] {
					continue
				}
				body, known := goodBodies[op.OperationID]
				if op.RequestBody != nil && !known {
					t.Errorf("%s %s (%s): the matrix has no body for it", method, template, op.OperationID)
				}
				for _, path := range foreignPaths(template, ada, eve) {
					tried++
					got := eve.call(method, path, body)
					// What Ada has and what nobody has must look the same.
					nobody := eve.call(method, strings.NewReplacer(ada.id, freshet.NewID(), ada.app, freshet.NewID(), ada.topic, freshet.NewID()).Replace(path), body)
					if got.status != 404 || string(got.body) != string(nobody.body) {
						t.Errorf("%s %s: %d %s; for what does not exist: %d %s", method, path, got.status, got.body, nobody.status, nobody.body)
					}
					if got := s.stranger().call(method, path, body); got.status != 401 {
						t.Errorf("%s %s without a token: %d", method, path, got.status)
					}
				}
			}
		}
	}
	if tried < 25 {
		t.Errorf("only %d requests tried", tried)
	}
	if after := ada.call("GET", "/apps/"+ada.app, nil).want(200).body; string(after) != string(before) {
		t.Errorf("Ada's app changed:\n%s\n%s", before, after)
	}
	ada.call("GET", "/apps/"+ada.app+"/topics/"+ada.topic, nil).want(200)
}

// foreignPaths fills a template with identifiers of Ada's in every way that is not all Eve's own.
func foreignPaths(template string, ada, eve tenant) []string {
	paths := []string{template}
	for name, ids := range map[string][]string{
		"{user_id}": {ada.id, eve.id}, "{app_id}": {ada.app, eve.app}, "{topic_id}": {ada.topic, eve.topic},
	} {
		var next []string
		for _, p := range paths {
			if !strings.Contains(p, name) {
				next = append(next, p)
				continue
			}
			for _, id := range ids {
				next = append(next, strings.ReplaceAll(p, name, id))
			}
		}
		paths = next
	}
	var foreign []string
	for _, p := range paths {
		admin := strings.HasPrefix(p, "/admin")
		if admin || strings.Contains(p, ada.id) || strings.Contains(p, ada.app) || strings.Contains(p, ada.topic) {
			foreign = append(foreign, p)
		}
	}
	return foreign
}

func TestATopicIsFoundUnderItsOwnAppOnly(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.tenant()
	other := c.newApp().text("id")
	for _, method := range []string{"GET", "DELETE"} {
		c.call(method, "/apps/"+other+"/topics/"+c.topic, nil).want(404)
	}
	c.call("PATCH", "/apps/"+other+"/topics/"+c.topic, map[string]any{"name": "x"}).want(404)
	c.call("GET", "/apps/nonsense/topics/"+c.topic, nil).want(404)
	c.call("GET", "/apps/"+c.app+"/topics/"+c.topic, nil).want(200)
}

func TestAKeyOfAnotherAppCannotBeBroughtAlong(t *testing.T) {
	t.Parallel()
	s := serve(t)
	ada, eve := s.tenant(), s.tenant()
	app := ada.call("GET", "/apps/"+ada.app, nil).want(200)
	for _, kind := range []string{"subscriber_key", "publisher_key", "signature_key"} {
		key := app.text(kind)
		a := eve.call("PUT", "/apps/"+eve.app+"/"+kind, map[string]any{"key": key}).want(409)
		if strings.Contains(string(a.body), key) {
			t.Errorf("the refusal repeats the key: %s", a.body)
		}
		// Revoked ones stay taken.
		ada.call("PUT", "/apps/"+ada.app+"/"+kind, nil).want(200)
		eve.call("PUT", "/apps/"+eve.app+"/"+kind, map[string]any{"key": key}).want(409)
		ada.call("PUT", "/apps/"+ada.app+"/"+kind, map[string]any{"key": key}).want(409)
	}
}

func TestAnAdminSeesAndChangesEverythingAndIsOnRecord(t *testing.T) {
	t.Parallel()
	s := serve(t)
	admin, ada := s.admin(), s.tenant()
	admin.call("GET", "/users/"+ada.id, nil).want(200)
	admin.call("GET", "/users/"+ada.id+"/apps", nil).want(200)
	admin.call("GET", "/users/"+freshet.NewID()+"/apps", nil).want(404)
	admin.call("GET", "/users/"+freshet.NewID(), nil).want(404)
	admin.call("GET", "/apps/"+ada.app, nil).want(200)
	admin.call("GET", "/apps/"+ada.app+"/topics", nil).want(200)
	admin.call("GET", "/topics/"+ada.topic, nil).want(200)
	acts := []struct {
		method, path   string
		body           any
		status         int
		action, entity string
	}{
		{"PATCH", "/users/" + ada.id, map[string]any{"first_name": "A"}, 200, "user.update", ada.id},
		{"PATCH", "/admin/users/" + ada.id, map[string]any{"quotas": map[string]any{"connections": 3}}, 200, "user.administer", ada.id},
		{"PATCH", "/admin/apps/" + ada.app, map[string]any{"quotas": map[string]any{"connections": 3}}, 200, "app.administer", ada.app},
		{"PATCH", "/apps/" + ada.app, map[string]any{"name": "b"}, 200, "app.update", ada.app},
		{"PUT", "/apps/" + ada.app + "/subscriber_key", nil, 200, "app.renew_subscriber_key", ada.app},
		{"PATCH", "/topics/" + ada.topic, map[string]any{"name": "c"}, 200, "topic.update", ada.topic},
		{"DELETE", "/topics/" + ada.topic, nil, 204, "topic.delete", ada.topic},
		{"DELETE", "/apps/" + ada.app, nil, 204, "app.delete", ada.app},
		{"DELETE", "/users/" + ada.id, nil, 204, "user.delete", ada.id},
	}
	for i, act := range acts {
		admin.call(act.method, act.path, act.body).want(act.status)
		page := admin.call("GET", "/admin/audit", nil).want(200)
		entry := page.at("items").([]any)[0].(map[string]any)
		if entry["action"] != act.action || entry["subject"] != act.entity || entry["actor"] != admin.id || page.at("total") != float64(i+1) {
			t.Errorf("after %s %s the audit begins with %v of %v", act.method, act.path, entry, page.at("total"))
		}
	}
	// What an admin does to its own is nobody's business, unless only admins can do it.
	own := admin.newApp().text("id")
	admin.call("PATCH", "/admin/apps/"+own, map[string]any{"quotas": map[string]any{"connections": 3, "messages_per_month": nil}}).want(200)
	entry := admin.call("GET", "/admin/audit", nil).want(200).at("items").([]any)[0].(map[string]any)
	if text, _ := json.Marshal(entry["detail"]); entry["subject"] != own || string(text) != `{"quotas":{"connections":3,"messages_per_month":-1}}` {
		t.Errorf("the quota of its own app is on record as %v", entry)
	}
	admin.call("DELETE", "/apps/"+own, nil).want(204)
	if got := admin.call("GET", "/admin/audit", nil).at("total"); got != float64(len(acts)+1) {
		t.Errorf("%v entries", got)
	}
}

func TestAnAdminCannotEndItself(t *testing.T) {
	t.Parallel()
	s := serve(t)
	admin := s.admin()
	admin.call("DELETE", "/users/"+admin.id, nil).want(409)
	admin.call("PATCH", "/admin/users/"+admin.id, map[string]any{"status": "disabled"}).want(409)
	admin.call("PATCH", "/admin/users/"+admin.id, map[string]any{"status": "active", "quotas": map[string]any{"connections": 1}}).want(200)
}

func TestQuotasAreTheServersUntilAnAdminSetsThem(t *testing.T) {
	t.Parallel()
	s := serve(t)
	admin, ada := s.admin(), s.signUp()
	quotas := func() any { return ada.call("GET", "/users/"+ada.id, nil).want(200).at("quotas.requests_per_minute") }
	for _, step := range []struct {
		patch string
		want  float64
	}{
		{`{}`, 6000}, {`{"quotas":{"requests_per_minute":10}}`, 10}, {`{"quotas":{"connections":5}}`, 10}, {`{"quotas":{}}`, 10},
		{`{"quotas":{"requests_per_minute":null}}`, 6000}, {`{"quotas":{"requests_per_minute":0}}`, 0}, {`{"quotas":null}`, 6000},
	} {
		admin.call("PATCH", "/admin/users/"+ada.id, step.patch).want(200)
		if got := quotas(); got != step.want {
			t.Errorf("after %s: %v, want %v", step.patch, got, step.want)
		}
	}
}

func TestQuotasOfAnAppAreTheServersUntilAnAdminSetsThem(t *testing.T) {
	t.Parallel()
	s := serve(t)
	admin, ada := s.admin(), s.tenant()
	for _, step := range []struct {
		patch string
		want  [5]float64
	}{
		{`{}`, [5]float64{7, 0, 600, 0, 0}}, {`{"quotas":{"connections":5,"requests_per_minute":10}}`, [5]float64{5, 0, 10, 0, 0}},
		{`{"quotas":{"messages_per_month":9}}`, [5]float64{5, 9, 10, 0, 0}}, {`{"quotas":{"connections":null}}`, [5]float64{7, 9, 10, 0, 0}},
		{`{"quotas":{"topics":3,"document_bytes":400}}`, [5]float64{7, 9, 10, 3, 400}}, {`{"quotas":{"topics":null}}`, [5]float64{7, 9, 10, 0, 400}},
		{`{"quotas":{"connections":0}}`, [5]float64{0, 9, 10, 0, 400}}, {`{"quotas":null}`, [5]float64{7, 0, 600, 0, 0}},
	} {
		admin.call("PATCH", "/admin/apps/"+ada.app, step.patch).want(200)
		ada.call("PATCH", "/apps/"+ada.app, map[string]any{"name": "x"}).want(200) // which must not make the server's limits its own
		for _, a := range []*response{ada.call("GET", "/apps/"+ada.app, nil).want(200), admin.call("PATCH", "/admin/apps/"+ada.app, `{}`).want(200)} {
			var got [5]any
			for i, name := range []string{"connections", "messages_per_month", "requests_per_minute", "topics", "document_bytes"} {
				got[i] = a.at("quotas." + name)
			}
			if got != [5]any{step.want[0], step.want[1], step.want[2], step.want[3], step.want[4]} {
				t.Errorf("after %s: %v, want %v", step.patch, got, step.want)
			}
		}
	}
	admin.call("PATCH", "/admin/apps/"+ada.app, `{"quotas":{"connections":-1}}`).want(400)
	admin.call("PATCH", "/admin/apps/"+ada.app, `{"name":"y"}`).want(400)
	ada.call("PATCH", "/apps/"+ada.app, `{"quotas":{"connections":1}}`).want(400) // its owner may not
	admin.call("PATCH", "/admin/apps/"+freshet.NewID(), `{"quotas":null}`).want(404)
}

func TestATopicMoreThanTheQuotaIsForbidden(t *testing.T) {
	t.Parallel()
	s := serve(t)
	admin, ada, eve := s.admin(), s.tenant(), s.tenant()
	topic := map[string]any{"name": "one more", "publisher": map[string]any{"type": "http-post", "config": map[string]any{}}}
	admin.call("PATCH", "/admin/users/"+ada.id, `{"quotas":{"topics":1}}`).want(200) // it has one
	a := ada.call("POST", "/apps/"+ada.app+"/topics", topic).want(403)
	if text, _ := a.at("message").(string); !strings.Contains(text, "quota topics is 1") {
		t.Errorf("%q does not name the quota", text)
	}
	admin.call("POST", "/apps/"+ada.app+"/topics", topic).want(403) // whoever asks
	eve.call("POST", "/apps/"+ada.app+"/topics", topic).want(404)   // what is full is nobody else's business
	eve.call("POST", "/apps/"+eve.app+"/topics", topic).want(201)
	admin.call("PATCH", "/admin/users/"+ada.id, `{"quotas":{"topics":0}}`).want(200)
	ada.call("POST", "/apps/"+ada.app+"/topics", topic).want(201)
	admin.call("PATCH", "/admin/apps/"+ada.app, `{"quotas":{"topics":1}}`).want(200) // below what is there
	ada.call("GET", "/topics/"+ada.topic, nil).want(200)
	ada.call("POST", "/apps/"+ada.app+"/topics", topic).want(403)
}

func TestUsersAreFoundByAPartOfTheirNameOrEMail(t *testing.T) {
	t.Parallel()
	s := serve(t)
	admin := s.admin()
	for email, name := range map[string]string{"grace@navy.mil": "Grace", "ada@example.com": "Ada", "o_o@example.com": "100%"} {
		s.stranger().call("POST", "/users", userBody(email, map[string]any{"first_name": name})).want(201)
	}
	for query, want := range map[string]float64{
		"": 4, "GRACE": 1, "example.com": 2, "_": 1, "%25": 1, "nobody": 0, "%00": 0, "lovelace": 3, "x' OR 1=1": 0,
	} {
		a := admin.call("GET", "/admin/users?query="+strings.ReplaceAll(query, " ", "%20"), nil).want(200)
		if got := a.at("total"); got != want {
			t.Errorf("%q: %v users, want %v", query, got, want)
		}
		if query == "%25" && a.link("self") != "/v1/admin/users?page=0&per_page=100&query=%25" {
			t.Errorf("self: %s", a.link("self"))
		}
	}
}

func TestDeletingTakesEverythingBelowAlong(t *testing.T) {
	t.Parallel()
	s := serve(t)
	admin, ada := s.admin(), s.tenant()
	ada.call("DELETE", "/topics/"+ada.topic, nil).want(204)
	ada.call("GET", "/topics/"+ada.topic, nil).want(404)
	if n := ada.call("GET", "/apps/"+ada.app+"/topics", nil).want(200).at("total"); n != 0.0 {
		t.Errorf("%v topics left", n)
	}
	topic := ada.newTopic(ada.app).text("id")
	ada.call("DELETE", "/apps/"+ada.app, nil).want(204)
	admin.call("GET", "/topics/"+topic, nil).want(404)
	app := ada.newApp().text("id")
	topic = ada.newTopic(app).text("id")
	ada.call("DELETE", "/users/"+ada.id, nil).want(204)
	for _, path := range []string{"/users/" + ada.id, "/apps/" + app, "/topics/" + topic, "/apps/" + app + "/topics", "/users/" + ada.id + "/apps"} {
		admin.call(http.MethodGet, path, nil).want(404)
	}
}
