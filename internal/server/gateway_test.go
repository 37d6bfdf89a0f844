package server

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/settings"
)

// administer posts a form to the administration and returns the status.
func administer(t *testing.T, r *running, token, path string, fields ...string) int {
	t.Helper()
	form := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+r.address("admin")+path, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

func TestRegisteredAPIsSurviveARestart(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "upstream "+r.URL.Path)
	}))
	defer up.Close()
	data := t.TempDir()
	first := run(t, func(s *settings.Settings) { s.Data = data })
	if status := administer(t, first, "", "/apis/", "request_path", "/quote", "upstream_url", up.URL); status != http.StatusCreated {
		t.Fatalf("registering answers %d", status)
	}
	if status := administer(t, first, "", "/apis/quote/plugins", "name", "rate-limiting", "config.year", "1000"); status != http.StatusCreated {
		t.Fatalf("attaching answers %d", status)
	}
	first.cancel()
	if err := first.wait(); err != nil {
		t.Fatal(err)
	}
	second := run(t, func(s *settings.Settings) { s.Data = data })
	if status, body := get(t, second.address("gateway"), "/quote/x"); status != http.StatusOK || body != "upstream /quote/x" {
		t.Errorf("after a restart it answers %d %s", status, body)
	}
}

func TestTheAdministrationAsksForItsToken(t *testing.T) {
	const token = "a-token-of-some-length"
	r := run(t, func(s *settings.Settings) { s.Admin.Token = freshet.Secret(token) })
	for name, c := range map[string]struct {
		token string
		want  int
	}{
		"none": {"", 401}, "another": {"another-token-of-length", 401}, "a part": {token[:20], 401}, "it": {token, 201},
	} {
		if status := administer(t, r, c.token, "/consumers", "username", "bob"); status != c.want {
			t.Errorf("with %s it answers %d", name, status)
		}
	}
	for path, want := range map[string]int{"/livez": 200, "/readyz": 200, "/metrics": 401, "/debug/pprof/": 401, "/": 401} {
		if status, body := get(t, r.address("admin"), path); status != want || strings.Contains(body, token) {
			t.Errorf("%s answers %d %s", path, status, body)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.address("admin")+"/apis", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Freshet-Admin-Token", token)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("the header of its own answers %s", resp.Status)
	}
}

func TestAProcessWithoutTheGatewayRoleHasNoAdministration(t *testing.T) {
	r := run(t, func(s *settings.Settings) { s.Roles = []settings.Role{settings.RoleManage} })
	if status, _ := get(t, r.address("admin"), "/apis/"); status != http.StatusNotFound {
		t.Errorf("it answers %d", status)
	}
	if status, _ := get(t, r.address("gateway"), "/api/v1/api-browser/index.html"); status != http.StatusOK {
		t.Errorf("its own API answers %d", status)
	}
}

func TestAGatewayReachesThePlatformsAPIsInOtherProcesses(t *testing.T) {
	rest := run(t, func(s *settings.Settings) { s.Roles = []settings.Role{settings.RoleManage, settings.RolePublish} })
	front := run(t, func(s *settings.Settings) {
		s.Roles = []settings.Role{settings.RoleGateway}
		s.Gateway.ManageURL = "http://" + rest.address("gateway")
		s.Gateway.PublishURL = "http://" + rest.address("gateway")
	})
	for _, path := range []string{"/api/v1/api-browser/index.html", "/publish/latest/api-browser/index.html"} {
		if status, body := get(t, front.address("gateway"), path); status != http.StatusOK {
			t.Errorf("%s answers %d %s", path, status, body)
		}
	}
}

func TestABusyHeapMayGrowButNotALargeOne(t *testing.T) {
	for live, want := range map[uint64]int{0: maxPercent, 1 << 20: maxPercent, 8 << 20: 800, 64 << 20: usualPercent, 1 << 30: usualPercent} {
		if got := gcPercent(live); got != want {
			t.Errorf("%d live bytes: %d %%, want %d", live, got, want)
		}
	}
}
