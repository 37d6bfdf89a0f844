package settings

import (
	"bytes"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEveryDefaultIsValidAndReadsBackAsItself(t *testing.T) {
	for _, e := range Entries() {
		var s Settings
		if err := e.set(&s, e.Default); err != nil {
			t.Errorf("%s: default %q is refused: %v", e.Key, e.Default, err)
		}
		if got := e.get(&s); got != e.Default {
			t.Errorf("%s: default %q reads back as %q", e.Key, e.Default, got)
		}
	}
}

func TestNamesFollowFromTheKey(t *testing.T) {
	for key, want := range map[string][2]string{
		"data":                     {"data", "FRESHET_DATA"},
		"subscriber.listen":        {"subscriber-listen", "FRESHET_SUBSCRIBER_LISTEN"},
		"subscriber.write_timeout": {"subscriber-write-timeout", "FRESHET_SUBSCRIBER_WRITE_TIMEOUT"},
		"log.format":               {"log-format", "FRESHET_LOG_FORMAT"},
		"admin.password":           {"admin-password", "FRESHET_ADMIN_PASSWORD"},
		"token.secret":             {"token-secret", "FRESHET_TOKEN_SECRET"},
	} {
		e := entry(key)
		if e == nil {
			t.Errorf("%s is not in the table", key)
			continue
		}
		if got := [2]string{e.Flag(), e.Variable()}; got != want {
			t.Errorf("%s is called %v, want %v", key, got, want)
		}
	}
}

func TestTheTableIsInOrder(t *testing.T) {
	seen := map[string]bool{}
	last := ""
	for _, e := range Entries() {
		for _, name := range []string{"key " + e.Key, "flag " + e.Flag(), "variable " + e.Variable()} {
			if seen[name] {
				t.Errorf("%s appears twice", name)
			}
			seen[name] = true
		}
		group, _, nested := strings.Cut(e.Key, ".")
		if nested && group != last && seen["group "+group] {
			t.Errorf("%s is apart from the rest of its group", e.Key)
		}
		if nested {
			seen["group "+group] = true
		}
		last = group
		if strings.HasSuffix(e.Help, ".") || strings.Contains(e.Help, "default") || e.Help == "" {
			t.Errorf("%s: help must be a sentence without full stop and default: %q", e.Key, e.Help)
		}
	}
}

func TestEveryFieldOfSettingsHasOneEntry(t *testing.T) {
	fields := 0
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		for i := range typ.NumField() {
			if f := typ.Field(i).Type; f.Kind() == reflect.Struct && f.Name() == "" {
				walk(f)
			} else {
				fields++
			}
		}
	}
	walk(reflect.TypeFor[Settings]())
	if fields != len(table) {
		t.Errorf("Settings has %d fields, the table %d entries", fields, len(table))
	}
}

var update = flag.Bool("update", false, "rewrite generated files")

const referencePage = "../../docs/settings.md"

func TestReferencePageIsUpToDate(t *testing.T) {
	var b bytes.Buffer
	if err := Reference(&b); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(referencePage, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(referencePage)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(page), b.String()); diff != "" {
		t.Errorf("docs/settings.md is stale; -update rewrites it. Page (-), table (+):\n%s", diff)
	}
}

func TestReferenceNamesEverySetting(t *testing.T) {
	var b strings.Builder
	if err := Reference(&b); err != nil {
		t.Fatal(err)
	}
	for _, e := range Entries() {
		for _, name := range []string{"`" + e.Key + "`", "`--" + e.Flag() + "`", "`" + e.Variable() + "`"} {
			if !strings.Contains(b.String(), name) {
				t.Errorf("the reference does not mention %s", name)
			}
		}
	}
}
