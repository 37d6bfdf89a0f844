package manage

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestLatestIsTheSameAPI(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.signUp()
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/api/latest/apps", strings.NewReader(`{"name":"a"}`))
	a := c.send(r).want(201)
	if got := a.header.Get("Location"); got != "/api/v1/apps/"+a.text("id") {
		t.Errorf("Location %q", got)
	}
	if got := a.link("self"); got != "/v1/apps/"+a.text("id") {
		t.Errorf("self %q", got)
	}
}

func TestTheDocumentComesAsItWasPublishedUnderItsVersion(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.tenant()
	path := "/topics/" + c.topic + "/document"
	if a := c.call("GET", path, nil).want(404); !strings.Contains(string(a.body), "Nothing was published") {
		t.Errorf("before the first publication: %s", a.body)
	}
	const text = `{"n":1.10,"big":12345678901234567890,"html":"<b>&\u2028","e":1E300}`
	at := s.publish(c.topic, text)
	a := c.call("GET", path, nil).want(200)
	etag := `"` + at.String() + `"`
	if string(a.body) != text || a.header.Get("ETag") != etag || a.header.Get("Cache-Control") != "private, no-cache" {
		t.Errorf("%s, ETag %s, Cache-Control %s", a.body, a.header.Get("ETag"), a.header.Get("Cache-Control"))
	}
	for header, want := range map[string]int{
		etag: 304, "W/" + etag: 304, `"x", ` + etag: 304, "*": 304, `"x"`: 200, "": 200, at.String(): 200, `"` + at.String(): 200,
	} {
		conditional := *c.client
		conditional.header = http.Header{"If-None-Match": {header}}
		a := conditional.call("GET", path, nil).want(want)
		if a.header.Get("ETag") != etag {
			t.Errorf("If-None-Match %s: ETag %q", header, a.header.Get("ETag"))
		}
		if want == 304 && (a.header.Get("Content-Encoding") != "" || a.header.Get("Content-Type") != "") {
			t.Errorf("304 with %v", a.header)
		}
	}
	s.publish(c.topic, `[]`)
	conditional := *c.client
	conditional.header = http.Header{"If-None-Match": {etag}}
	conditional.call("GET", path, nil).want(200)
	for _, other := range []string{`"text"`, `null`, `false`, `0`, `{}`} {
		s.publish(c.topic, other)
		if a := c.call("GET", path, nil).want(200); string(a.body) != other {
			t.Errorf("published %s, got %s", other, a.body)
		}
	}
}

// listen serves the API on a real socket.
func (s *server) listen() string {
	h := httptest.NewServer(s.handler)
	s.t.Cleanup(h.Close)
	return h.URL
}

func TestOnTheWireAnAnswerIsCompressedForThoseWhoAcceptIt(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.tenant()
	s.publish(c.topic, `{"a":1}`)
	base := s.listen()
	plain := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	for _, test := range []struct {
		method, path, accept string
		status               int
		coding               string
	}{
		{"GET", "/apps", "gzip", 200, "gzip"}, {"GET", "/apps", "", 200, ""}, {"GET", "/apps", "identity", 200, ""},
		{"GET", "/apps", "gzip;q=0", 200, ""}, {"GET", "/apps", "deflate, gzip;q=1.0, *;q=0.5", 200, "gzip"}, {"GET", "/apps", "zstd", 200, ""},
		{"GET", "/apps", "br", 200, ""}, {"GET", "/topics/" + c.topic + "/document", "gzip", 200, "gzip"},
		{"GET", "/nothing", "gzip", 404, "gzip"}, {"DELETE", "/users", "gzip", 405, "gzip"}, {"POST", "/apps", "gzip", 400, "gzip"},
		{"GET", "/openapi.json", "gzip", 200, "gzip"}, {"GET", "/api-browser/index.html", "gzip", 200, "gzip"},
		{"GET", "/api-browser/swagger-ui.css", "gzip", 200, "gzip"}, {"GET", "/api-browser/swagger-ui.css", "", 200, ""},
		{"GET", "/api-browser/favicon-16x16.png", "gzip", 200, "gzip"},
		{"DELETE", "/topics/" + c.topic, "gzip", 204, ""}, {"OPTIONS", "/apps", "gzip", 405, "gzip"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), test.method, base+"/api/v1"+test.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+c.token)
		r.Header.Set("Accept-Encoding", test.accept)
		a, err := plain.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(a.Body)
		a.Body.Close()
		if err != nil || a.StatusCode != test.status || a.Header.Get("Content-Encoding") != test.coding {
			t.Errorf("%s %s, accepting %q: %d, Content-Encoding %q, %v: %.80s", test.method, test.path, test.accept, a.StatusCode, a.Header.Get("Content-Encoding"), err, body)
		}
		if (len(body) > 0) != (test.status != 204) {
			t.Errorf("%s %s: %d bytes", test.method, test.path, len(body))
		}
		if !strings.Contains(strings.Join(a.Header.Values("Vary"), ","), "Accept-Encoding") {
			t.Errorf("%s %s: Vary %q", test.method, test.path, a.Header.Values("Vary"))
		}
	}
}

