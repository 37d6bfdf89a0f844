package kong

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/freshet-io/freshet"
)

var (
	anyID   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)
	anyTime = regexp.MustCompile(`"created_at":\d{13}`)
	anyKey  = regexp.MustCompile(`"key":"[A-Za-z0-9]{48}"`)
)

// settled replaces what differs from run to run.
func settled(body string) string {
	body = anyID.ReplaceAllString(strings.TrimSuffix(body, "\n"), "ID")
	return anyKey.ReplaceAllString(anyTime.ReplaceAllString(body, `"created_at":MS`), `"key":"KEY"`)
}

const neither = `"At least a 'request_host' or a 'request_path' must be specified"`

const idle = `"connections_accepted":0,"connections_handled":0,"connections_active":0,"connections_reading":0,` +
	`"connections_writing":0,"connections_waiting":0,"total_requests":0`

// dialect is a session with the administration, one call after the other. A body that begins with { is sent as JSON.
var dialect = []struct {
	call, body string
	status     int
	want       string
}{
	{"POST /apis/", "", 400, `{"request_host":` + neither + `,"request_path":` + neither + `,"upstream_url":"upstream_url is required"}`},
	{"POST /apis/", "{}", 400, `{"request_host":` + neither + `,"request_path":` + neither + `,"upstream_url":"upstream_url is required"}`},
	{"POST /apis", "request_path=/quote", 400, `{"upstream_url":"upstream_url is required"}`},
	{"POST /apis/", `{"hello":"world"`, 400, `{"message":"Cannot parse JSON body"}`},
	{"POST /apis/", `{"name":"a"} {}`, 400, `{"message":"Cannot parse JSON body"}`},
	{"POST /apis/", "name=quote&upstream_url=http://up.example/base&request_path=/quote", 201,
		`{"id":"ID","name":"quote","request_path":"/quote","strip_request_path":false,"preserve_host":false,"upstream_url":"http://up.example/base","created_at":MS}`},
	{"POST /apis/", `{"name":"quote","upstream_url":"http://up.example","request_path":"/quote"}`, 409,
		`{"name":"name already exists with value 'quote'","request_path":"request_path already exists with value '/quote'"}`},
	{"POST /apis/", "request_path=deep//nested&upstream_url=http://x.example", 400, `{"request_path":"request_path is invalid: /deep//nested"}`},
	{"POST /apis/", "request_path=/a/../b&upstream_url=http://x.example", 400, `{"request_path":"request_path is invalid: /a/../b"}`},
	{"POST /apis/", "request_path=/[a-z]{3}&upstream_url=http://x.example", 400,
		`{"request_path":"request_path must only contain alphanumeric and '., -, _, ~, /' characters"}`},
	{"POST /apis/", "request_path=x&upstream_url=asdasd", 400, `{"upstream_url":"upstream_url is not a url"}`},
	{"POST /apis/", "request_path=x&upstream_url=wot://mock.example/", 400, `{"upstream_url":"Supported protocols are HTTP and HTTPS"}`},
	{"POST /apis/", "request_path=x&upstream_url=http://u:p@mock.example/", 400, `{"upstream_url":"upstream_url must not contain credentials, a query or a fragment"}`},
	{"POST /apis/", "request_path=x&upstream_url=http://x.example:99999", 400, `{"upstream_url":"upstream_url is not a url"}`},
	{"POST /apis/", "request_host=*.a.*&upstream_url=http://x.example", 400, `{"request_host":"Only one wildcard is allowed: *.a.*"}`},
	{"POST /apis/", "request_host=*a.example&upstream_url=http://x.example", 400, `{"request_host":"Invalid wildcard placement: *a.example"}`},
	{"POST /apis/", "name=a/b&request_path=x&upstream_url=http://x.example", 400, `{"name":"name must only contain alphanumeric and '., -, _, ~' characters"}`},
	{"POST /apis/", "request_path=x&upstream_url=http://x.example&colour=red&preserve_host=maybe", 400,
		`{"colour":"colour is an unknown field","preserve_host":"preserve_host is not a boolean"}`},
	{"POST /apis/", `{"request_path":true,"upstream_url":"http://x.example"}`, 400,
		`{"request_host":` + neither + `,"request_path":"request_path is not a string"}`},
	{"POST /apis/", "request_path=//deep/nested/status//&strip_request_path=TRUE&upstream_url=HTTP://mock.example", 201,
		`{"id":"ID","name":"deep-nested-status","request_path":"/deep/nested/status","strip_request_path":true,"preserve_host":false,"upstream_url":"HTTP://mock.example","created_at":MS}`},
	{"POST /apis/", `{"request_host":"Mock.Example","upstream_url":"https://mock.example","preserve_host":true}`, 201,
		`{"id":"ID","name":"mock.example","request_host":"mock.example","strip_request_path":false,"preserve_host":true,"upstream_url":"https://mock.example","created_at":MS}`},

	// Reserved for the platform.
	{"POST /apis/", "request_path=/api&upstream_url=http://x.example&name=a", 409, `{"request_path":"request_path already exists with value '/api'"}`},
	{"POST /apis/", "request_path=/publish/&upstream_url=http://x.example&name=a", 409, `{"request_path":"request_path already exists with value '/publish'"}`},
	{"POST /apis/", "request_path=/api/v1&upstream_url=http://x.example", 409, `{"request_path":"request_path already exists with value '/api/v1'"}`},
	{"POST /apis/", "request_path=/api/latest&upstream_url=http://x.example", 409, `{"request_path":"request_path already exists with value '/api/latest'"}`},
	{"POST /apis/", "request_path=/publish/v1/x&upstream_url=http://x.example", 409, `{"request_path":"request_path already exists with value '/publish/v1/x'"}`},
	{"POST /apis/", "request_path=/console&upstream_url=http://x.example", 409, `{"request_path":"request_path already exists with value '/console'"}`},
	{"POST /apis/", "name=api&request_path=/mine&upstream_url=http://x.example", 409, `{"name":"name already exists with value 'api'"}`},
	{"POST /apis/", "request_path=/api/quote&upstream_url=http://x.example", 201,
		`{"id":"ID","name":"api-quote","request_path":"/api/quote","strip_request_path":false,"preserve_host":false,"upstream_url":"http://x.example","created_at":MS}`},
	{"GET /apis/api", "", 200, `{"id":"ID","name":"api","request_path":"/api","strip_request_path":false,"preserve_host":false,"upstream_url":"","built_in":true,"created_at":0}`},
	{"DELETE /apis/publish", "", 405, `{"message":"Method not allowed: this API is built in; only its plugins can be changed"}`},
	{"PATCH /apis/api", "name=x", 405, `{"message":"Method not allowed: this API is built in; only its plugins can be changed"}`},

	// Reading and changing.
	{"GET /apis/nothing", "", 404, `{"message":"Not found"}`},
	{"GET /apis/quote/", "", 200,
		`{"id":"ID","name":"quote","request_path":"/quote","strip_request_path":false,"preserve_host":false,"upstream_url":"http://up.example/base","created_at":MS}`},
	{"PATCH /apis/quote", "strip_request_path=true", 200,
		`{"id":"ID","name":"quote","request_path":"/quote","strip_request_path":true,"preserve_host":false,"upstream_url":"http://up.example/base","created_at":MS}`},
	{"PATCH /apis/quote", "upstream_url=", 400, `{"upstream_url":"upstream_url is not a url"}`},
	{"PATCH /apis/quote", `{"upstream_url":true}`, 400, `{"upstream_url":"upstream_url is not a url"}`},
	{"PATCH /apis/quote", `{"request_path":null}`, 400, `{"request_path":` + neither + `}`},
	{"PATCH /apis/quote", "id=00000000-0000-7000-8000-000000000009", 400, `{"id":"id cannot be updated"}`},
	{"PATCH /apis/hello", "name=x", 404, `{"message":"Not found"}`},
	{"PUT /apis/hello", "request_path=/hello&upstream_url=http://x.example", 404, `{"message":"Not found"}`},
	{"PUT /apis/quote", "request_path=/quote", 400, `{"upstream_url":"upstream_url is required"}`},
	{"PUT /apis/api", "request_path=/mine&upstream_url=http://x.example", 405, `{"message":"Method not allowed: this API is built in; only its plugins can be changed"}`},
	{"PATCH /apis/quote", "name=mock.example", 409, `{"name":"name already exists with value 'mock.example'"}`},
	{"PUT /apis/", "name=put&request_path=put&upstream_url=http://x.example", 201,
		`{"id":"ID","name":"put","request_path":"/put","strip_request_path":false,"preserve_host":false,"upstream_url":"http://x.example","created_at":MS}`},
	{"DELETE /apis/put", "", 204, ""},
	{"DELETE /apis/put", "", 404, `{"message":"Not found"}`},
	{"GET /apis/?name=quote", "", 200, `{"data":[{"id":"ID","name":"quote","request_path":"/quote","strip_request_path":true,"preserve_host":false,"upstream_url":"http://up.example/base","created_at":MS}],"total":1}`},
	{"GET /apis/?name=none", "", 200, `{"data":[],"total":0}`},
	{"GET /apis/?colour=red", "", 400, `{"colour":"colour is an unknown field"}`},
	{"GET /apis/?size=0", "", 400, `{"size":"size must be a number from 1 to 1000"}`},
	{"GET /apis/?offset=x", "", 400, `{"offset":"offset is not one of this list"}`},

	// Plugins.
	{"POST /apis/quote/plugins/", "", 400, `{"name":"name is required"}`},
	{"POST /apis/quote/plugins", "name=world", 400, `{"config":"Plugin \"world\" not found"}`},
	{"POST /apis/none/plugins", "name=cors", 404, `{"message":"Not found"}`},
	{"POST /apis/quote/plugins", "name=key-auth&config.key_names=apikey, x-key", 201,
		`{"id":"ID","api_id":"ID","name":"key-auth","config":{"hide_credentials":false,"key_names":["apikey","x-key"]},"enabled":true,"created_at":MS}`},
	{"POST /apis/quote/plugins", `{"name":"key-auth"}`, 409,
		`{"message":"Plugin configuration already exists","name":"name already exists with value 'key-auth'"}`},
	{"POST /apis/quote/plugins", "name=rate-limiting", 400, `{"config":"You need to set at least one limit: second, minute, hour, day, month, year"}`},
	{"POST /apis/quote/plugins", "name=rate-limiting&config.second=hello", 400, `{"config.second":"second is not a number"}`},
	{"POST /apis/quote/plugins", "name=rate-limiting&config.second=20&config.hour=10", 400, `{"config":"The limit for hour cannot be lower than the limit for second"}`},
	{"POST /apis/quote/plugins", "name=rate-limiting&config.minute=0", 400, `{"config":"Value for minute must be greater than zero"}`},
	{"POST /apis/quote/plugins", "name=rate-limiting&config.moment=1", 400, `{"config.moment":"moment is an unknown field"}`},
	{"POST /apis/quote/plugins", `{"name":"rate-limiting","config":{"minute":20,"hour":"500"}}`, 201,
		`{"id":"ID","api_id":"ID","name":"rate-limiting","config":{"hour":500,"minute":20},"enabled":true,"created_at":MS}`},
	{"POST /apis/quote/plugins", "name=cors&config.methods=GET,FETCH", 400,
		`{"config.methods":"\"FETCH\" is not allowed. Allowed values are: \"HEAD\", \"GET\", \"POST\", \"PUT\", \"PATCH\", \"DELETE\""}`},
	{"POST /apis/quote/plugins", "name=cors&config.origin=a\r\nb&config.headers=x,a\nb&config.exposed_headers=\x01", 400,
		`{"config.exposed_headers":"exposed_headers has an invalid value","config.headers":"headers has an invalid value","config.origin":"origin has an invalid value"}`},
	{"POST /apis/quote/plugins", "name=cors&config.methods[1]=GET&config.methods[2]=POST&config.max_age=23&enabled=false", 201,
		`{"id":"ID","api_id":"ID","name":"cors","config":{"credentials":false,"max_age":23,"methods":["GET","POST"],"preflight_continue":false},"enabled":false,"created_at":MS}`},
	{"POST /apis/quote/plugins", "name=ip-restriction&config.whitelist=10.0.0.300", 400, `{"config.whitelist":"invalid ip or range: \"10.0.0.300\""}`},
	{"POST /apis/quote/plugins", "name=ip-restriction&config.whitelist=10.0.0.1&config.blacklist=10.0.0.2", 400, `{"config":"You cannot set both a whitelist and a blacklist"}`},
	{"POST /apis/quote/plugins", "name=request-size-limiting", 201,
		`{"id":"ID","api_id":"ID","name":"request-size-limiting","config":{"allowed_payload_size":128},"enabled":true,"created_at":MS}`},
	{"POST /plugins", "name=cors&api_id=00000000-0000-7000-8000-000000000009", 404, `{"api_id":"api_id ID does not exist"}`},
	{"POST /plugins", "name=cors&api_id=x", 400, `{"api_id":"x is an invalid uuid"}`},
	{"POST /plugins", "name=cors", 400, `{"api_id":"api_id is required"}`},
	{"POST /apis/api/plugins", "name=cors&consumer_id=00000000-0000-7000-8000-000000000009", 400, `{"message":"No consumer can be configured for that plugin"}`},
	{"POST /apis/api/plugins", "name=rate-limiting&config.minute=1&consumer_id=00000000-0000-7000-8000-000000000009", 404, `{"consumer_id":"consumer_id ID does not exist"}`},
	{"GET /plugins/?name=cors", "", 200, `{"data":[{"id":"ID","api_id":"ID","name":"cors","config":{"credentials":false,"max_age":23,"methods":["GET","POST"],"preflight_continue":false},"enabled":false,"created_at":MS}],"total":1}`},
	{"GET /plugins/00000000-0000-7000-8000-000000000009", "", 404, `{"message":"Not found"}`},
	{"PATCH /apis/quote/plugins/00000000-0000-7000-8000-000000000009", "enabled=true", 404, `{"message":"Not found"}`},
	{"PATCH /apis/quote/plugins/b6cca0aa-4537-11e5-af97-23a06d98af51", "{}", 404, `{"message":"Not found"}`},
	{"DELETE /apis/quote/plugins/b6cca0aa-4537-11e5-af97-23a06d98af51", "", 404, `{"message":"Not found"}`},
	{"DELETE /apis/quote/plugins/hello", "", 404, `{"message":"Not found"}`},
	{"GET /apis/quote/plugins/request-size-limiting", "", 200,
		`{"id":"ID","api_id":"ID","name":"request-size-limiting","config":{"allowed_payload_size":128},"enabled":true,"created_at":MS}`},
	{"PATCH /apis/quote/plugins/request-size-limiting", "config.allowed_payload_size=2", 200,
		`{"id":"ID","api_id":"ID","name":"request-size-limiting","config":{"allowed_payload_size":2},"enabled":true,"created_at":MS}`},
	{"GET /plugins/request-size-limiting", "", 404, `{"message":"Not found"}`},
	{"PUT /apis/quote/plugins/", "", 400, `{"name":"name is required"}`},
	{"GET /plugins/enabled", "", 200, `{"enabled_plugins":["cors","key-auth","ip-restriction","request-size-limiting","rate-limiting"]}`},
	{"GET /plugins/schema/key-auth", "", 200, `{"fields":{"hide_credentials":{"type":"boolean","default":false},"key_names":{"type":"array","required":true,"default":["apikey"]}},"no_consumer":true}`},
	{"GET /plugins/schema/foo", "", 404, `{"message":"No plugin named 'foo'"}`},

	// Consumers and keys.
	{"POST /consumers/", "", 400, `{"custom_id":"At least a 'custom_id' or a 'username' must be specified","username":"At least a 'custom_id' or a 'username' must be specified"}`},
	{"POST /consumers/", "username=consumer POST tests", 201, `{"id":"ID","username":"consumer POST tests","created_at":MS}`},
	{"POST /consumers", `{"username":"consumer POST tests"}`, 409, `{"username":"username already exists with value 'consumer POST tests'"}`},
	{"POST /consumers", `{"username":"bob","custom_id":"b-1"}`, 201, `{"id":"ID","username":"bob","custom_id":"b-1","created_at":MS}`},
	{"POST /consumers", "username=a\x00b", 400,
		`{"custom_id":"At least a 'custom_id' or a 'username' must be specified","username":"username is not a string"}`},
	{"POST /consumers", "username=a\r\nb", 400, `{"username":"username has an invalid value"}`},
	{"GET /consumers/consumer%20POST%20tests/", "", 200, `{"id":"ID","username":"consumer POST tests","created_at":MS}`},
	{"PATCH /consumers/consumer%20POST%20tests", "username= ", 400, `{"username":"At least a 'custom_id' or a 'username' must be specified"}`},
	{"PATCH /consumers/consumer%20POST%20tests", "username=", 400, `{"username":"username is not a string"}`},
	{"PATCH /consumers/bob", "custom_id=b-2", 200, `{"id":"ID","username":"bob","custom_id":"b-2","created_at":MS}`},
	{"PUT /consumers", "username=put", 201, `{"id":"ID","username":"put","created_at":MS}`},
	{"GET /consumers?custom_id=b-2", "", 200, `{"data":[{"id":"ID","username":"bob","custom_id":"b-2","created_at":MS}],"total":1}`},
	{"POST /consumers/nobody/key-auth", "key=1", 404, `{"message":"Not found"}`},
	{"POST /consumers/bob/key-auth", "key=1234", 201, `{"id":"ID","consumer_id":"ID","key":"1234","created_at":MS}`},
	{"POST /consumers/put/key-auth", "key=1234", 409, `{"key":"key already exists with value '1234'"}`},
	{"POST /consumers/bob/keyauth/", "", 201, `{"id":"ID","consumer_id":"ID","key":"KEY","created_at":MS}`},
	{"PUT /consumers/bob/key-auth/", "key=5678", 201, `{"id":"ID","consumer_id":"ID","key":"5678","created_at":MS}`},
	{"GET /consumers/bob/key-auth/?key=5678", "", 200, `{"data":[{"id":"ID","consumer_id":"ID","key":"5678","created_at":MS}],"total":1}`},
	{"DELETE /consumers/bob/key-auth/blah", "", 400, `{"id":"blah is an invalid uuid"}`},
	{"DELETE /consumers/bob/key-auth/00000000-0000-7000-8000-000000000009", "", 404, `{"message":"Not found"}`},
	{"DELETE /consumers/bob/key-auth/00000000-0000-0000-0000-000000000000", "", 404, `{"message":"Not found"}`},
	{"PUT /consumers/bob/key-auth/", "", 201, `{"id":"ID","consumer_id":"ID","key":"KEY","created_at":MS}`},
	{"PUT /consumers", "", 400, `{"custom_id":"At least a 'custom_id' or a 'username' must be specified","username":"At least a 'custom_id' or a 'username' must be specified"}`},
	{"DELETE /consumers/put", "", 204, ""},
	{"DELETE /consumers/hello", "", 404, `{"message":"Not found"}`},
	{"PATCH /consumers/hello", "username=x", 404, `{"message":"Not found"}`},

	// Around it.
	{"GET /status", "", 200, `{` + idle + `,"server":{` + idle + `},"database":{"apis":4,"consumers":2,"plugins":4,"keyauth_credentials":4}}`},
	{"POST /status", "", 405, `{"message":"Method not allowed"}`},
	{"POST /", "", 405, `{"message":"Method not allowed"}`},
	{"DELETE /apis", "", 405, `{"message":"Method not allowed"}`},
	{"GET /nothing", "", 404, `{"message":"Not found"}`},
	{"GET //apis", "", 404, `{"message":"Not found"}`},
}

