package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"go.uber.org/goleak"

	"github.com/freshet-io/freshet"
)

var update = flag.Bool("update", false, "rewrite golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type outcome struct {
	code           int
	stdout, stderr string
}

func freshetIn(t *testing.T, env []string, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := Main(t.Context(), args, env, strings.NewReader(""), &stdout, &stderr)
	return outcome{code, stdout.String(), stderr.String()}
}

func TestHelpTexts(t *testing.T) {
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		words := strings.Fields(cmd.CommandPath())
		name := strings.Join(words, "-")
		t.Run(name, func(t *testing.T) {
			got := freshetIn(t, nil, append(words[1:], "--help")...)
			if got.code != 0 || got.stderr != "" {
				t.Errorf("exit %d, stderr %q", got.code, got.stderr)
			}
			checkGolden(t, filepath.Join("testdata", "help", name+".txt"), got.stdout)
			checkHelp(t, got.stdout)
		})
		for _, c := range cmd.Commands() {
			if !c.Hidden {
				walk(c)
			}
		}
	}
	walk(newRoot(&process{}))
}

// checkHelp holds what every help text has in common.
func checkHelp(t *testing.T, text string) {
	t.Helper()
	_, examples, _ := strings.Cut(text, "\nExamples:\n")
	examples, _, _ = strings.Cut(examples, "\n\nMain flags:")
	if n := strings.Count(examples, "  # "); n != 3 {
		t.Errorf("it has %d examples, not three", n)
	}
	for line := range strings.Lines(text) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > helpWidth {
			t.Errorf("a line of %d columns: %s", n, line)
		}
		if strings.TrimRight(line, " \n") != strings.TrimRight(line, "\n") {
			t.Errorf("spaces at the end of %q", line)
		}
	}
}

func TestHelpAndVersionInOtherSpellings(t *testing.T) {
	for a, b := range map[string]string{
		"help": "--help", "help serve": "serve --help", "help config print": "config print --help", "serve -h": "serve --help", "--version": "version",
	} {
		if got, want := freshetIn(t, nil, strings.Fields(a)...), freshetIn(t, nil, strings.Fields(b)...); got != want || got.code != 0 {
			t.Errorf("freshet %s is not freshet %s: %+v", a, b, got)
		}
	}
	if got := freshetIn(t, nil, "help", "banana"); got.code != 2 || !strings.Contains(got.stderr, "not a command") {
		t.Errorf("got %+v", got)
	}
}

func TestACommandAloneExplainsItself(t *testing.T) {
	for _, args := range [][]string{{}, {"config"}} {
		got := freshetIn(t, nil, args...)
		help := freshetIn(t, nil, append(args, "--help")...)
		if got != help || got.code != 0 {
			t.Errorf("freshet %v: %+v", args, got)
		}
	}
}

func TestMistakesGetOneLineAndAHint(t *testing.T) {
	for _, c := range []struct {
		args       string
		code       int
		line, hint string
	}{
		{"sevre", 2, `"sevre" is not a command of freshet; did you mean serve?`, "freshet --help lists the commands"},
		{"banana", 2, `"banana" is not a command of freshet`, "freshet --help lists the commands"},
		{"config prnt", 2, `"prnt" is not a command of freshet config; did you mean print?`, "freshet config --help lists the commands"},
		{"--data x", 2, "--data is a flag of freshet serve, not of freshet", "freshet --help explains it"},
		{"version --jsn", 2, "--jsn is not a flag of freshet version; did you mean --json?", "freshet version --help explains it"},
		{"version -j", 2, "-j is not a flag of freshet version", "freshet version --help explains it"},
		{"version 2", 2, `freshet version takes flags only, but got "2"`, "freshet version --help explains it"},
		{"serve now", 2, `freshet serve takes flags only, but got "now"`, "freshet serve --help explains it"},
		{"serve --data", 2, "--data needs a value, as in --data DIR", "freshet serve --help explains it"},
		{"completion", 2, "which shell? One of bash, zsh, fish, powershell", "freshet completion --help explains it"},
		{"completion bsh", 2, `"bsh" is not one of bash, zsh, fish, powershell; did you mean bash?`, "freshet completion --help explains it"},
		{"serve --nats x:4222", 2, "--nats: nats must be empty (one node alone), embedded, or URLs such as nats://user:password@host:4222,nats://other:4222", ""},
		{"config check --dta x", 2, "--dta is not a flag; did you mean --data?", ""},
		{"serve --log-level=loud", 2, `--log-level: log.level must be one of debug, info, warn, error, not "loud"`, ""},
	} {
		want := "freshet: " + c.line + "\n"
		if c.hint != "" {
			want += "hint: " + c.hint + "\n"
		}
		if diff := cmp.Diff(outcome{c.code, "", want}, freshetIn(t, nil, strings.Fields(c.args)...), cmp.AllowUnexported(outcome{})); diff != "" {
			t.Errorf("freshet %s: want (-), got (+):\n%s", c.args, diff)
		}
	}
}

