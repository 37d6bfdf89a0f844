package main

import (
	"bytes"
	"os"
	"os/exec"
	"testing"
)

// install gets the npm packages; without npm the test fails and says so.
func install(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("../web/node_modules/preact"); err != nil {
		npm := exec.CommandContext(t.Context(), "npm", "ci")
		npm.Dir = "../web"
		if out, err := npm.CombinedOutput(); err != nil {
			t.Fatalf("npm ci in console/web: %v\n%s", err, out)
		}
	}
}

func TestWhatIsCommittedIsWhatTheSourcesGive(t *testing.T) {
	install(t)
	fresh, err := bundle("../web")
	if err != nil {
		t.Fatal(err)
	}
	committed, err := read("../dist")
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range fresh {
		if !bytes.Equal(body, committed[name]) {
			t.Errorf("dist/%s is stale or missing: run make console", name)
		}
		delete(committed, name)
	}
	for name := range committed {
		t.Errorf("dist/%s is not built from anything: run make console", name)
	}
}
