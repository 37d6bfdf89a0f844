package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// checkRoundTrip loads what Print wrote and compares everything that was not hidden.
func checkRoundTrip(t *testing.T, e *Effective) {
	t.Helper()
	var b strings.Builder
	if err := e.Print(&b); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "printed.yaml")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	back, err := Load(Sources{File: path})
	if err != nil {
		t.Fatalf("what was printed is refused: %v\n%s", err, b.String())
	}
	for _, s := range Entries() {
		if got, want := s.get(&back.Settings), s.get(&e.Settings); s.Privacy == Open && got != want {
			t.Errorf("%s was %q and is %q", s.Key, want, got)
		}
	}
}

func TestWhatIsPrintedCanBeUsedAsAFile(t *testing.T) {
	for name, src := range map[string]Sources{
		"defaults": {},
		"changed": {Flags: map[string]string{
			"data": "C:\\a b: #1", "roles": "publish,poll", "trusted-proxies": "10.0.0.0/8,::1", "gateway-listen": "[::1]:0",
			"log-format": "json", "admin-password": "correct horse", "token-lifetime": "90m",
		}},
		"texts that YAML takes for something else": {Flags: map[string]string{"data": "null"}},
		"another such text":                        {Flags: map[string]string{"data": "[a, b]"}},
		"line breaks":                              {Flags: map[string]string{"data": "a\n# b\n\tc"}},
		"quotes":                                   {Flags: map[string]string{"data": `'"'`}},
		"spaces":                                   {Flags: map[string]string{"data": " a "}},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := Load(src)
			if err != nil {
				t.Fatal(err)
			}
			checkRoundTrip(t, e)
		})
	}
}

func TestPrintHidesSecretsAndNamesOrigins(t *testing.T) {
	e, err := Load(Sources{
		Environ: []string{"FRESHET_DATABASE=postgres://u:hunter2@h/d", "FRESHET_ADMIN_PASSWORD=hunter2hunter2"},
		Flags:   map[string]string{"token-secret": strings.Repeat("hunter2", 10), "data": "/srv"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := e.Print(&b); err != nil {
		t.Fatal(err)
	}
	if contains(b.String(), "hunter2") {
		t.Errorf("a secret shows:\n%s", b.String())
	}
	var got []string
	for line := range strings.Lines(b.String()) {
		if !contains(line, "# default") && contains(line, ": ") {
			got = append(got, strings.Join(strings.Fields(line), " "))
		}
	}
	want := []string{
		"data: /srv # --data",
		"# database: postgres://u:xxxxx@h/d # FRESHET_DATABASE",
		"# password: [hidden] # FRESHET_ADMIN_PASSWORD",
		"# secret: [hidden] # --token-secret",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}