func TestConfigCheckListsEverythingThatIsWrong(t *testing.T) {
	file := filepath.Join(t.TempDir(), "freshet.yaml")
	if err := os.WriteFile(file, []byte("dta: x\nlog: {level: loud}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := freshetIn(t, []string{"FRESHET_ROLS=x"}, "config", "check", "--config", file, "--signup", "maybe", "--dta", "x")
	want := outcome{2, "", `freshet: 5 problems with the settings:
  ` + file + `:1: dta is not a setting; did you mean data?
  ` + file + `:2: log.level must be one of debug, info, warn, error, not "loud"
  FRESHET_ROLS is not a setting; did you mean FRESHET_ROLES?
  --signup: signup must be one of open, admin, not "maybe"
  --dta is not a flag; did you mean --data?
`}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(outcome{})); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}

func TestConfigCheckSaysOK(t *testing.T) {
	got := freshetIn(t, []string{"FRESHET_DATA=/srv"}, "config", "check", "--roles", "publish")
	if got != (outcome{0, "ok\n", ""}) {
		t.Errorf("got %+v", got)
	}
}

func TestConfigPrintShowsWhatAppliesAndWhy(t *testing.T) {
	got := freshetIn(t, []string{"FRESHET_DATA=/srv", "FRESHET_ADMIN_PASSWORD=hunter2hunter2"}, "config", "print", "--roles", "publish", "--roles=poll", "--poller-deny-private", "true")
	for _, want := range []string{"data: /srv  ", "# FRESHET_DATA\n", "roles: [publish, poll]  ", "# --roles\n", "deny_private: true  ", "# password: [hidden]"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("%q is missing in\n%s", want, got.stdout)
		}
	}
	if first, _, _ := strings.Cut(got.stdout, "\n"); !strings.HasPrefix(first, "# ") || !strings.Contains(first, "a server that runs may have been started otherwise") {
		t.Errorf("the first line does not say whose settings these are: %s", first)
	}
	if got.code != 0 || got.stderr != "" || strings.Contains(got.stdout, "hunter2") {
		t.Errorf("got %+v", got)
	}
}

func TestVersionForPeopleAndScripts(t *testing.T) {
	if got := freshetIn(t, nil, "version"); got.code != 0 || !strings.HasPrefix(got.stdout, "freshet ") || strings.Count(got.stdout, "\n") != 1 {
		t.Errorf("got %+v", got)
	}
	got := freshetIn(t, nil, "version", "--json")
	var b build
	if err := json.Unmarshal([]byte(got.stdout), &b); err != nil || b.Version == "" || b.Go == "" || b.Platform == "" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestCompletionScriptsAreValid(t *testing.T) {
	for _, shell := range shells {
		got := freshetIn(t, nil, "completion", shell)
		if got.code != 0 || !strings.Contains(got.stdout, "freshet") || got.stderr != "" {
			t.Errorf("%s: exit %d, %s", shell, got.code, got.stderr)
		}
		path, err := exec.LookPath(shell)
		if err != nil || shell == "powershell" {
			continue
		}
		cmd := exec.Command(path, "-n")
		cmd.Stdin = strings.NewReader(got.stdout)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s refuses it: %v\n%s", shell, err, out)
		}
	}
}

func TestCompletionKnowsValues(t *testing.T) {
	for args, want := range map[string]string{
		"serve --log-format ": "text\njson\n:4\n",
		"completion b":        "bash\n:",
		"serve --gateway-li":  "--gateway-listen\t",
	} {
		words := strings.Split("__complete "+args, " ")
		if got := freshetIn(t, nil, words...); !strings.HasPrefix(got.stdout, want) {
			t.Errorf("%s: got %q", args, got.stdout)
		}
	}
}

func TestManualNamesEveryFlag(t *testing.T) {
	got := freshetIn(t, nil, "man")
	for _, want := range []string{".TH FRESHET 1", ".SS serve", `.B \-\-subscriber\-write\-timeout`, ".SS config check", ".SH EXIT STATUS"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("%q is missing", want)
		}
	}
}