func TestHeadAnswersLikeGetWithoutABody(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.tenant()
	s.publish(c.topic, `{"a":1}`)
	base := s.listen()
	for path, want := range map[string]int{"/apps": 200, "/apps/" + c.app: 200, "/topics/" + c.topic + "/document": 200, "/apps/x": 404,
		"/nothing": 404, "/session": 405, "/openapi.json": 200, "/api-browser/index.html": 200} {
		r, err := http.NewRequestWithContext(t.Context(), "HEAD", base+"/api/v1"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+c.token)
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(a.Body)
		a.Body.Close()
		if a.StatusCode != want || len(body) > 0 || err != nil {
			t.Errorf("HEAD %s: %d, %d bytes, %v", path, a.StatusCode, len(body), err)
		}
	}
}

func TestAPathThatLeadsNowhereIsAnsweredAsJSON(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.signUp()
	for _, path := range []string{"", "/", "/x", "/apps/", "//apps", "/apps//", "/./apps", "/apps/../apps", "/apps/%2e%2e/apps", "/%61pps/x/y/z/w",
		"/users", "/Apps", "/apps/x/subscriber_key/y", "/api-browser/", "/api-browser/x.js", "/api-browser/../apps", "/api-browser/.", "/apps;x", "/apps%00", "/api-browser-adminx"} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "http://example.com/api/v1", nil)
		r.URL.Opaque = ""
		if u, err := r.URL.Parse("http://example.com/api/v1" + path); err == nil {
			*r.URL = *u
		}
		r.URL.Path, r.URL.RawPath = unescape(path), "/api/v1"+path
		a := c.send(r)
		switch {
		case path == "/api-browser/":
			a.want(200)
		case path == "/users":
			if a.want(405).header.Get("Allow") != "POST" {
				t.Errorf("Allow %q", a.header.Get("Allow"))
			}
		default:
			if a.want(404).json()["message"] == "" {
				t.Errorf("%s: %s", path, a.body)
			}
		}
	}
}

func unescape(path string) string {
	return "/api/v1" + strings.NewReplacer("%2e", ".", "%61", "a", "%00", "\x00").Replace(path)
}

func TestAMethodThatIsNotPossibleNamesThoseThatAre(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.signUp()
	for path, want := range map[string]string{
		"/users": "POST", "/session": "DELETE, PUT", "/apps": "GET, HEAD, POST", "/apps/x": "DELETE, GET, HEAD, PATCH",
		"/apps/x/subscriber_key": "PUT", "/topics/x/document": "GET, HEAD", "/openapi.json": "GET, HEAD",
	} {
		for _, method := range []string{"TRACE", "OPTIONS", "BREW", strings.Repeat("X", 300)} {
			a := c.call(method, path, nil).want(405)
			if got := a.header.Get("Allow"); got != want {
				t.Errorf("%s %s: Allow %q, want %q", method, path, got, want)
			}
			if len(a.body) > 200 {
				t.Errorf("%s: %d bytes", path, len(a.body))
			}
		}
	}
}

func TestPagesOfEveryOriginMayUseTheAPI(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.signUp()
	for _, origin := range []string{"https://example.com", "null", "http://localhost:3000", "https://good.evil.example"} {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"} {
			pre := s.stranger()
			pre.header = http.Header{"Origin": {origin}, "Access-Control-Request-Method": {method},
				"Access-Control-Request-Headers": {"authorization,content-type,if-none-match,x-requested-with"}}
			a := pre.call("OPTIONS", "/apps/x", nil)
			if a.status != 204 || a.header.Get("Access-Control-Allow-Origin") != "*" || a.header.Get("Access-Control-Allow-Methods") != method ||
				!strings.Contains(a.header.Get("Access-Control-Allow-Headers"), "authorization") {
				t.Errorf("preflight for %s from %s: %d %v", method, origin, a.status, a.header)
			}
			if a.header.Get("Access-Control-Allow-Credentials") != "" {
				t.Error("credentials are allowed")
			}
		}
		for _, request := range []struct {
			*client
			path   string
			status int
		}{{c, "/apps", 200}, {c, "/nothing", 404}, {s.stranger(), "/apps", 401}} {
			caller := *request.client
			caller.header = http.Header{"Origin": {origin}}
			a := caller.call("GET", request.path, nil).want(request.status)
			if got := a.header.Get("Access-Control-Allow-Origin"); got != "*" || a.header.Get("Access-Control-Allow-Credentials") != "" {
				t.Errorf("GET %s from %s: Access-Control-Allow-Origin %q", request.path, origin, got)
			}
			for _, name := range []string{"Location", "X-Ratelimit-Limit-Minute", "X-Ratelimit-Remaining-Minute", "Retry-After"} {
				if !strings.Contains(strings.ToLower(a.header.Get("Access-Control-Expose-Headers")), strings.ToLower(name)) {
					t.Errorf("%s is not exposed: %s", name, a.header.Get("Access-Control-Expose-Headers"))
				}
			}
		}
	}
}

