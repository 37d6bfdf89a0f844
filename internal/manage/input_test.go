package manage

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freshet-io/freshet"
)

// badInput is a request that must be refused, and the faults that the answer names.
type badInput struct {
	name, method, path, body string
	want                     map[string]string
}

const required, unknown = "is required", "is not a known field"

const pollRange = "must be between 100 and 86400000 milliseconds"

func userInputs() []badInput {
	with := func(member, value string) string {
		body := `{"email":"new@example.com","password":"hunter2hunter2","first_name":"A","last_name":"B","language":"fr_FR"}`
		i := strings.Index(body, `"`+member+`":`) + len(member) + 3
		return body[:i] + value + body[i+strings.IndexAny(body[i:], ",}"):]
	}
	long := func(n int) string { return `"` + strings.Repeat("é", n) + `"` }
	return []badInput{
		{"nothing", "POST", "/users", `{}`, map[string]string{"email": required, "password": required, "first_name": required, "last_name": required, "language": required}},
		{"null e-mail", "POST", "/users", with("email", `null`), map[string]string{"email": "must be a string"}},
		{"number as e-mail", "POST", "/users", with("email", `1e400`), map[string]string{"email": "must be a string"}},
		{"object as e-mail", "POST", "/users", with("email", `{}`), map[string]string{"email": "must be a string"}},
		{"empty e-mail", "POST", "/users", with("email", `""`), map[string]string{"email": required}},
		{"no at sign", "POST", "/users", with("email", `"ada"`), map[string]string{"email": "must be an e-mail address like name@example.com"}},
		{"name in e-mail", "POST", "/users", with("email", `"Ada <ada@example.com>"`), map[string]string{"email": "must be an e-mail address like name@example.com"}},
		{"line break in e-mail", "POST", "/users", with("email", `"ada@example.com\nBcc: x@example.com"`), map[string]string{"email": "must be an e-mail address like name@example.com"}},
		{"NUL in e-mail", "POST", "/users", with("email", `"ada\u0000@example.com"`), map[string]string{"email": "must be an e-mail address like name@example.com"}},
		{"overlong e-mail", "POST", "/users", with("email", `"`+strings.Repeat("a", 300)+`@example.com"`), map[string]string{"email": "is longer than 254 characters"}},
		{"short password", "POST", "/users", with("password", `"hunter2"`), map[string]string{"password": "must have at least 8 characters"}},
		{"password of seven wide characters", "POST", "/users", with("password", long(7)), map[string]string{"password": "must have at least 8 characters"}},
		{"overlong password", "POST", "/users", with("password", long(129)), map[string]string{"password": "is longer than 256 bytes"}},
		{"blank name", "POST", "/users", with("first_name", `" \u2003 "`), map[string]string{"first_name": "must not be blank"}},
		{"overlong name", "POST", "/users", with("last_name", long(101)), map[string]string{"last_name": "is longer than 100 characters"}},
		{"control character", "POST", "/users", with("last_name", `"a\u001b[31m"`), map[string]string{"last_name": "contains a control character"}},
		{"line separator", "POST", "/users", with("first_name", `"a\u2028b"`), map[string]string{"first_name": "contains a control character"}},
		{"language in words", "POST", "/users", with("language", `"french"`), map[string]string{"language": "must be a locale like fr_FR"}},
		{"language with a hyphen", "POST", "/users", with("language", `"fr-FR"`), map[string]string{"language": "must be a locale like fr_FR"}},
		{"language and a line break", "POST", "/users", with("language", `"fr_FR\n"`), map[string]string{"language": "must be a locale like fr_FR"}},
		{"privileges", "POST", "/users", `{"id":"x","role":"admin","Is_Admin":true,"status":"active","quotas":{}}`, map[string]string{
			"email": required, "password": required, "first_name": required, "last_name": required, "language": required,
			"id": unknown, "role": unknown, "Is_Admin": unknown, "status": unknown, "quotas": unknown}},
		{"other case", "POST", "/users", with("email", `"a@b.c","Email":"b@c.d"`), map[string]string{"Email": unknown}},
		{"several at once", "POST", "/users", `{"email":"x","password":"hunter2","first_name":"","last_name":"B","language":"x"}`, map[string]string{
			"email": "must be an e-mail address like name@example.com", "password": "must have at least 8 characters",
			"first_name": required, "language": "must be a locale like fr_FR"}},

		{"null everywhere", "PATCH", "/users/{user}", `{"email":null,"password":null,"first_name":null,"last_name":null,"language":null}`,
			map[string]string{"email": required, "password": required, "first_name": required, "last_name": required, "language": required,
				"current_password": "is required to change your own password or e-mail"}},
		{"bad password and bad name", "PATCH", "/users/{user}", `{"password":"hunter2","current_password":"x","first_name":" "}`,
			map[string]string{"password": "must have at least 8 characters", "first_name": "must not be blank"}},
		{"role", "PATCH", "/users/{user}", `{"role":"admin"}`, map[string]string{"role": unknown}},
		{"types", "PATCH", "/users/{user}", `{"email":1,"password":true,"first_name":[],"last_name":{},"language":1.5}`,
			map[string]string{"email": "must be a string", "password": "must be a string", "first_name": "must be a string",
				"last_name": "must be a string", "language": "must be a string"}},

		{"nothing", "PUT", "/session", `{}`, map[string]string{"email": required, "password": required}},
		{"types", "PUT", "/session", `{"email":[],"password":12345678}`, map[string]string{"email": "must be a string", "password": "must be a string"}},
		{"nulls", "PUT", "/session", `{"email":null,"password":null}`, map[string]string{"email": "must be a string", "password": "must be a string"}},
		{"unknown", "PUT", "/session", `{"email":"a","password":"b","Password":"hunter2"}`, map[string]string{"Password": unknown}},
	}
}