func TestTheAdministrationSpeaksItsDialect(t *testing.T) {
	w := newWorld(t)
	for _, c := range dialect {
		method, path, _ := strings.Cut(c.call, " ")
		contentType, body := "application/x-www-form-urlencoded", c.body
		if strings.HasPrefix(body, "{") {
			contentType = "application/json; charset=utf-8"
		} else {
			body = encodeForm(body)
		}
		a := w.administerBody(method, path, contentType, body)
		if a.status != c.status || settled(a.body) != c.want {
			t.Errorf("%s %q\n got %d %s\nwant %d %s", c.call, c.body, a.status, settled(a.body), c.status, c.want)
		}
		if got := a.header.Get("Content-Type"); c.want != "" && got != "application/json; charset=utf-8" {
			t.Errorf("%s has the content type %q", c.call, got)
		}
	}
	if logs := w.logs.String(); strings.Contains(logs, "5678") {
		t.Errorf("a key is in the log:\n%s", logs)
	}
}

// encodeForm lets the table write values as they are.
func encodeForm(text string) string {
	if text == "" {
		return ""
	}
	var parts []string
	for field := range strings.SplitSeq(text, "&") {
		name, value, _ := strings.Cut(field, "=")
		parts = append(parts, url.QueryEscape(name)+"="+url.QueryEscape(value))
	}
	return strings.Join(parts, "&")
}

