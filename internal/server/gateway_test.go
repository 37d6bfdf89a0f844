package server

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/settings"
)

// administer posts a form to the administration and returns the status.
func administer(t testing.TB, r *running, token, path string, fields ...string) int {
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

// The gateway's listener bounds connections and keeps heads; both must leave the request as it was.
func TestTheGatewayRefusesRequestsWithTwoEnds(t *testing.T) {
	r := run(t, nil)
	for sent, want := range map[string]string{
		"POST /api/v1/users HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n":                                  "HTTP/1.1 400",
		"POST /nowhere HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n":                                       "HTTP/1.1 404",
		"GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\nPOST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /": "HTTP/1.1 404",
	} {
		conn, err := net.Dial("tcp", r.address("gateway"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, sent); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, len(want))
		if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != want {
			t.Errorf("%q is answered with %q, %v", sent, answer, err)
		}
		conn.Close()
	}
}

func TestTheAdministrationTellsHowBusyTheGatewayIs(t *testing.T) {
	r := run(t, nil)
	for range 3 {
		get(t, r.address("gateway"), "/nowhere")
	}
	status, body := get(t, r.address("admin"), "/status")
	if status != http.StatusOK || !strings.Contains(body, `"total_requests":3`) || !strings.Contains(body, `"apis":0`) || strings.Contains(body, `"connections_accepted":0`) {
		t.Errorf("answers %d %s", status, body)
	}
}

func TestProductionRegistersNoUpstreamThatIsTheAdministrationListener(t *testing.T) {
	production := func(s *settings.Settings) { s.Environment, s.Admin.Password = settings.Production, "hunter2hunter2" }
	r := run(t, production)
	_, port, _ := net.SplitHostPort(r.address("admin"))
	for _, host := range []string{r.address("admin"), "localhost:" + port, "LocalHost.:" + port, "0.0.0.0:" + port, "[::1]:" + port, "[::ffff:127.0.0.1]:" + port} {
		if status := administer(t, r, "", "/apis/", "request_path", "/inside", "upstream_url", "http://"+host+"/debug"); status != http.StatusBadRequest {
			t.Errorf("registering %s answers %d", host, status)
		}
	}
	_, streams, _ := net.SplitHostPort(r.address("subscriber"))
	if status := administer(t, r, "", "/apis/", "request_path", "/streams", "upstream_url", "http://localhost:"+streams); status != http.StatusCreated {
		t.Errorf("registering the subscriber listener answers %d", status)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, "http://"+r.address("admin")+"/apis/streams", strings.NewReader("upstream_url=http://127.0.0.1:"+port))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusBadRequest || !strings.Contains(string(body), "administration listener") {
		t.Errorf("changing it answers %d %s", answer.StatusCode, body)
	}

	open := run(t, func(*settings.Settings) {})
	if status := administer(t, open, "", "/apis/", "request_path", "/inside", "upstream_url", "http://"+open.address("admin")); status != http.StatusCreated {
		t.Errorf("development answers %d", status)
	}
}