func appInputs() []badInput {
	all := []badInput{
		{"nothing", "POST", "/apps", `{}`, map[string]string{"name": required}},
		{"null", "POST", "/apps", `{"name":null}`, map[string]string{"name": "must be a string"}},
		{"types", "POST", "/apps", `{"name":1,"auto_provisioning_allowed":"yes","client_request_signature_enabled":1,"default_configurations":[]}`,
			map[string]string{"name": "must be a string", "auto_provisioning_allowed": "must be true or false",
				"client_request_signature_enabled": "must be true or false", "default_configurations": "must be an object"}},
		{"deeper types", "POST", "/apps", `{"name":"a","default_configurations":{"http-poller":1,"http-post":"x"}}`,
			map[string]string{"default_configurations.http-poller": "must be an object", "default_configurations.http-post": "must be an object"}},
		{"deepest types", "POST", "/apps", `{"name":"a","default_configurations":{"http-poller":{"polling_frequency":"2000"},"http-post":{"force_publishing":"true"}}}`,
			map[string]string{"default_configurations.http-poller.polling_frequency": "must be an integer", "default_configurations.http-post.force_publishing": "must be true or false"}},
		{"deep unknown", "POST", "/apps", `{"name":"a","default_configurations":{"http-poller":{"Polling_Frequency":1},"http-get":{}}}`,
			map[string]string{"default_configurations.http-poller.Polling_Frequency": unknown, "default_configurations.http-get": unknown}},
		{"keys", "POST", "/apps", `{"name":"a","subscriber_key":"k","user_id":"u"}`, map[string]string{"subscriber_key": unknown, "user_id": unknown}},
		{"overlong name", "POST", "/apps", `{"name":"` + strings.Repeat("名", 201) + `"}`, map[string]string{"name": "is longer than 200 characters"}},
		{"NUL in name", "POST", "/apps", `{"name":"a\u0000b"}`, map[string]string{"name": "contains a control character"}},
		{"null name", "PATCH", "/apps/{app}", `{"name":null}`, map[string]string{"name": required}},
		{"empty name", "PATCH", "/apps/{app}", `{"name":""}`, map[string]string{"name": required}},
		{"type", "PATCH", "/apps/{app}", `{"default_configurations":{"http-poller":{"polling_frequency":true}}}`,
			map[string]string{"default_configurations.http-poller.polling_frequency": "must be an integer"}},
		{"id", "PATCH", "/apps/{app}", `{"id":"x"}`, map[string]string{"id": unknown}},
	}
	for _, n := range []string{"0", "-1", "99", "86400001", "9223372036854775807", "9223372036854775808", "-9223372036854775809", "1e400", "-1e400", "1e18", "1e2000000000"} {
		field := "default_configurations.http-poller.polling_frequency"
		body := `"default_configurations":{"http-poller":{"polling_frequency":` + n + `}}}`
		all = append(all,
			badInput{"frequency " + n, "POST", "/apps", `{"name":"a",` + body, map[string]string{field: pollRange}},
			badInput{"frequency " + n, "PATCH", "/apps/{app}", `{` + body, map[string]string{field: pollRange}})
	}
	for _, n := range []string{"1.5", "1e-1", "1e-400", `"x"`, "[]", "{}"} {
		all = append(all, badInput{"frequency " + n, "POST", "/apps", `{"name":"a","default_configurations":{"http-poller":{"polling_frequency":` + n + `}}}`,
			map[string]string{"default_configurations.http-poller.polling_frequency": "must be an integer"}})
	}
	const keyForm = "must have 16 to 128 characters of A-Z, a-z, 0-9, _ and -"
	const overlapRange = "must be between 0 and 2592000"
	for _, kind := range []string{"subscriber_key", "publisher_key"} {
		path := "/apps/{app}/" + kind
		all = append(all,
			badInput{"short key", "PUT", path, `{"key":"short"}`, map[string]string{"key": keyForm}},
			badInput{"long key", "PUT", path, `{"key":"` + strings.Repeat("k", 129) + `"}`, map[string]string{"key": keyForm}},
			badInput{"odd key", "PUT", path, `{"key":"0123456789abcdé~"}`, map[string]string{"key": keyForm}},
			badInput{"empty key", "PUT", path, `{"key":""}`, map[string]string{"key": "must not be empty"}},
			badInput{"types", "PUT", path, `{"key":1,"overlap_seconds":"1"}`, map[string]string{"key": "must be a string", "overlap_seconds": "must be an integer"}},
			badInput{"overlap and key", "PUT", path, `{"key":"x","overlap_seconds":-1}`, map[string]string{"key": keyForm, "overlap_seconds": overlapRange}},
			badInput{"overlap", "PUT", path, `{"overlap_seconds":2592001}`, map[string]string{"overlap_seconds": overlapRange}},
			badInput{"huge overlap", "PUT", path, `{"overlap_seconds":1e400}`, map[string]string{"overlap_seconds": overlapRange}},
			badInput{"unknown", "PUT", path, `{"Key":"0123456789abcdef"}`, map[string]string{"Key": unknown}})
	}
	return append(all, badInput{"no signature key", "PUT", "/apps/{app}/signature_key", `{"key":"0123456789abcdef"}`,
		map[string]string{"key": "must be the base64 form of two UUIDs, 72 characters before encoding"}})
}