func TestHealthcheckExitsWithZeroOrOne(t *testing.T) {
	for _, c := range []struct {
		name, body string
		status     int
		want       outcome
	}{
		{"ready", `{"ready":true,"phase":"serving"}`, 200, outcome{0, "ready\n", ""}},
		{"ready without its database", `{"ready":true,"phase":"serving","checks":{"store":"it is away","grid":"ok"}}`, 200, outcome{0, "ready, but store: it is away\n", ""}},
		{"draining", `{"ready":false,"phase":"draining"}`, 503, outcome{1, "", "freshet: not ready: draining\n"}},
		{"a broken dependency", `{"phase":"serving","checks":{"store":"ok","grid":"no quorum"}}`, 503, outcome{1, "", "freshet: not ready: serving; grid: no quorum\n"}},
		{"something else on the port", `<html>`, 404, outcome{1, "", "freshet: not ready: the answer was 404 Not Found\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/readyz" {
					t.Errorf("it asked for %s", r.URL.Path)
				}
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			}))
			defer srv.Close()
			address := strings.TrimPrefix(srv.URL, "http://")
			if got := freshetIn(t, []string{"FRESHET_ADMIN_LISTEN=" + address}, "healthcheck"); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestHealthcheckOfNothingExitsWithOne(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	address := strings.TrimPrefix(srv.URL, "http://")
	srv.Close()
	got := freshetIn(t, nil, "healthcheck", "--admin-listen", address)
	if got.code != 1 || !strings.HasPrefix(got.stderr, "freshet: no answer from http://"+address+"/readyz\ncause: dial ") || !strings.Contains(got.stderr, "\nhint: ") {
		t.Errorf("got %+v", got)
	}
	if got := freshetIn(t, nil, "healthcheck", "--admin-listen", "nonsense"); got.code != 1 {
		t.Errorf("bad settings: %+v", got)
	}
}

func TestAddressesToListenOnBecomeAddressesToConnectTo(t *testing.T) {
	for listen, want := range map[string]string{
		":8001": "127.0.0.1:8001", "0.0.0.0:8001": "127.0.0.1:8001", "[::]:8001": "127.0.0.1:8001",
		"10.0.0.5:8001": "10.0.0.5:8001", "[::1]:8001": "[::1]:8001", "localhost:8001": "localhost:8001",
	} {
		if got := reachable(listen); got != want {
			t.Errorf("%s is reached at %s, want %s", listen, got, want)
		}
	}
}

func TestCausesGetALineOfTheirOwn(t *testing.T) {
	cause := errors.New("dial error:\n\trefused")
	for _, c := range []struct {
		err  error
		want string
		code int
	}{
		{errors.New("plain"), "freshet: plain\n", 1},
		{fmt.Errorf("outer: %w", freshet.Errorf(freshet.NotFound, "gone")), "freshet: outer: gone\n", 4},
		{freshet.Wrap(freshet.Unavailable, cause, "no database"), "freshet: no database\ncause: dial error: refused\n", 6},
		{&failure{error: freshet.Wrap(freshet.Timeout, cause, "late"), hint: "wait", code: 9}, "freshet: late\ncause: dial error: refused\nhint: wait\n", 9},
	} {
		var b strings.Builder
		if code := report(&b, c.err); code != c.code || b.String() != c.want {
			t.Errorf("%v: exit %d and\n%s", c.err, code, b.String())
		}
	}
}

func TestEveryKindHasAnExitCode(t *testing.T) {
	for _, k := range freshet.Kinds() {
		if exitCodes[k] == 0 {
			t.Errorf("kind %d has none", k)
		}
	}
	if exitCodes[freshet.Invalid] != 2 || exitCodes[freshet.Internal] != 1 {
		t.Error("2 is for usage and settings, 1 for what nobody expected")
	}
}

func TestTheSecondSignalExitsAtOnce(t *testing.T) {
	signals, exited := make(chan os.Signal, 2), make(chan int, 1)
	ctx := CancelOnSignal(context.Background(), signals, func(code int) { exited <- code })
	if ctx.Err() != nil {
		t.Error("cancelled before any signal")
	}
	signals <- syscall.SIGTERM
	<-ctx.Done()
	select {
	case <-exited:
		t.Error("the first signal made it exit")
	default:
	}
	signals <- syscall.SIGINT
	select {
	case code := <-exited:
		if code != 130 {
			t.Errorf("exit code %d", code)
		}
	case <-time.After(time.Minute):
		t.Error("it did not exit")
	}
}

func TestWordsAfterAFlagAreItsValue(t *testing.T) {
	cmd := newServe(&process{})
	for args, want := range map[string]string{
		"serve --data --nope":      "",
		"serve --data=x --nope":    "--nope",
		"serve --nope=1 -y --data": "--nope -y",
		"serve --help --nope":      "--nope",
		"serve -- --nope":          "",
		"serve - --nope":           "--nope",
	} {
		cmd.InitDefaultHelpFlag()
		if got := strings.Join(unknownFlags(cmd.Flags(), strings.Fields(args)), " "); got != want {
			t.Errorf("%s: unknown are %q, want %q", args, got, want)
		}
	}
}

func checkGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("want (-), got (+); -update rewrites %s:\n%s", path, diff)
	}
}
