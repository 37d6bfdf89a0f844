package e2e

import (
	"os"
	"os/exec"
	"testing"
)

// TestTheTypeScriptSDK runs the SDK's own tests, in Node and in Chromium, against this program.
func TestTheTypeScriptSDK(t *testing.T) {
	t.Parallel()
	installPackages(t, "../sdk/ts")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	npm := exec.CommandContext(t.Context(), "npm", "test")
	npm.Dir = "../sdk/ts"
	npm.Env = append(os.Environ(), "FRESHET_TEST_BINARY="+self, beFreshet+"=1", "GORACE=atexit_sleep_ms=0")
	out, err := npm.CombinedOutput()
	if err != nil {
		t.Fatalf("npm test: %v\n%s", err, out)
	}
}