func topicInputs() []badInput {
	const topics = "/apps/{app}/topics"
	const fixed = "cannot be changed after the topic is created"
	const pathForm = "must be a separator followed by names, like .Identifier.Symbol"
	all := []badInput{
		{"nothing", "POST", topics, `{}`, map[string]string{"name": required, "publisher": required}},
		{"nulls", "POST", topics, `{"name":null,"publisher":null}`, map[string]string{"name": "must be a string", "publisher": "must be an object"}},
		{"empty publisher", "POST", topics, `{"name":"a","publisher":{}}`, map[string]string{"publisher.type": required, "publisher.config": required}},
		{"types", "POST", topics, `{"name":"a","publisher":{"type":1,"config":[],"payload":"item"}}`,
			map[string]string{"publisher.type": "must be a string", "publisher.config": "must be an object", "publisher.payload": "must be an object"}},
		{"other type", "POST", topics, `{"name":"a","publisher":{"type":"HTTP-POST","config":{}}}`, map[string]string{"publisher.type": "must be one of http-poller, http-post"}},
		{"other payload", "POST", topics, `{"name":"a","publisher":{"type":"http-post","config":{},"payload":{"type":"merge"}}}`, map[string]string{"publisher.payload.type": "must be one of item, snapshot"}},
		{"null config", "POST", topics, `{"name":"a","publisher":{"type":"http-post","config":null}}`, map[string]string{"publisher.config": "must be an object"}},
		{"no url", "POST", topics, `{"name":"a","publisher":{"type":"http-poller","config":{}}}`, map[string]string{"publisher.config.url": required}},
		{"null url", "POST", topics, `{"name":"a","publisher":{"type":"http-poller","config":{"url":null}}}`, map[string]string{"publisher.config.url": required}},
		{"number as url", "POST", topics, `{"name":"a","publisher":{"type":"http-poller","config":{"url":1}}}`, map[string]string{"publisher.config.url": "must be a string"}},
		{"settings of the other type", "POST", topics, `{"name":"a","publisher":{"type":"http-post","config":{"url":"http://a","polling_frequency":2000}}}`,
			map[string]string{"publisher.config.url": "is not a setting of http-post", "publisher.config.polling_frequency": "is not a setting of http-post"}},
		{"setting of the other type", "POST", topics, `{"name":"a","publisher":{"type":"http-poller","config":{"url":"http://a","force_publishing":false}}}`,
			map[string]string{"publisher.config.force_publishing": "is not a setting of http-poller"}},
		{"unknown", "POST", topics, `{"name":"a","app_id":"x","publisher":{"type":"http-post","config":{"URL":"x"},"payload":{"Type":"item"},"x":1}}`,
			map[string]string{"app_id": unknown, "publisher.config.URL": unknown, "publisher.payload.Type": unknown, "publisher.x": unknown}},
		{"item without path", "POST", topics, `{"name":"a","publisher":{"type":"http-post","config":{},"payload":{"type":"item"}}}`,
			map[string]string{"publisher.payload.item_id_path": "is required when payload.type is item"}},
		{"snapshot with path", "POST", topics, `{"name":"a","publisher":{"type":"http-post","config":{},"payload":{"item_id_path":".a"}}}`,
			map[string]string{"publisher.payload.item_id_path": "is only for payload.type item"}},
		{"everything wrong", "POST", topics, `{"name":"","publisher":{"type":"http-poller","config":{"polling_frequency":1},"payload":{"type":"item","item_id_path":"."}}}`,
			map[string]string{"name": required, "publisher.config.url": required, "publisher.config.polling_frequency": pollRange, "publisher.payload.item_id_path": pathForm}},

		{"null publisher", "PATCH", "/topics/{topic}", `{"publisher":null}`, map[string]string{"publisher": required}},
		{"null inside", "PATCH", "/topics/{topic}", `{"name":null,"publisher":{"type":null,"config":null}}`,
			map[string]string{"name": required, "publisher.type": fixed, "publisher.config": required}},
		{"other type", "PATCH", "/topics/{topic}", `{"publisher":{"type":"http-poller"}}`, map[string]string{"publisher.type": fixed}},
		{"other payload", "PATCH", "/topics/{topic}", `{"publisher":{"payload":{"type":"item","item_id_path":".a"}}}`, map[string]string{"publisher.payload.type": fixed}},
		{"other payload", "PATCH", "/apps/{app}/topics/{topic}", `{"publisher":{"payload":{"type":"item"}}}`, map[string]string{"publisher.payload.type": fixed}},
		{"settings of the other type", "PATCH", "/topics/{topic}", `{"publisher":{"config":{"polling_frequency":2000}}}`,
			map[string]string{"publisher.config.polling_frequency": "is not a setting of http-post"}},
		{"unknown", "PATCH", "/topics/{topic}", `{"Name":"x"}`, map[string]string{"Name": unknown}},
	}
	for _, bad := range []struct{ url, want string }{
		{"quotes.json", "must begin with http:// or https://"}, {"ftp://example.com/", "must begin with http:// or https://"},
		{"file:///etc/passwd", "must begin with http:// or https://"}, {"//example.com/", "must begin with http:// or https://"},
		{"http://", "must name a host"}, {"http:example.com", "must name a host"}, {"http://:80/", "must name a host"},
		{"http://a:0/", "must have a port from 1 to 65535, or none"}, {"http://a:65536/", "must have a port from 1 to 65535, or none"},
		{"http://me:hunter2@example.com/", "must not contain a user name or password"}, {"http://a/#b", "must not contain a fragment"},
		{"http://a b/", "is not a valid URL"}, {"http://[::1/", "is not a valid URL"}, {`http://a/\u0000`, "is not a valid URL"},
		{`http://a/\n`, "is not a valid URL"}, {"http://a/" + strings.Repeat("x", 8200), "is longer than 8192 bytes"},
	} {
		all = append(all, badInput{"url " + bad.url[:min(len(bad.url), 40)], "POST", topics,
			`{"name":"a","publisher":{"type":"http-poller","config":{"url":"` + bad.url + `"}}}`, map[string]string{"publisher.config.url": bad.want}})
	}
	for _, bad := range []struct{ path, want string }{
		{".", pathForm}, {"..", pathForm}, {".a.", pathForm}, {".a..b", pathForm}, {"x", pathForm},
		{`.a\u0000`, "contains a character that cannot be in a path"}, {"." + strings.Repeat("a", 1100), "is longer than 1024 bytes"},
		{"", "is required when payload.type is item"},
	} {
		all = append(all, badInput{"item path " + bad.path[:min(len(bad.path), 20)], "POST", topics,
			`{"name":"a","publisher":{"type":"http-post","config":{},"payload":{"type":"item","item_id_path":"` + bad.path + `"}}}`,
			map[string]string{"publisher.payload.item_id_path": bad.want}})
	}
	return all
}

