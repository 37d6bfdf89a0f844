package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evanw/esbuild/pkg/api"
)

// The pages' own tests are bundled as the pages are, and run by Node.
func TestTheLiveViewerIsRightAboutDocuments(t *testing.T) {
	runPageTest(t, "live.test.ts")
}

func TestTheLiveViewerFollowsWhateverHappens(t *testing.T) {
	runPageTest(t, "stream.test.ts")
}

func runPageTest(t *testing.T, name string) {
	t.Helper()
	install(t)
	built := api.Build(api.BuildOptions{
		EntryPoints: []string{"../web/test/" + name},
		Bundle:      true,
		Platform:    api.PlatformNode,
		Format:      api.FormatESModule,
		Target:      api.ES2022,
		LogLevel:    api.LogLevelSilent,
	})
	if len(built.Errors) > 0 {
		t.Fatal(strings.Join(api.FormatMessages(built.Errors, api.FormatMessagesOptions{}), "\n"))
	}
	at := filepath.Join(t.TempDir(), "page.test.mjs")
	if err := os.WriteFile(at, built.OutputFiles[0].Contents, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "node", "--test", at).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func TestThePagesAreWellTyped(t *testing.T) {
	install(t)
	tsc := exec.CommandContext(t.Context(), "npm", "run", "--silent", "types")
	tsc.Dir = "../web"
	if out, err := tsc.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
