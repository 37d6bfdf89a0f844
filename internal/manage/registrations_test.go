package manage

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite golden files")

// settled replaces what differs from run to run, and the one of two spellings of a character.
func settled(body string) string {
	for _, r := range []struct{ pattern, by string }{
		{`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`, "ID"},
		{`"created_at":\d{13}`, `"created_at":MS`},
		{`"key":"[A-Za-z0-9]{48}"`, `"key":"KEY"`},
	} {
		body = regexp.MustCompile(r.pattern).ReplaceAllString(body, r.by)
	}
	return strings.NewReplacer(`\u0026`, "&", `\u003c`, "<", `\u003e`, ">").Replace(strings.TrimSuffix(body, "\n"))
}

// TestWhatAdminsRegisterIsAnsweredWordForWord runs a script of calls: "> METHOD PATH BODY", then the answer, then "= name" to call
// the identifier in it by {name}.
func TestWhatAdminsRegisterIsAnsweredWordForWord(t *testing.T) {
	t.Parallel()
	const file = "testdata/registrations.txt"
	script, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	admin := serve(t).admin()
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
		path, text, _ := strings.Cut(rest, " ")
		var body any
		if text != "" {
			body = text
		}
		a := admin.call(method, gatewayPath+path, body)
		last = string(a.body)
		out += fmt.Sprintf("%s\n%d %s\n", line, a.status, settled(last))
	}
	if *update {
		if err := os.WriteFile(file, []byte(out), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	compare(t, string(script), out)
}

func compare(t *testing.T, want, got string) {
	t.Helper()
	wanted, gotten := strings.Split(want, "\n"), strings.Split(got, "\n")
	if len(wanted) != len(gotten) {
		t.Fatalf("%d lines, want %d", len(gotten), len(wanted))
	}
	for i := range wanted {
		if wanted[i] != gotten[i] {
			t.Errorf("after %s\n got %s\nwant %s", wanted[max(0, i-1)], gotten[i], wanted[i])
		}
	}
}

// registerOne has an admin register one of everything, and returns what puts their identifiers into a path.
func registerOne(admin *client) *strings.Replacer {
	api := admin.call("POST", gatewayPath+"/apis", `{"request_path":"/prices","upstream_url":"http://x.example"}`).want(201).text("id")
	plugin := admin.call("POST", gatewayPath+"/apis/"+api+"/plugins", `{"name":"cors"}`).want(201).text("id")
	consumer := admin.call("POST", gatewayPath+"/consumers", `{"username":"partner"}`).want(201).text("id")
	key := admin.call("POST", gatewayPath+"/consumers/partner/key-auth", `{}`).want(201).text("id")
	return strings.NewReplacer("{api}", api, "{plugin}", plugin, "{consumer}", consumer, "{key}", key)
}