func adminInputs() []badInput {
	const quota = "must be between 0 (unlimited) and 1125899906842624"
	return []badInput{
		{"other status", "PATCH", "/admin/users/{user}", `{"status":"gone"}`, map[string]string{"status": "must be one of active, disabled"}},
		{"null status", "PATCH", "/admin/users/{user}", `{"status":null}`, map[string]string{"status": "must be one of active, disabled"}},
		{"types", "PATCH", "/admin/users/{user}", `{"status":1,"quotas":{"connections":"1","messages_per_month":1.5}}`,
			map[string]string{"status": "must be a string", "quotas.connections": "must be an integer", "quotas.messages_per_month": "must be an integer"}},
		{"negative", "PATCH", "/admin/users/{user}", `{"quotas":{"connections":-1}}`, map[string]string{"quotas.connections": "must be at least 0"}},
		{"huge", "PATCH", "/admin/users/{user}", `{"quotas":{"connections":1e400,"requests_per_minute":9223372036854775808}}`,
			map[string]string{"quotas.connections": quota, "quotas.requests_per_minute": quota}},
		{"unknown", "PATCH", "/admin/users/{user}", `{"role":"admin","quotas":{"Connections":1}}`, map[string]string{"role": unknown, "quotas.Connections": unknown}},
	}
}