func TestPutReplacesAndPatchMerges(t *testing.T) {
	w := newWorld(t)
	w.register("/quote", "http://x.example", "name", "quote", "preserve_host", "true")
	plugin := w.must("POST", "/apis/quote/plugins", "name", "key-auth", "config.key_names", "a", "config.hide_credentials", "true")
	path := "/apis/quote/plugins/" + plugin
	w.must("POST", "/consumers", "username", "bob", "custom_id", "1")
	key := w.must("POST", "/consumers/bob/key-auth", "key", "one")

	a := w.administer("PATCH", path, "config.key_names", "b")
	if !strings.Contains(a.body, `"config":{"hide_credentials":true,"key_names":["b"]}`) {
		t.Errorf("PATCH made it %s", a.body)
	}
	a = w.administer("PUT", "/apis/quote/plugins", "id", plugin, "name", "key-auth", "config.key_names", "c")
	if a.status != http.StatusOK || !strings.Contains(a.body, `"config":{"hide_credentials":false,"key_names":["c"]}`) {
		t.Errorf("PUT made it %d %s", a.status, a.body)
	}
	a = w.administer("PATCH", path, "name", "cors")
	if a.status != http.StatusBadRequest {
		t.Errorf("a plugin became another: %d %s", a.status, a.body)
	}
	var api struct{ ID string }
	if err := json.Unmarshal([]byte(w.administer("GET", "/apis/quote").body), &api); err != nil {
		t.Fatal(err)
	}
	a = w.administer("PUT", "/apis", "id", api.ID, "request_path", "/other", "upstream_url", "http://y.example")
	if a.status != http.StatusOK || !strings.Contains(a.body, `"name":"other","request_path":"/other","strip_request_path":false,"preserve_host":false`) {
		t.Errorf("PUT made it %d %s", a.status, a.body)
	}
	for _, c := range []struct{ path, fields, want string }{
		{"/apis/other", "name=other&request_path=/third&upstream_url=http://z.example", `"name":"other","request_path":"/third"`},
		{"/plugins/" + plugin, "config.key_names=d&enabled=false", `"config":{"hide_credentials":false,"key_names":["d"]},"enabled":false`},
		{"/apis/other/plugins/key-auth", "", `"config":{"hide_credentials":false,"key_names":["apikey"]},"enabled":true`},
		{"/consumers/bob", "username=bob&custom_id=2", `"username":"bob","custom_id":"2"`},
		{"/consumers/bob", "username=bob", `"username":"bob","created_at"`},
		{"/consumers/bob/key-auth/" + key, "key=two", `"key":"two"`},
	} {
		a := w.administerBody("PUT", c.path, "application/x-www-form-urlencoded", c.fields)
		if a.status != http.StatusOK || !strings.Contains(a.body, c.want) {
			t.Errorf("PUT %s %s made it %d %s", c.path, c.fields, a.status, a.body)
		}
	}
	if a := w.administer("GET", path); a.status != http.StatusNotFound { // by its former name
		t.Errorf("the former name still works: %s", a.body)
	}
	if a := w.administer("GET", "/plugins/"+plugin); a.status != http.StatusOK {
		t.Errorf("the plugin is gone: %s", a.body)
	}
	w.must("DELETE", "/apis/other")
	if a := w.administer("GET", "/plugins/"+plugin); a.status != http.StatusNotFound {
		t.Errorf("the plugin outlived its API: %s", a.body)
	}
}

