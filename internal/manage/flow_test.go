package manage

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
)

const (
	appFrequency   = "default_configurations.http-poller.polling_frequency"
	appForce       = "default_configurations.http-post.force_publishing"
	topicFrequency = "publisher.config.polling_frequency"
	topicForce     = "publisher.config.force_publishing"
)

func setDefault(kind, setting string, value any) map[string]any {
	return map[string]any{"default_configurations": map[string]any{kind: map[string]any{setting: value}}}
}

func setConfig(setting string, value any) map[string]any {
	return map[string]any{"publisher": map[string]any{"config": map[string]any{setting: value}}}
}

func TestWhatATopicLeavesOpenComesFromItsAppAndThenFromTheService(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.signUp()
	app := c.newApp().text("id")
	open := c.newPoller(app, nil).text("id")
	own := c.newPoller(app, map[string]any{"polling_frequency": 300}).text("id")
	post := c.newTopic(app).text("id")
	expect := func(when string, open2, own2 float64, force bool) {
		t.Helper()
		for id, want := range map[string]any{open: open2, own: own2} {
			if got := c.call("GET", "/topics/"+id, nil).want(200).at(topicFrequency); got != want {
				t.Errorf("%s: frequency %v, want %v", when, got, want)
			}
		}
		if got := c.call("GET", "/topics/"+post, nil).want(200).at(topicForce); got != force {
			t.Errorf("%s: force_publishing %v, want %v", when, got, force)
		}
		list := c.call("GET", "/apps/"+app+"/topics", nil).want(200).at("items").([]any)
		if got := list[0].(map[string]any)["publisher"].(map[string]any)["config"].(map[string]any)["polling_frequency"]; got != open2 {
			t.Errorf("%s: the listing says %v", when, got)
		}
	}
	expect("at first", 2000, 300, true)
	a := c.call("PATCH", "/apps/"+app, setDefault("http-poller", "polling_frequency", 500)).want(200)
	if a.at(appFrequency) != 500.0 || a.at(appForce) != true {
		t.Errorf("the app says %s", a.body)
	}
	expect("after the app's", 500, 300, true)
	c.call("PATCH", "/apps/"+app, setDefault("http-post", "force_publishing", false)).want(200)
	expect("after the app's other one", 500, 300, false)
	c.call("PATCH", "/topics/"+open, setConfig("polling_frequency", 700)).want(200)
	c.call("PATCH", "/topics/"+post, setConfig("force_publishing", true)).want(200)
	expect("after the topic's", 700, 300, true)
	c.call("PATCH", "/topics/"+open, setConfig("polling_frequency", nil)).want(200)
	c.call("PATCH", "/topics/"+post, setConfig("force_publishing", nil)).want(200)
	expect("after the topic's went", 500, 300, false)
	c.call("PATCH", "/apps/"+app, setDefault("http-poller", "polling_frequency", nil)).want(200)
	expect("after the app's went", 2000, 300, false)
	c.call("PATCH", "/apps/"+app, `{"default_configurations":{"http-post":null}}`).want(200)
	expect("after the app's other one went", 2000, 300, true)
	c.call("PATCH", "/apps/"+app, `{"default_configurations":{"http-poller":{"polling_frequency":900},"http-post":{"force_publishing":false}}}`).want(200)
	c.call("PATCH", "/apps/"+app, `{"default_configurations":{}}`).want(200)
	c.call("PATCH", "/apps/"+app, `{"name":"other"}`).want(200)
	expect("after changes of something else", 900, 300, false)
	c.call("PATCH", "/apps/"+app, `{"default_configurations":null}`).want(200)
	expect("after all went", 2000, 300, true)
}

func TestAnAppTakesItsSettingsAtCreation(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.signUp()
	a := c.call("POST", "/apps", `{"name":"a","auto_provisioning_allowed":true,"client_request_signature_enabled":true,
		"default_configurations":{"http-poller":{"polling_frequency":500},"http-post":{"force_publishing":false}}}`).want(201)
	if a.at("auto_provisioning_allowed") != true || a.at("client_request_signature_enabled") != true || a.at(appFrequency) != 500.0 || a.at(appForce) != false {
		t.Errorf("created %s", a.body)
	}
	a = c.call("POST", "/apps", `{"name":"b","auto_provisioning_allowed":null,"client_request_signature_enabled":null,"default_configurations":null}`).want(201)
	if a.at("auto_provisioning_allowed") != false || a.at("client_request_signature_enabled") != false || a.at(appFrequency) != 2000.0 || a.at(appForce) != true {
		t.Errorf("created %s", a.body)
	}
	for rel, want := range map[string]string{
		"self": "/v1/apps/" + a.text("id"), "topics": "/v1/apps/" + a.text("id") + "/topics", "user": "/v1/users/" + c.id,
	} {
		if got := a.link(rel); got != want {
			t.Errorf("link %s: %q, want %q", rel, got, want)
		}
	}
	if got := a.header.Get("Location"); got != "/api/v1/apps/"+a.text("id") {
		t.Errorf("Location %q", got)
	}
	c.call("PATCH", "/apps/"+a.text("id"), `{"auto_provisioning_allowed":true}`).want(200)
	a = c.call("PATCH", "/apps/"+a.text("id"), `{"auto_provisioning_allowed":null,"client_request_signature_enabled":true}`).want(200)
	if a.at("auto_provisioning_allowed") != false || a.at("client_request_signature_enabled") != true {
		t.Errorf("changed to %s", a.body)
	}
}