func TestABadRequestIsRefusedByTheNameOfItsFields(t *testing.T) {
	t.Parallel()
	s := serve(t)
	owner, admin := s.signUp(), s.admin()
	app := owner.newApp().text("id")
	topic := owner.newTopic(app).text("id")
	ids := strings.NewReplacer("{user}", owner.id, "{app}", app, "{topic}", topic)
	var all []badInput
	for _, some := range [][]badInput{userInputs(), appInputs(), topicInputs(), adminInputs()} {
		all = append(all, some...)
	}
	for _, in := range all {
		t.Run(in.method+in.path+" "+in.name, func(t *testing.T) {
			c := *owner
			if strings.HasPrefix(in.path, "/admin") {
				c = *admin
			}
			a := c.call(in.method, ids.Replace(in.path), in.body)
			if a.status != 400 {
				t.Errorf("status %d for %s: %s", a.status, in.body, a.body)
			}
			if diff := cmp.Diff(in.want, a.faults()); diff != "" {
				t.Errorf("%s: faults (-want +got):\n%s", in.body, diff)
			}
		})
	}
}

// bodyRoutes are all operations that read a body.
func bodyRoutes(t *testing.T) [][2]string {
	var all [][2]string
	docs, err := descriptions()
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range docs {
		for path, item := range doc.Paths.Map() {
			for method, op := range item.Operations() {
				if op.RequestBody != nil {
					all = append(all, [2]string{method, path})
				}
			}
		}
	}
	return all
}

