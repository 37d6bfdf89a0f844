package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// fakeGateway answers like the administration, in shapes only: it stands in until a server of this program does it.
func fakeGateway(t *testing.T) (url string, asked *[]string) {
	t.Helper()
	asked = &[]string{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body json.RawMessage
		_ = json.NewDecoder(r.Body).Decode(&body) // none is fine
		*asked = append(*asked, r.Method+" "+r.URL.RequestURI()+" "+string(body))
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method == http.MethodDelete:
			w.WriteHeader(http.StatusNoContent)
		case strings.Contains(string(body), "taken"):
			w.WriteHeader(http.StatusConflict)
			_, _ = w.Write([]byte(`{"name":"name already exists with value 'taken'"}`))
		case strings.HasSuffix(r.URL.Path, "/plugins") && r.Method == http.MethodGet:
			_, _ = w.Write([]byte(`{"data":[{"id":"p1","api_id":"a1","name":"key-auth","config":{"key_names":["apikey"]},"enabled":true}],"total":1}`))
		case r.URL.RawQuery == "offset=2":
			_, _ = w.Write([]byte(`{"data":[{"id":"a2","name":"second"}],"total":2}`))
		case r.Method == http.MethodGet && r.URL.Path == "/apis":
			_, _ = w.Write([]byte(`{"data":[{"id":"a1","name":"quotes","request_path":"/quotes","upstream_url":"http://up","created_at":1700000000000}],"total":2,"next":"http://inside:8001/apis?offset=2"}`))
		case r.Method == http.MethodGet && r.URL.Path == "/consumers":
			_, _ = w.Write([]byte(`{"data":{},"total":0}`))
		default:
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write([]byte(`{"id":"x1","name":"quotes","username":"ada","key":"k-1","enabled":true}`))
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL, asked
}

func TestGatewayCommandsSpeakTheDialect(t *testing.T) {
	url, asked := fakeGateway(t)
	for _, c := range []struct{ args, asks, shows string }{
		{"apis create quotes --upstream http://up --path /quotes --strip-path", `POST /apis {"name":"quotes","request_path":"/quotes","strip_request_path":true,"upstream_url":"http://up"}`, "quotes"},
		{"apis list", "GET /apis?offset=2 ", "second"},
		{"apis update quotes --preserve-host", `PATCH /apis/quotes {"preserve_host":true}`, "quotes"},
		{"apis delete quotes --yes", "DELETE /apis/quotes ", ""},
		{"plugins add quotes rate-limiting minute=100 config.second=5", `POST /apis/quotes/plugins {"config":{"minute":100,"second":5},"name":"rate-limiting"}`, "x1"},
		{"plugins list quotes", "GET /apis/quotes/plugins ", `key_names=["apikey"]`},
		{"plugins update quotes key-auth --enabled=false hide_credentials=true", `PATCH /apis/quotes/plugins/p1 {"config":{"hide_credentials":true},"enabled":false}`, "x1"},
		{"plugins remove quotes key-auth", "DELETE /apis/quotes/plugins/p1 ", ""},
		{"consumers create ada --custom-id 4711", `POST /consumers {"custom_id":"4711","username":"ada"}`, "ada"},
		{"consumers list -o json", "GET /consumers ", "[]\n"},
		{"consumers delete a/b --yes", "DELETE /consumers/a%2Fb ", ""},
		{"keys add ada --new-key k-1", `POST /consumers/ada/key-auth {"key":"k-1"}`, "k-1\n"},
		{"keys remove ada c1", "DELETE /consumers/ada/key-auth/c1 ", ""},
	} {
		*asked = nil
		got := freshetIn(t, []string{"FRESHET_CLI_ADMIN=" + url}, append([]string{"gateway"}, strings.Fields(c.args)...)...)
		if got.code != 0 || !strings.Contains(got.stdout, c.shows) {
			t.Errorf("freshet gateway %s: %+v", c.args, got)
		}
		if len(*asked) == 0 || (*asked)[len(*asked)-1] != c.asks {
			t.Errorf("freshet gateway %s asked %q, want %q", c.args, *asked, c.asks)
		}
	}
	got := freshetIn(t, []string{"FRESHET_CLI_ADMIN=" + url}, "gateway", "apis", "create", "taken", "--upstream", "http://up", "--path", "/x")
	if got.code != 5 || !strings.Contains(got.stderr, "name already exists with value 'taken'") {
		t.Errorf("a name that is taken: %+v", got)
	}
}
