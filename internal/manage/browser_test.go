package manage

import (
	"regexp"
	"strings"
	"testing"
)

// elsewhere finds what a browser would fetch from another host: addresses in attributes, and in styles and scripts
// that load.
var elsewhere = regexp.MustCompile(`(?i)(?:src|href|action)\s*=\s*["']?\s*(?:https?:)?//|url\(\s*["']?\s*(?:https?:)?//|@import|fetch\(\s*["']https?:`)

func TestTheBrowsablePagesLoadNothingFromElsewhere(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for page, description := range map[string]string{"/api-browser": "../openapi.json", "/api-browser-admin": "../openapi-admin.json"} {
		a := s.stranger().call("GET", page+"/index.html", nil).want(200)
		html := string(a.body)
		if !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") || !strings.Contains(html, "swagger-ui") {
			t.Fatalf("%s is no page: %s", page, html)
		}
		if found := elsewhere.FindString(html); found != "" {
			t.Errorf("%s loads from elsewhere: %q", page, found)
		}
		if !strings.Contains(strings.ReplaceAll(html, `\/`, "/"), description) {
			t.Errorf("%s does not read %s:\n%s", page, description, html)
		}
		// Relative to the page itself: the page stands one level below the description, under whatever prefix.
		if !strings.Contains(html, "url: new URL(cfg.swaggerJsonUrl, window.location.href).href") {
			t.Errorf("%s looks for its description somewhere else:\n%s", page, html)
		}
		policy := a.header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'self'") || strings.Contains(policy, "http") || strings.Contains(policy, "*") {
			t.Errorf("%s: policy %q", page, policy)
		}
		loaded := regexp.MustCompile(`(?:src|href)="([^"]+)"`).FindAllStringSubmatch(html, -1)
		if len(loaded) < 4 {
			t.Errorf("%s loads only %v", page, loaded)
		}
		for _, match := range loaded {
			file := strings.TrimPrefix(match[1], "./")
			asset := s.stranger().call("GET", page+"/"+file, nil).want(200)
			if len(asset.body) == 0 || asset.header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s/%s: %d bytes, %v", page, file, len(asset.body), asset.header)
			}
			if strings.HasSuffix(file, ".js") {
				continue // megabytes of somebody's code; the policy above is what holds it
			}
			if found := elsewhere.Find(asset.body); found != nil {
				t.Errorf("%s/%s loads from elsewhere: %q", page, file, found)
			}
		}
		// Without the file's name, relative addresses still have to work.
		if a := s.stranger().call("GET", page, nil).want(301); a.header.Get("Location") != strings.TrimPrefix(page, "/")+"/index.html" {
			t.Errorf("%s leads to %q", page, a.header.Get("Location"))
		}
		s.stranger().call("GET", page+"/", nil).want(200)
		for _, file := range []string{"/nothing.js", "/swagger-ui.css.gz.gz", "/%2e%2e/openapi.json", "/a/b", "/embed.go"} {
			s.stranger().call("GET", page+file, nil).want(404)
		}
	}
}
