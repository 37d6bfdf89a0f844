package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// seen is what the browser saw on an API page.
type seen struct {
	Foreign    []string // requests to other hosts
	Failed     []string
	Errors     []string
	Kept       []string
	Operations []string
	Answers    []struct{ Path, Status, Text string }
}

// step is one use of "try it out".
type step struct {
	Method     string            `json:"method,omitempty"`
	Path       string            `json:"path,omitempty"`
	Parameters map[string]string `json:"parameters,omitempty"`
	Body       any               `json:"body,omitempty"`
	Authorize  string            `json:"authorize,omitempty"` // with the last token an answer had, or this text
}

func browse(t *testing.T, base, path string, steps []step) seen {
	t.Helper()
	installPackages(t, "browser")
	text, err := json.Marshal(steps)
	if err != nil {
		t.Fatal(err)
	}
	pictures := os.Getenv("FRESHET_TEST_PICTURES") // keep them to look at
	if pictures == "" {
		pictures = t.TempDir()
	} else {
		pictures = filepath.Join(pictures, t.Name())
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	node := exec.CommandContext(ctx, "node", "browser/pages.mjs", base, path, string(text), pictures)
	var stdout, stderr bytes.Buffer
	node.Stdout, node.Stderr = &stdout, &stderr
	if err := node.Run(); err != nil {
		t.Fatalf("browser: %v\n%s", err, stderr.String())
	}
	var s seen
	if err := json.Unmarshal(stdout.Bytes(), &s); err != nil {
		t.Fatalf("browser said %q: %v", stdout.String(), err)
	}
	return s
}

func TestAPIPagesLoadNothingFromElsewhereAndWorkAgainstTheServer(t *testing.T) {
	t.Parallel()
	p := start(t)
	base := "http://" + p.Gateway
	admin := map[string]string{"email": "admin@freshet.local", "password": "freshet-admin"}
	for _, page := range []struct {
		name, path string
		operations int // at least
		steps      []step
		statuses   []string
	}{
		{
			name: "management", path: "/api/v1/api-browser/index.html", operations: 20,
			steps: []step{
				{Method: "PUT", Path: "/session", Body: admin},
				{Authorize: "token"},
				{Method: "POST", Path: "/apps", Body: map[string]string{"name": "Made in a browser"}},
				{Method: "GET", Path: "/apps"},
				{Method: "GET", Path: "/apps/{app_id}", Parameters: map[string]string{"app_id": "nowhere"}},
			},
			statuses: []string{"200", "201", "200", "404"},
		},
		{
			name: "admin", path: "/api/v1/api-browser-admin/index.html", operations: 3,
			steps:    []step{{Method: "GET", Path: "/admin/users"}},
			statuses: []string{"401"},
		},
		{
			name: "publishing", path: "/publish/latest/api-browser/index.html", operations: 2,
			steps: []step{{Method: "POST", Path: "/topics/{topic_id}",
				Parameters: map[string]string{"topic_id": "nowhere"}, Body: []int{1, 2}}},
			statuses: []string{"401"},
		},
	} {
		t.Run(page.name, func(t *testing.T) {
			s := browse(t, base, page.path, page.steps)
			for what, problems := range map[string][]string{"loads from elsewhere": s.Foreign, "cannot load": s.Failed, "complains": s.Errors, "keeps": s.Kept} {
				if len(problems) > 0 {
					t.Errorf("the page %s: %q", what, problems)
				}
			}
			if len(s.Operations) < page.operations {
				t.Errorf("the page shows %d operations, want at least %d: %q", len(s.Operations), page.operations, s.Operations)
			}
			for i, want := range page.statuses {
				if i >= len(s.Answers) || s.Answers[i].Status != want {
					t.Fatalf("answers %+v, want statuses %q", s.Answers, page.statuses)
				}
			}
		})
	}
}