func TestABodyThatIsNoJSONObjectIsRefusedEverywhere(t *testing.T) {
	t.Parallel()
	s := serve(t)
	admin := s.admin()
	app := admin.newApp().text("id")
	topic := admin.newTopic(app).text("id")
	ids := strings.NewReplacer("{user_id}", admin.id, "{app_id}", app, "{topic_id}", topic)
	bodies := map[string]string{
		"{": "The body is not valid JSON", `{"a":1,"a":2}`: "duplicate key", `{} {}`: "after the document", `{}x`: "after the document",
		"\xff": "not valid JSON", "{\"name\":\"\xff\"}": "invalid UTF-8", "{\"name\":\"a\x00\"}": "control character",
		`{'name':1}`: "not valid JSON", `{"name":NaN}`: "not valid JSON", `{"name":01}`: "not valid JSON", `{"a":1,}`: "not valid JSON",
		"\ufeff{}": "not valid JSON", "// no\n{}": "not valid JSON", `{"x":"\ud800"}`: "", strings.Repeat("[", 100): "nesting deeper",
		strings.Repeat(`{"a":`, 70) + "1" + strings.Repeat("}", 70): "nesting deeper", "null": "must be an object",
		"[]": "must be an object", `"{}"`: "must be an object", "1e400": "must be an object", "true": "must be an object",
		"   ": "The body is not valid JSON",
	}
	for _, route := range bodyRoutes(t) {
		path := ids.Replace(route[1])
		for body, want := range bodies {
			if a := admin.call(route[0], path, body).want(400); !strings.Contains(string(a.body), want) {
				t.Errorf("%s %s %q: %s", route[0], path, body, a.body)
			}
		}
		if !strings.HasSuffix(path, "_key") {
			admin.call(route[0], path, "").want(400)
		}
		for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/xml", "/", ";"} {
			c := *admin
			c.header = map[string][]string{"Content-Type": {kind}}
			c.call(route[0], path, `{"name":"x"}`).want(415)
		}
		c := *admin
		c.header = map[string][]string{"Content-Encoding": {"gzip"}}
		c.call(route[0], path, `{}`).want(415)
		admin.call(route[0], path, `{"x":"`+strings.Repeat("x", maxBody)+`"}`).want(413)
	}
}

func TestAJSONContentTypeMayHaveParametersOrBeLeftOut(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.signUp()
	for _, kind := range []string{"", "application/json", "application/json; charset=utf-8", "Application/JSON", "application/merge-patch+json"} {
		c.header = map[string][]string{"Content-Type": {kind}}
		c.call("PATCH", "/users/"+c.id, `{"first_name":"Ada"}`).want(200)
	}
}

func TestAWholeNumberMayBeSpelledInAnyWay(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.signUp()
	app := c.newApp().text("id")
	for spelled, want := range map[string]float64{"2000": 2000, "2000.0": 2000, "2e3": 2000, "1E+3": 1000, "20000e-1": 2000, "86400000": 86400000, "100": 100} {
		a := c.call("PATCH", "/apps/"+app, `{"default_configurations":{"http-poller":{"polling_frequency":`+spelled+`}}}`).want(200)
		if got := a.at("default_configurations.http-poller.polling_frequency"); got != want {
			t.Errorf("%s became %v", spelled, got)
		}
	}
}

func TestNamesMayBeOfEveryScript(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.signUp()
	for _, name := range []string{"Zürich", "東京", "مرحبا", "🦫 dam", "a/b?c#d%20", `"quoted" <b>`, strings.Repeat("界", 200)} {
		a := c.call("POST", "/apps", map[string]any{"name": name}).want(201)
		if a.text("name") != name {
			t.Errorf("%q became %q", name, a.text("name"))
		}
		c.call("DELETE", "/apps/"+a.text("id"), nil).want(204)
	}
	body := userBody("ünïcode@exämple.com", map[string]any{"first_name": "Zoë", "last_name": "Ó Súilleabháin", "language": "ga_IE"})
	s.stranger().call("POST", "/users", body).want(201)
}

func TestAnIdentifierThatCannotBeLeadsNowhere(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.signUp()
	ids := []string{"x", "%00", "..%2f..", "%2e%2e", "'%20OR%201=1--", "null", "undefined", "%F0%9F%A6%AB", "%ff", strings.Repeat("a", 5000),
		strings.ToUpper(freshet.NewID()), "{" + freshet.NewID() + "}", freshet.NewID() + "%0a", freshet.NewID()}
	for _, id := range ids {
		for _, path := range []string{"/apps/" + id, "/topics/" + id, "/users/" + id, "/apps/" + id + "/topics", "/users/" + id + "/apps",
			"/topics/" + id + "/document", "/apps/" + id + "/topics/" + id} {
			r := httptest.NewRequestWithContext(t.Context(), "GET", "/api/v1"+path, nil)
			if a := c.send(r); a.status != 404 {
				t.Errorf("%s: status %d", path, a.status)
			}
		}
	}
}