func TestListsLeadFromPageToPage(t *testing.T) {
	w := newWorld(t)
	for i := range 10 {
		w.register(fmt.Sprint("/api-", i), "http://x.example")
	}
	next, names := "/apis/?size=3", []string{}
	for pages := 0; next != "" && pages < 10; pages++ {
		var page struct {
			Data  []struct{ Name string }
			Total int
			Next  string
		}
		a := w.administer("GET", next)
		if err := json.Unmarshal([]byte(a.body), &page); err != nil || page.Total != 10 {
			t.Fatalf("%s answers %s", next, a.body)
		}
		for _, d := range page.Data {
			names = append(names, d.Name)
		}
		next = strings.TrimPrefix(page.Next, w.admin.URL)
		if page.Next != "" { // some clients send the whole address back as the offset
			again := w.administer("GET", "/apis/?size=3&offset="+url.QueryEscape(page.Next))
			if direct := w.administer("GET", next); again.status != http.StatusOK || stripNext(again.body) != stripNext(direct.body) {
				t.Errorf("the address as offset gives %s, not %s", again.body, direct.body)
			}
		}
	}
	if fmt.Sprint(names) != "[api-0 api-1 api-2 api-3 api-4 api-5 api-6 api-7 api-8 api-9]" {
		t.Errorf("the pages hold %v", names)
	}
}

