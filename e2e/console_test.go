package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// visit is what a person with a browser found in the console.
type visit struct {
	Problems []string
	Figures  struct {
		Go      []string // programs to copy
		Seconds map[string]float64
		Load    map[string]float64
		Took    float64 `json:"took_s"`

		Transferred int                `json:"transferred_bytes"`
		Shifts      map[string]float64 // what moved by itself while a page was loaded
	}
}

func TestAPersonCanDoEverythingInTheConsole(t *testing.T) {
	t.Parallel()
	installPackages(t, "browser")
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
	if len(v.Figures.Go) != 3 {
		t.Errorf("%d Go programs to copy, want 3", len(v.Figures.Go))
	}
	for _, program := range v.Figures.Go {
		if err := compiles(t, program); err != nil {
			t.Errorf("a Go program to copy: %v\n%s", err, program)
		}
	}
	t.Logf("took %.0f s: %v; under load: %v; transferred: %d bytes; layout shifts: %v",
		v.Figures.Took, v.Figures.Seconds, v.Figures.Load, v.Figures.Transferred, v.Figures.Shifts)
}

// compiles has the compiler read a program. It finds the packages that the program imports compiled already, as for the tests
// themselves.
func compiles(t *testing.T, program string) error {
	t.Helper()
	file := filepath.Join(t.TempDir(), "main.go")
	write(t, file, program)
	vet := exec.CommandContext(t.Context(), "go", "vet", "-race", file)
	vet.Dir = filepath.Dir(file) // no module: it uses the standard library only
	if out, err := vet.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}
