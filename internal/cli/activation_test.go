package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// newKey makes an issuer in a directory of the test and one key of it.
func newKey(t *testing.T, flags ...string) (publicKey, key string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "issuer.pem")
	made := freshetIn(t, nil, "activation", "keygen", "--out", file)
	issued := freshetIn(t, nil, append([]string{"activation", "issue", "--private-key", file, "--holder", "Ada"}, flags...)...)
	if made.code != 0 || issued.code != 0 {
		t.Fatalf("keygen: %+v, issue: %+v", made, issued)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the private key has mode %v, %v", info.Mode(), err)
	}
	return strings.TrimSpace(made.stdout), strings.TrimSpace(issued.stdout)
}

func TestInspectShowsWhatAKeySaysAndWhetherItIsGood(t *testing.T) {
	public, key := newKey(t, "--expires", "2099-12-31", "--connections", "7", "--edition", "team")
	env := []string{"FRESHET_ACTIVATION_PUBLIC_KEY=" + public}
	for _, got := range []outcome{
		freshetIn(t, env, "activation", "inspect", key),
		freshetIn(t, append(env, "FRESHET_ACTIVATION_KEY="+key), "activation", "inspect"),
	} {
		if got.code != 0 || !strings.Contains(got.stdout, "Ada") || !strings.Contains(got.stdout, "2100-01-01T00:00:00Z") || !strings.Contains(got.stdout, "7 at once") {
			t.Errorf("got %+v", got)
		}
	}
	var read struct {
		Holder, Edition string
		Good            bool
		Limits          struct{ Connections int }
	}
	got := freshetIn(t, env, "activation", "inspect", "--json", key)
	if err := json.Unmarshal([]byte(got.stdout), &read); err != nil || !read.Good || read.Edition != "team" || read.Limits.Connections != 7 {
		t.Errorf("got %+v, %v", got, err)
	}
	if got := freshetIn(t, nil, "activation", "inspect", key); got.code != 3 || !strings.Contains(got.stdout, "Good now     no") || !strings.Contains(got.stderr, "not trusted here") {
		t.Errorf("with the project's issuer: %+v", got)
	}
}

func TestMistakesWithActivationKeysAreExplained(t *testing.T) {
	dir := t.TempDir()
	issuer, other := filepath.Join(dir, "issuer.pem"), filepath.Join(dir, "other.pem")
	if got := freshetIn(t, nil, "activation", "keygen", "--out", issuer); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	if err := os.WriteFile(other, []byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"keygen":                                "--out is needed",
		"keygen --out " + issuer:                "exists; keys are never overwritten",
		"issue --holder H --expires 2099-01-01": "--private-key, --holder and --expires are needed",
		"issue --private-key " + other + " --holder H --expires 2099-01-01":              "holds no Ed25519 private key",
		"issue --private-key " + dir + "/none --holder H --expires 2099-01-01":           "cannot be read",
		"issue --private-key " + issuer + " --holder H --expires tomorrow":               "--expires must be a day such as",
		"issue --private-key " + issuer + " --holder H --expires 2020-01-01":             "expires must be after",
		"issue --private-key " + issuer + " --holder H --expires 2099-01-01 --from x":    "--from must be a day such as",
		"issue --private-key " + issuer + " --holder H --expires 2099-01-01 --edition X": "edition must begin with a letter",
		"inspect":          "there is no activation key",
		"inspect a b":      "one key at a time",
		"inspect nonsense": "This is no activation key",
	} {
		if got := freshetIn(t, nil, append([]string{"activation"}, strings.Fields(args)...)...); got.code == 0 || !strings.Contains(got.stderr, want) {
			t.Errorf("freshet activation %s: %+v", args, got)
		}
	}
}
