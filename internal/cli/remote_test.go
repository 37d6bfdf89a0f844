package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/client"
	"github.com/freshet-io/freshet/internal/subscribe"
)

func TestEveryFinalErrorOfAStreamHasAnExitCodeOfItsOwn(t *testing.T) {
	for _, code := range subscribe.Codes() {
		err := told(&client.StreamError{Code: code.Number, Message: "No"})
		if kind := freshet.KindOf(err); kind != code.Kind || code.Final && exitCodes[kind] == exitCodes[freshet.Internal] {
			t.Errorf("%d: kind %d, exit code %d", code.Number, kind, exitCodes[kind])
		}
	}
}

func TestFlagsWinOverVariablesWinOverTheContext(t *testing.T) {
	file := filepath.Join(t.TempDir(), "contexts.json")
	text := `{"current":"one","contexts":{
		"one":{"server":"http://one:8000","token":"token-1"},
		"two":{"server":"http://two:8000","subscriber":"http://stream.two","token":"token-2"}}}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		flags remote
		env   []string
		want  host
	}{
		{"the current context", remote{}, nil, host{Server: "http://one:8000", Token: "token-1"}},
		{"a context by flag", remote{context: "two"}, []string{"FRESHET_CLI_CONTEXT=one"}, host{Server: "http://two:8000", Subscriber: "http://stream.two", Token: "token-2"}},
		{"a context by variable", remote{}, []string{"FRESHET_CLI_CONTEXT=two"}, host{Server: "http://two:8000", Subscriber: "http://stream.two", Token: "token-2"}},
		{"a server that has a context", remote{server: "http://two:8000/"}, nil, host{Server: "http://two:8000", Subscriber: "http://stream.two", Token: "token-2"}},
		{"a token is for its server only", remote{server: "http://three"}, nil, host{Server: "http://three"}},
		{"and not for another of the same context", remote{context: "one", server: "http://three"}, nil, host{Server: "http://three"}},
		{"a token by variable", remote{server: "http://three"}, []string{"FRESHET_CLI_TOKEN=t"}, host{Server: "http://three", Token: "t"}},
		{"a token by flag", remote{token: "f"}, []string{"FRESHET_CLI_TOKEN=t"}, host{Server: "http://one:8000", Token: "f"}},
	} {
		c.flags.p = &process{env: append(c.env, configVariable+"="+file)}
		if got, err := c.flags.resolve(); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
	if _, err := (&remote{p: &process{env: []string{configVariable + "=" + file}}, context: "tow"}).resolve(); err == nil || !strings.Contains(err.Error(), "did you mean two?") {
		t.Errorf("a typing error: %v", err)
	}
}

func TestABrokenFileOfContextsIsNotQuoted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "contexts.json")
	if err := os.WriteFile(file, []byte(`{"contexts":{"one":{"token":"secret-token","server":7}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	got := freshetIn(t, []string{configVariable + "=" + file}, "apps", "list")
	if got.code != 2 || strings.Contains(got.stderr, "secret-token") || !strings.Contains(got.stderr, "is not a file of contexts") {
		t.Errorf("got %+v", got)
	}
}

func TestServeIgnoresVariablesOfTheCommandLine(t *testing.T) {
	if got := freshetIn(t, []string{"FRESHET_CLI_TOKEN=x"}, "config", "check"); got.code != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestAnExplanationIsSentences(t *testing.T) {
	for answer, want := range map[string]string{
		`{"topic":"0198","reasons":[]}`: "Topic    Paris\nVerdict  everything is as it should be; what is published now arrives\n",
		`{"topic":"0198","version":"e-4","reasons":[{"code":"identical","message":"They said the same","count":3},{"code":"new_one","message":"And so on"}]}`: "Topic      Paris\nNewest     e-4\nPublished\nBecause    They said the same (3 times)\n           And so on\n",
	} {
		var e explanation
		var got strings.Builder
		if err := json.Unmarshal([]byte(answer), &e); err != nil {
			t.Fatal(err)
		}
		if err := e.write(&got, "Paris"); err != nil || got.String() != want {
			t.Errorf("%v\n%q, want\n%q", err, got.String(), want)
		}
	}
}

// A command that cannot reach one of a server's addresses names the flag of that one.
func TestAHintNamesTheFlagOfTheAddressThatDoesNotAnswer(t *testing.T) {
	const nobody = "http://127.0.0.1:1"
	env := []string{configVariable + "=" + filepath.Join(t.TempDir(), "contexts.json")}
	for flag, args := range map[string][]string{
		"--server":     {"apps", "list", "--token", "x", "--server", nobody},
		"--subscriber": {"tail", freshet.NewID(), "--key", "k", "--subscriber", nobody},
		"--admin":      {"gateway", "apis", "list", "--admin", nobody},
	} {
		got := freshetIn(t, env, args...)
		if got.code != 6 || !strings.HasPrefix(got.stderr, "freshet: no answer from "+nobody) || !strings.Contains(got.stderr, "hint: is the server running? "+flag+" names another") {
			t.Errorf("%v: %+v", args, got)
		}
	}
}
