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
		start := string(s.stranger().call("GET", page+"/start.js", nil).want(200).body)
		if !strings.Contains(start, "url: new URL(page.dataset.description, window.location.href).href") {
			t.Errorf("%s looks for its description somewhere else:\n%s", page, start)
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

// inline finds scripts that are in the page itself: elements without a source, and attributes that are run.
var inline = regexp.MustCompile(`(?i)<script(?:\s*>|\s+[^>]*>\s*[^\s<])|\son[a-z]+\s*=|javascript:`)

func TestTheBrowsablePagesRunNoInlineScriptsAndKeepNoTokens(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for _, page := range []string{"/api-browser", "/api-browser-admin"} {
		for _, file := range []string{"/index.html", "/"} {
			a := s.stranger().call("GET", page+file, nil).want(200)
			if found := inline.Find(a.body); found != nil {
				t.Errorf("%s%s: %q", page, file, found)
			}
			scripts := ""
			for directive := range strings.SplitSeq(a.header.Get("Content-Security-Policy"), ";") {
				if name, sources, _ := strings.Cut(strings.TrimSpace(directive), " "); name == "script-src" {
					scripts = sources
				}
			}
			if scripts != "'self'" {
				t.Errorf("%s%s runs scripts from %q", page, file, scripts)
			}
		}
		a := s.stranger().call("GET", page+"/start.js", nil).want(200)
		if kind := a.header.Get("Content-Type"); !strings.HasPrefix(kind, "text/javascript") || !strings.Contains(string(a.body), "persistAuthorization: false") {
			t.Errorf("%s: %s\n%s", page, kind, a.body)
		}
	}
}
