package console

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"
)

func serve(t *testing.T, o Options) http.Handler {
	t.Helper()
	o.Log = slog.New(slog.DiscardHandler)
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return http.StripPrefix(Path, h)
}

func ask(h http.Handler, method, target string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	r.Host = "freshet.example:8000"
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestEveryPathThatIsNoFileShowsThePage(t *testing.T) {
	h := serve(t, Options{})
	for target, want := range map[string]int{
		"/console":                        308,
		"/console/":                       200,
		"/console/apps/x/keys":            200,
		"/console/topics/%3Cscript%3E":    200,
		"/console/../../etc/passwd":       200,
		"/console/config.json":            200,
		"/console/assets/":                404,
		"/console/assets/app-OLD.js":      404,
		"/console/assets/../index.html":   404,
		"/console/assets/%2e%2e/guard.go": 404,
	} {
		w := ask(h, "GET", target)
		if w.Code != want {
			t.Errorf("%s: got %d, want %d", target, w.Code, want)
		}
		if strings.Contains(w.Body.String(), "package console") {
			t.Errorf("%s: shows our sources", target)
		}
	}
	if to := ask(h, "GET", "/console").Header().Get("Location"); to != "console/" {
		t.Errorf("redirects to %q", to)
	}
	if w := ask(h, "POST", "/console/"); w.Code != 405 || w.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %d %v", w.Code, w.Header())
	}
	if w := ask(h, "HEAD", "/console/"); w.Code != 200 || w.Body.Len() != 0 || w.Header().Get("Content-Length") == "" {
		t.Errorf("HEAD: %d %d %v", w.Code, w.Body.Len(), w.Header())
	}
}

var reference = regexp.MustCompile(`(?:src|href)="(/console/[^"]*)"`)

func TestThePageNamesFilesThatExistAndMayBeKeptForever(t *testing.T) {
	h := serve(t, Options{})
	page := ask(h, "GET", "/console/")
	if got := page.Header().Get("Cache-Control"); got != "no-cache" {
		t.Errorf("the page is cached: %q", got)
	}
	found := reference.FindAllStringSubmatch(page.Body.String(), -1)
	if len(found) < 4 {
		t.Fatalf("the page names %q", found)
	}
	types := map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".woff2": "font/woff2"}
	for _, m := range found {
		w := ask(h, "GET", m[1])
		if w.Code != 200 || w.Header().Get("Cache-Control") != "public, max-age=31536000, immutable" || w.Header().Get("Content-Type") != types[path.Ext(m[1])] {
			t.Errorf("%s: %d %v", m[1], w.Code, w.Header())
		}
		if again := ask(h, "GET", m[1], "If-None-Match", w.Header().Get("ETag")); again.Code != 304 || again.Body.Len() != 0 {
			t.Errorf("%s is sent again: %d", m[1], again.Code)
		}
	}
}

func TestThePageHasNoScriptOrStyleOfItsOwn(t *testing.T) {
	page := ask(serve(t, Options{}), "GET", "/console/").Body.String()
	for _, bad := range []string{"<style", " style=", " onload=", "<script>", "http://", "https://", "<base"} {
		if strings.Contains(strings.ReplaceAll(page, "http://www.w3.org/2000/svg", ""), bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
}

func TestEverythingTogetherLoadsIn200KB(t *testing.T) {
	h := serve(t, Options{})
	page := ask(h, "GET", "/console/", "Accept-Encoding", "gzip")
	total := page.Body.Len()
	for _, m := range reference.FindAllStringSubmatch(ask(h, "GET", "/console/").Body.String(), -1) {
		w := ask(h, "GET", m[1], "Accept-Encoding", "br, gzip")
		total += w.Body.Len()
		if w.Header().Get("Content-Encoding") == "gzip" {
			r, err := gzip.NewReader(w.Body)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, r); err != nil {
				t.Errorf("%s: %v", m[1], err)
			}
		}
	}
	t.Logf("%d bytes", total)
	if total < 50_000 || total > 200_000 {
		t.Errorf("the console loads %d bytes", total)
	}
	if w := ask(h, "GET", "/console/", "Accept-Encoding", "gzip;q=0"); w.Header().Get("Content-Encoding") != "" {
		t.Error("who forbids gzip gets it")
	}
}

func TestEveryAnswerIsGuarded(t *testing.T) {
	h := serve(t, Options{SubscriberPort: 6080})
	for _, target := range []string{"/console", "/console/", "/console/apps", "/console/config.json", "/console/assets/none.js"} {
		header := ask(h, "GET", target).Header()
		policy := header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self';", "connect-src 'self' http://freshet.example:6080;", "frame-ancestors 'none'",
			"base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'"} {
			if !strings.Contains(policy, want) {
				t.Errorf("%s: the policy lacks %q: %s", target, want, policy)
			}
		}
		if strings.Contains(policy, "unsafe") || header.Get("X-Content-Type-Options") != "nosniff" || header.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: %v", target, header)
		}
	}
}

func TestThePageLearnsWhereStreamsAre(t *testing.T) {
	for _, c := range []struct {
		o            Options
		host         string
		url, connect string
	}{
		{Options{SubscriberPort: 6080}, "freshet.example:8000", "http://freshet.example:6080", "'self' http://freshet.example:6080"},
		{Options{SubscriberPort: 6080, Secure: true}, "freshet.example", "https://freshet.example:6080", "'self' https://freshet.example:6080"},
		{Options{SubscriberPort: 6080}, "127.0.0.1:8000", "http://127.0.0.1:6080", "'self' http://127.0.0.1:6080"},
		{Options{SubscriberPort: 6080}, "[::1]:8000", "http://[::1]:6080", "'self' http:"},
		{Options{SubscriberURL: "https://events.example.com/streams/", SubscriberPort: 6080}, "x", "https://events.example.com/streams", "'self' https://events.example.com"},
		{Options{}, "freshet.example", "", "'self'"},
		{Options{SubscriberPort: 6080}, "evil; script-src *:80", "", "'self'"},
		{Options{SubscriberPort: 6080}, "a b", "", "'self'"},
	} {
		w := ask(serve(t, c.o), "GET", "/console/config.json", "Host", c.host)
		var got configuration
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.SubscriberURL != c.url {
			t.Errorf("%s: got %q %v, want %q", c.host, got.SubscriberURL, err, c.url)
		}
		if policy := w.Header().Get("Content-Security-Policy"); !strings.Contains(policy, "connect-src "+c.connect+";") {
			t.Errorf("%s: %s", c.host, policy)
		}
	}
}
