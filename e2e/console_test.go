package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// visit is what a person with a browser found in the console.
type visit struct {
	Problems []string
	Figures  struct {
		Go      string // a program to copy
		Seconds map[string]float64
		Load    map[string]float64
		Took    float64 `json:"took_s"`
	}
}

func TestAPersonCanDoEverythingInTheConsole(t *testing.T) {
	t.Parallel()
	installBrowserTools(t)
	p := start(t)
	which := "all"
	pictures := os.Getenv("FRESHET_TEST_PICTURES") // keep them to look at
	if pictures == "" {
		pictures, which = t.TempDir(), "few"
	} else {
		pictures = filepath.Join(pictures, t.Name())
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	node := exec.CommandContext(ctx, "node", "browser/console.mjs", "http://"+p.Gateway, "http://"+p.Subscriber, pictures, which)
	var stdout, stderr bytes.Buffer
	node.Stdout, node.Stderr = &stdout, &stderr
	if err := node.Run(); err != nil {
		t.Fatalf("browser: %v\n%s", err, stderr.String())
	}
	var v visit
	if err := json.Unmarshal(stdout.Bytes(), &v); err != nil {
		t.Fatalf("browser said %q: %v", stdout.String(), err)
	}
	for _, problem := range v.Problems {
		t.Error(problem)
	}
	if _, err := parser.ParseFile(token.NewFileSet(), "main.go", v.Figures.Go, 0); err != nil || v.Figures.Go == "" {
		t.Errorf("the Go program to copy: %v\n%s", err, v.Figures.Go)
	}
	t.Logf("took %.0f s: %v; under load: %v", v.Figures.Took, v.Figures.Seconds, v.Figures.Load)
}