func TestAUserHasABudgetOfRequests(t *testing.T) {
	t.Parallel()
	s := serve(t)
	admin, c, other := s.admin(), s.signUp(), s.signUp()
	admin.call("PATCH", "/admin/users/"+c.id, `{"quotas":{"requests_per_minute":3}}`).want(200)
	s.now.advance(15 * time.Second) // of the window that began when the clock was made; what c used in it counts
	s.now.advance(time.Minute)
	for left := 2; left >= 0; left-- {
		a := c.call("GET", "/apps", nil).want(200)
		for name, want := range map[string]string{"X-RateLimit-Limit-Minute": "3", "X-RateLimit-Minute": "3", "X-RateLimit-Remaining-Minute": strconv.Itoa(left)} {
			if got := a.header.Get(name); got != want {
				t.Errorf("%s %q, want %q", name, got, want)
			}
		}
	}
	for range 2 {
		a := c.call("GET", "/apps/x", nil).want(429)
		if a.header.Get("Retry-After") != "45" || a.header.Get("X-RateLimit-Remaining-Minute") != "0" || a.header.Get("X-RateLimit-Limit-Minute") != "3" {
			t.Errorf("429 with %v", a.header)
		}
		if !strings.Contains(a.text("message"), "3 requests") {
			t.Errorf("429 says %s", a.body)
		}
	}
	other.call("GET", "/apps", nil).want(200)
	s.now.advance(45 * time.Second)
	c.call("GET", "/apps", nil).want(200)
	admin.call("PATCH", "/admin/users/"+c.id, `{"quotas":{"requests_per_minute":0}}`).want(200)
	if a := c.call("GET", "/apps", nil).want(200); a.header.Get("X-RateLimit-Limit-Minute") != "" {
		t.Errorf("unlimited, and yet %v", a.header)
	}
}

func TestStrangersHaveABudgetPerAddress(t *testing.T) {
	t.Parallel()
	s := serve(t, setting{manage: func(o *Options) { o.RequestsPerMinute = 3 }})
	c := s.stranger()
	c.call("PUT", "/session", `{}`).want(400)
	c.call("GET", "/apps", nil).want(401)
	if a := c.call("POST", "/users", `{}`).want(400); a.header.Get("X-RateLimit-Remaining-Minute") != "0" {
		t.Errorf("headers %v", a.header)
	}
	c.call("PUT", "/session", `{}`).want(429)
	c.call("GET", "/apps", nil).want(429)
	if a := c.call("POST", "/users", `{}`).want(429); a.header.Get("Retry-After") != "60" {
		t.Errorf("Retry-After %q", a.header.Get("Retry-After"))
	}
	c.remote = "192.0.2.2:1"
	c.call("PUT", "/session", `{}`).want(400)
}

func TestABodyThatBreaksOffIsTheClientsFault(t *testing.T) {
	t.Parallel()
	s := serve(t)
	address := strings.TrimPrefix(s.listen(), "http://")
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST /api/v1/users HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{\"email\":"); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 400 ") || !strings.Contains(string(answer), "could not be read") {
		t.Errorf("%v: %s", err, answer)
	}
}

func TestNothingSecretIsLogged(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.tenant()
	app := c.call("GET", "/apps/"+c.app, nil)
	c.call("PUT", "/apps/"+c.app+"/subscriber_key", nil)
	c.signIn("nobody@example.com", password)
	for _, canary := range []string{password, c.token, app.text("subscriber_key"), app.text("publisher_key"), app.text("signature_key")} {
		if strings.Contains(s.log.String(), canary) {
			t.Errorf("%q is in the log", canary)
		}
	}
}