func TestAnAppNameIsUniqueAmongTheAppsOfItsUser(t *testing.T) {
	t.Parallel()
	s := serve(t)
	ada, eve := s.signUp(), s.signUp()
	first := ada.call("POST", "/apps", `{"name":"Quotes"}`).want(201).text("id")
	second := ada.call("POST", "/apps", `{"name":"Other"}`).want(201).text("id")
	eve.call("POST", "/apps", `{"name":"Quotes"}`).want(201)
	for _, a := range []*response{
		ada.call("POST", "/apps", `{"name":"Quotes"}`).want(409),
		ada.call("PATCH", "/apps/"+second, `{"name":"Quotes"}`).want(409),
	} {
		if diff := cmp.Diff(map[string]string{"name": "is taken"}, a.faults()); diff != "" {
			t.Error(diff)
		}
	}
	ada.call("PATCH", "/apps/"+first, `{"name":"Quotes"}`).want(200)
	ada.call("DELETE", "/apps/"+first, nil).want(204)
	ada.call("POST", "/apps", `{"name":"Quotes"}`).want(201)
	app := ada.newApp().text("id")
	ada.newTopic(app)
	ada.newTopic(app) // names of topics need not be unique
}

func TestAnEMailIsUniqueInAnyCase(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a := s.stranger().call("POST", "/users", userBody("ada@example.com", nil)).want(201)
	if got := a.header.Get("Location"); got != "/api/v1/users/"+a.text("id") {
		t.Errorf("Location %q", got)
	}
	if strings.Contains(string(a.body), "password") {
		t.Errorf("the user is answered with a password: %s", a.body)
	}
	eve := s.signUp()
	for _, a := range []*response{
		s.stranger().call("POST", "/users", userBody("ADA@example.com", nil)).want(409),
		eve.call("PATCH", "/users/"+eve.id, map[string]any{"email": "Ada@Example.com", "current_password": password}).want(409),
	} {
		if diff := cmp.Diff(map[string]string{"email": "is taken"}, a.faults()); diff != "" {
			t.Error(diff)
		}
	}
	eve.call("PATCH", "/users/"+eve.id, map[string]any{"email": "Eve@example.com", "current_password": password}).want(200)
	eve.call("PATCH", "/users/"+eve.id, map[string]any{"email": "EVE@example.com", "current_password": password}).want(200)
	eve.signIn("eve@example.com", password).want(200)
}

func TestAPayloadIsForLifeButMayBeRepeated(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.signUp()
	app := c.newApp().text("id")
	made := c.call("POST", "/apps/"+app+"/topics", topicBody("http-post", nil, map[string]any{"type": "item", "item_id_path": ".Identifier.Symbol"})).want(201)
	path := "/topics/" + made.text("id")
	for _, same := range []string{
		`{}`, `{"type":"item"}`, `{"item_id_path":".Identifier.Symbol"}`, `{"item_id_path":"|Identifier|Symbol"}`,
		`{"type":"item","item_id_path":"/Identifier/Symbol"}`,
	} {
		a := c.call("PATCH", path, `{"publisher":{"payload":`+same+`}}`).want(200)
		if got := a.text("publisher.payload.item_id_path"); got != ".Identifier.Symbol" {
			t.Errorf("%s changed the path to %q", same, got)
		}
	}
	for other, field := range map[string]string{
		`{"type":"snapshot"}`: "publisher.payload.type", `null`: "publisher.payload.type", `{"type":null}`: "publisher.payload.type",
		`{"item_id_path":".identifier.Symbol"}`: "publisher.payload.item_id_path", `{"item_id_path":""}`: "publisher.payload.item_id_path",
		`{"item_id_path":null}`: "publisher.payload.item_id_path", `{"type":"item","item_id_path":".Identifier"}`: "publisher.payload.item_id_path",
	} {
		a := c.call("PATCH", path, `{"publisher":{"payload":`+other+`}}`).want(400)
		if diff := cmp.Diff(map[string]string{field: "cannot be changed after the topic is created"}, a.faults()); diff != "" {
			t.Errorf("%s: %s", other, diff)
		}
	}
	snapshot := c.newTopic(app).text("id")
	for _, same := range []string{`null`, `{}`, `{"type":"snapshot"}`, `{"type":null,"item_id_path":null}`, `{"item_id_path":""}`} {
		c.call("PATCH", "/topics/"+snapshot, `{"publisher":{"payload":`+same+`}}`).want(200)
	}
}