func stripNext(body string) string {
	return regexp.MustCompile(`,"next":"[^"]*"`).ReplaceAllString(body, "")
}

func TestMultipartFormsAreRead(t *testing.T) {
	w := newWorld(t)
	const body = "--b\r\nContent-Disposition: form-data; name=\"username\"\r\n\r\nbob\r\n--b--\r\n"
	if a := w.administerBody("POST", "/consumers", "multipart/form-data; boundary=b", body); a.status != http.StatusCreated {
		t.Errorf("got %d %s", a.status, a.body)
	}
	if a := w.administerBody("POST", "/consumers", "text/plain", "username=eve"); a.status != http.StatusUnsupportedMediaType {
		t.Errorf("got %d %s", a.status, a.body)
	}
	if a := w.administerBody("POST", "/consumers", "application/json", `{"username":"`+strings.Repeat("x", maxBody)+`"}`); a.status != http.StatusRequestEntityTooLarge {
		t.Errorf("got %d %s", a.status, a.body)
	}
}

func FuzzAdministration(f *testing.F) {
	for _, c := range dialect {
		f.Add(c.call, c.body, strings.HasPrefix(c.body, "{"))
	}
	world := newWorld(f) // one for all, so that inputs meet what others left
	w := world.handler
	f.Fuzz(func(t *testing.T, call, body string, asJSON bool) {
		method, path, _ := strings.Cut(call, " ")
		target, err := url.ParseRequestURI(path)
		if err != nil || strings.ContainsAny(method, " \r\n\t") || method == "" {
			return
		}
		contentType := "application/x-www-form-urlencoded"
		if asJSON {
			contentType = "application/json"
		}
		r := (&http.Request{Method: method, URL: target, Host: "x", Header: http.Header{"Content-Type": {contentType}},
			Body: io.NopCloser(strings.NewReader(body))}).WithContext(t.Context())
		rec := httptest.NewRecorder()
		w.ServeHTTP(rec, r)
		if rec.Code >= 500 {
			t.Errorf("%s %q answers %d %s", call, body, rec.Code, rec.Body.String())
		}
		if rec.Body.Len() > 0 && !json.Valid(rec.Body.Bytes()) {
			t.Errorf("%s %q answers no JSON: %s", call, body, rec.Body.String())
		}
	})
}

func TestIdentifiersOfBuiltInAPIsAreIdentifiers(t *testing.T) {
	for _, id := range []string{freshet.ManageAPIID, freshet.PublishAPIID} {
		if !freshet.IsID(id) {
			t.Errorf("%s is none", id)
		}
	}
}
