package kong

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

var anyHost = regexp.MustCompile(`"hostname":"[^"]*"`)

var update = flag.Bool("update", false, "rewrite golden files")

// TestRegistrationsAreAnsweredWordForWord runs a script of calls: "> METHOD PATH BODY", then the answer, then "= name" to call the
// identifier in it by {name}.
func TestRegistrationsAreAnsweredWordForWord(t *testing.T) {
	const file = "testdata/registrations.txt"
	script, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	names, last, out := map[string]string{}, "", ""
	for line := range strings.Lines(string(script)) {
		line = strings.TrimSuffix(line, "\n")
		if name, ok := strings.CutPrefix(line, "= "); ok {
			var made struct{ ID string }
			if err := json.Unmarshal([]byte(last), &made); err != nil {
				t.Fatal(err)
			}
			names["{"+name+"}"] = made.ID
			out += line + "\n"
			continue
		}
		called, ok := strings.CutPrefix(line, "> ")
		if !ok {
			continue
		}
		for name, id := range names {
			called = strings.ReplaceAll(called, name, id)
		}
		method, rest, _ := strings.Cut(called, " ")
		path, body, _ := strings.Cut(rest, " ")
		a := w.administerBody(method, path, "application/json", body)
		last = a.body
		answer := anyHost.ReplaceAllString(strings.ReplaceAll(settled(last), w.admin.URL, "http://HOST"), `"hostname":"HOST"`)
		out += fmt.Sprintf("%s\n%d %s\n", line, a.status, answer)
	}
	if *update {
		if err := os.WriteFile(file, []byte(out), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	wanted, got := strings.Split(string(script), "\n"), strings.Split(out, "\n")
	if len(wanted) != len(got) {
		t.Fatalf("%d lines, want %d", len(got), len(wanted))
	}
	for i := range wanted {
		if wanted[i] != got[i] {
			t.Errorf("after %s\n got %s\nwant %s", wanted[max(0, i-1)], got[i], wanted[i])
		}
	}
}
