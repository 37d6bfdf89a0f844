package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestCIChecksForVulnerabilities holds the way from what CI runs to govulncheck, and that a finding fails it.
func TestCIChecksForVulnerabilities(t *testing.T) {
	for _, link := range []struct{ file, has string }{
		{".ci/run", "make check"}, {"Makefile", "@scripts/check"}, {"scripts/check", `govulncheck ${GOVULNDB:+-db "$GOVULNDB"} ./...`}, {"tools/go.mod", "golang.org/x/vuln"},
	} {
		text, err := os.ReadFile("../../" + link.file)
		if err != nil || !strings.Contains(string(text), link.has) {
			t.Errorf("%s does not lead on to %q: %v", link.file, link.has, err)
		}
	}
}

func TestEveryThreatHasATestThatExists(t *testing.T) {
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{}
	err = filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(text), -1) {
			tests[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	entries := 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || strings.HasPrefix(cells[1], "---") || strings.TrimSpace(cells[1]) == "Threat" {
			continue
		}
		entries++
		named := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(cells[3], -1)
		if len(named) == 0 {
			t.Errorf("no test holds off: %s", cells[1])
		}
		for _, m := range named {
			if !tests[m[1]] {
				t.Errorf("%s does not exist; it should hold off: %s", m[1], cells[1])
			}
		}
	}
	if entries < 15 {
		t.Errorf("only %d threats were found on the page", entries)
	}
}
