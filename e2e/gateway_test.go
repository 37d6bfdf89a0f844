package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// form posts to the administration and returns the status.
func form(t *testing.T, p *process, path string, fields ...string) int {
	t.Helper()
	values := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		values.Add(fields[i], fields[i+1])
	}
	resp, err := http.PostForm("http://"+p.Admin+path, values)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

func TestWhatTheAdministrationAcknowledgedSurvivesSIGKILL(t *testing.T) {
	t.Parallel()
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("X-Consumer-Username")+" asks for "+r.URL.Path)
	}))
	defer up.Close()
	data := t.TempDir()
	p := start(t, "--data", data)
	for _, call := range [][]string{
		{"/apis/", "request_path", "/quote", "upstream_url", up.URL, "strip_request_path", "true"},
		{"/apis/quote/plugins", "name", "key-auth"},
		{"/apis/publish/plugins", "name", "rate-limiting", "config.hour", "2"},
		{"/consumers/", "username", "bob"},
		{"/consumers/bob/key-auth", "key", "bobs-key"},
	} {
		if status := form(t, p, call[0], call[1:]...); status != http.StatusCreated {
			t.Fatalf("%v answers %d", call, status)
		}
	}
	p.Kill()
	p = start(t, "--data", data)
	get := func(path string) string {
		resp, err := http.Get("http://" + p.Gateway + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%d %s", resp.StatusCode, body)
	}
	if got := get("/quote/ACME?apikey=bobs-key"); got != "200 bob asks for /ACME" {
		t.Errorf("with the key it answers %s", got)
	}
	if got := get("/quote/ACME"); !strings.HasPrefix(got, "401 ") {
		t.Errorf("without the key it answers %s", got)
	}
	for range 2 {
		get("/publish/v1/api-browser/index.html")
	}
	if got := get("/publish/v1/api-browser/index.html"); !strings.HasPrefix(got, "429 ") {
		t.Errorf("beyond the quota the platform's own API answers %.100s", got)
	}
	if logs := p.Output(); strings.Contains(logs, "bobs-key") {
		t.Errorf("a key is in the log:\n%s", logs)
	}
}

func TestProductionDoesNotOpenItsAdministrationToEverybody(t *testing.T) {
	r := freshet(t, serveArgs("--environment", "production", "--admin-password", "a password of its own", "--admin-listen", "0.0.0.0:0")...)
	if r.code == 0 || !strings.Contains(r.stderr, "admin.token") {
		t.Errorf("it ended with %d: %s", r.code, r.stderr)
	}
}