func TestWhatGetAnswersCanBeSentBack(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.signUp()
	app := c.newApp().text("id")
	for _, made := range []*response{
		c.newTopic(app), c.newPoller(app, nil),
		c.call("POST", "/apps/"+app+"/topics", topicBody("http-post", nil, map[string]any{"type": "item", "item_id_path": "|a|b"})).want(201),
	} {
		var body struct {
			Name      json.RawMessage `json:"name"`
			Publisher json.RawMessage `json:"publisher"`
		}
		path := "/topics/" + made.text("id")
		if err := json.Unmarshal(c.call("GET", path, nil).want(200).body, &body); err != nil {
			t.Fatal(err)
		}
		after := c.call("PATCH", path, body).want(200)
		if diff := cmp.Diff(made.at("publisher"), after.at("publisher")); diff != "" {
			t.Error(diff)
		}
		c.call("POST", "/apps/"+app+"/topics", body).want(201)
	}
}

func TestARenewedKeyReplacesItsPredecessor(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.signUp()
	made := c.newApp()
	path := "/apps/" + made.text("id")
	for _, kind := range []string{"subscriber_key", "publisher_key", "signature_key"} {
		fresh := c.call("PUT", path+"/"+kind, nil).want(200)
		if fresh.text(kind) == made.text(kind) || len(fresh.text(kind)) != len(made.text(kind)) {
			t.Errorf("%s: renewed from %q to %q", kind, made.text(kind), fresh.text(kind))
		}
		again := c.call("PUT", path+"/"+kind, `{"key":null,"overlap_seconds":60}`).want(200)
		if again.text(kind) == fresh.text(kind) {
			t.Errorf("%s: not renewed", kind)
		}
		brought := broughtKeys[freshet.KeyKind(strings.TrimSuffix(kind, "_key"))]
		for range 2 { // the second time nothing changes
			if got := c.call("PUT", path+"/"+kind, map[string]any{"key": brought}).want(200).text(kind); got != brought {
				t.Errorf("%s: brought %q, got %q", kind, brought, got)
			}
		}
		if got := c.call("GET", path, nil).want(200).text(kind); got != brought {
			t.Errorf("%s: now %q", kind, got)
		}
	}
}

func TestAChangeMovesUpdatedAtAndTellsEveryNode(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.tenant()
	var notices []grid.Notice
	t.Cleanup(s.grid.OnNotice(func(n grid.Notice) { notices = append(notices, n) }))
	for _, step := range []struct {
		method, path string
		body         any
		status       int
		want         grid.Notice
	}{
		{"PATCH", "/users/" + c.id, map[string]any{"first_name": "A"}, 200, grid.Notice{Scope: grid.ScopeUser, ID: c.id}},
		{"PATCH", "/apps/" + c.app, map[string]any{"name": "A"}, 200, grid.Notice{Scope: grid.ScopeApp, ID: c.app}},
		{"PUT", "/apps/" + c.app + "/publisher_key", nil, 200, grid.Notice{Scope: grid.ScopeApp, ID: c.app}},
		{"PATCH", "/topics/" + c.topic, map[string]any{"name": "A"}, 200, grid.Notice{Scope: grid.ScopeTopic, ID: c.topic}},
		{"DELETE", "/topics/" + c.topic, nil, 204, grid.Notice{Scope: grid.ScopeTopic, ID: c.topic}},
		{"DELETE", "/apps/" + c.app, nil, 204, grid.Notice{Scope: grid.ScopeApp, ID: c.app}},
		{"DELETE", "/users/" + c.id, nil, 204, grid.Notice{Scope: grid.ScopeUser, ID: c.id}},
	} {
		notices = nil
		s.now.advance(time.Second)
		a := c.call(step.method, step.path, step.body).want(step.status)
		if diff := cmp.Diff([]grid.Notice{step.want}, notices); diff != "" {
			t.Errorf("%s %s: notices %s", step.method, step.path, diff)
		}
		if step.status == 200 && (a.text("updated_at") != s.now.now().UTC().Format(time.RFC3339) || a.text("created_at") == a.text("updated_at")) {
			t.Errorf("%s %s: created %s, updated %s", step.method, step.path, a.text("created_at"), a.text("updated_at"))
		}
	}
	notices = nil
	if other := s.signUp(); other.call("PATCH", "/users/"+other.id, `{"language":"x"}`).want(400) != nil && len(notices) > 0 {
		t.Errorf("a refused change was told: %v", notices)
	}
}
