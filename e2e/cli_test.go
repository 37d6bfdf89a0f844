package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// shell is a command line of somebody who uses one server.
type shell struct {
	t    *testing.T
	home string
	env  []string
}

func newShell(t *testing.T, p *process) *shell {
	t.Helper()
	home := t.TempDir()
	return &shell{t: t, home: home, env: []string{"HOME=" + home, "FRESHET_CLI_SERVER=http://" + p.Gateway,
		"FRESHET_CLI_SUBSCRIBER=http://" + p.Subscriber, "FRESHET_CLI_ADMIN=http://" + p.Admin}}
}

func (d *shell) command(args ...string) *exec.Cmd {
	d.t.Helper()
	cmd := command(d.t, args...)
	cmd.Env = append(cmd.Env, d.env...)
	return cmd
}

// run runs a command line with something on its stdin.
func (d *shell) run(stdin string, args ...string) result {
	d.t.Helper()
	cmd := d.command(args...)
	cmd.Stdin = strings.NewReader(stdin)
	return runToEnd(d.t, cmd)
}

// must returns what a command prints, if it does what it should.
func (d *shell) must(stdin string, args ...string) string {
	d.t.Helper()
	got := d.run(stdin, args...)
	if got.code != 0 {
		d.t.Fatalf("freshet %s: exit %d\n%s", strings.Join(args, " "), got.code, got.stderr)
	}
	return got.stdout
}

func (d *shell) mustJSON(out any, args ...string) {
	d.t.Helper()
	text := d.must("", append(args, "-o", "json")...)
	if err := json.Unmarshal([]byte(text), out); err != nil {
		d.t.Fatalf("freshet %s: %v in %s", strings.Join(args, " "), err, text)
	}
}

// signedIn is a shell whose user is the admin.
func signedIn(t *testing.T, p *process) *shell {
	t.Helper()
	d := newShell(t, p)
	d.must("freshet-admin\n", "login", "--email", "admin@freshet.local", "--password-stdin")
	return d
}

func TestADayAtTheCommandLine(t *testing.T) {
	p := start(t)
	d := signedIn(t, p)
	var app, topic, changed struct{ ID, Name string }
	d.mustJSON(&app, "apps", "create", "Quotes")
	d.mustJSON(&topic, "topics", "create", "Quotes", "Paris")
	d.mustJSON(&changed, "topics", "update", "Quotes/Paris", "--name", "Lyon")
	if changed.ID != topic.ID || changed.Name != "Lyon" {
		t.Errorf("updating answers %+v", changed)
	}
	version := d.must(`{"ACME":101.50}`, "publish", "Lyon")
	d.must(`[{"op":"add","path":"/INIT","value":47}]`, "publish", topic.ID, "--patch", "--if-match", strings.TrimSpace(version))
	if got := d.must("", "topics", "document", "Lyon"); got != `{"ACME":101.50,"INIT":47}`+"\n" {
		t.Errorf("the document is %s", got)
	}
	if got := d.run(`{}`, "publish", "Lyon", "--merge", "--if-match", strings.TrimSpace(version)); got.code != 5 {
		t.Errorf("a lost race: %+v", got)
	}
	d.must("{\"n\":1}\n\n{\"n\":2}\n", "publish", "Lyon", "--lines")
	if got := d.must("", "explain", "Lyon"); !strings.Contains(got, "Topic") || !strings.Contains(got, "Newest") || !regexp.MustCompile(`Followed by +nobody`).MatchString(got) {
		t.Errorf("explain says %s", got)
	}
	live, err := http.Get("http://" + p.Subscriber + "/v1/topics/" + topic.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer live.Body.Close()
	var connections struct{ Items []struct{ ID string } }
	signIn(t, p).must(http.StatusOK, "GET", "/api/v1/admin/connections", nil, &connections)
	if got := d.must("", "explain", connections.Items[0].ID); !strings.Contains(got, topic.ID) || !strings.Contains(got, "Connected") || !strings.Contains(got, "From") ||
		!regexp.MustCompile(`Followed by +1 subscriber\n`).MatchString(got) {
		t.Errorf("explain says of a connection: %s", got)
	}
	for flag, want := range map[string]string{
		"--json":    `{"n":2}` + "\n",
		"--patches": `[{"op":"replace","path":"","value":{"n":2}}]` + "\n",
	} {
		if got := d.must("", "tail", "Lyon", "-n", "1", flag); got != want {
			t.Errorf("tail %s prints %q", flag, got)
		}
	}
	if got := d.must("", "tail", "Lyon", "-n", "1", "--raw"); !strings.Contains(got, `data: {"n":2}`+"\n") {
		t.Errorf("tail --raw prints %q", got)
	}
	if got := d.must("", "topics", "list"); !strings.Contains(got, "Quotes") || !strings.Contains(got, "Lyon") || !strings.HasPrefix(got, "ID ") {
		t.Errorf("the list is %s", got)
	}
	before := strings.TrimSpace(d.must("", "keys", "show", "Quotes", "subscriber"))
	after := strings.TrimSpace(d.must("", "keys", "renew", "Quotes", "subscriber", "--overlap", "1h"))
	if before == after || len(after) != 48 {
		t.Errorf("renewing gives %q after %q", after, before)
	}
	d.must("", "topics", "delete", "Lyon", "--yes")
	d.must("", "apps", "delete", app.ID, "--yes")
	d.must("", "logout")
	if got := d.run("", "apps", "list"); got.code != 3 || !strings.Contains(got.stderr, "hint: freshet login") {
		t.Errorf("after logging out: %+v", got)
	}
}

func TestOnesOwnPasswordIsChangedWithTheCurrentOneAtTheCommandLine(t *testing.T) {
	d := signedIn(t, start(t))
	for stdin, want := range map[string]struct {
		code   int
		stderr string
	}{
		"":                                    {2, "there is no password on stdin"},
		"wrong password\nanother password\n":  {3, "The current password is wrong"},
		"freshet-admin\nshort\n":              {2, "must have at least 8 characters"},
		"freshet-admin\nanother password\r\n": {0, ""},
	} {
		d := signedIn(t, start(t))
		got := d.run(stdin, "users", "update", "me", "--current-password-stdin", "--password-stdin")
		if got.code != want.code || !strings.Contains(got.stderr, want.stderr) || strings.Contains(got.stderr, "freshet login") {
			t.Errorf("%q: %+v", stdin, got)
		}
		if want.code == 0 {
			d.must("another password", "login", "--email", "admin@freshet.local", "--password-stdin")
		}
	}
	if got := d.run("", "users", "update", "me", "--email", "root@example.com"); got.code != 2 || !strings.Contains(got.stderr, "--current-password-stdin") {
		t.Errorf("nobody to ask: %+v", got)
	}
	d.must("freshet-admin\n", "users", "update", "me", "--email", "root@example.com", "--current-password-stdin")
	if got := d.run("short\n", "users", "update", "me", "--password-stdin"); got.code != 2 || !strings.Contains(got.stderr, "at least 8 characters") {
		t.Errorf("a short one: %+v", got)
	}
	d.must("", "users", "update", "me", "--last-name", "King")
}

func TestContextsAreKeptForTheirOwnerOnly(t *testing.T) {
	d := signedIn(t, start(t))
	file := filepath.Join(d.home, ".config", "freshet", "contexts.json")
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("others may read it: %v", info.Mode())
	}
	token := strings.TrimSpace(d.must("", "context", "show", "--show-token"))
	for _, args := range [][]string{{"context", "show"}, {"context", "list"}, {"context", "list", "-o", "json"}} {
		if got := d.must("", args...); strings.Contains(got, token) || token == "" {
			t.Errorf("freshet %v shows the token", args)
		}
	}
	other := start(t)
	elsewhere := []string{"--server", "http://" + other.Gateway, "--subscriber", "http://" + other.Subscriber, "--admin", "http://" + other.Admin}
	d.must("freshet-admin", append([]string{"login", "--email", "admin@freshet.local", "--password-stdin", "--context", "other"}, elsewhere...)...)
	var all []struct {
		Name    string
		Current bool
	}
	d.mustJSON(&all, "context", "list")
	if len(all) != 2 || all[0].Current == all[1].Current {
		t.Errorf("contexts: %+v", all)
	}
	d.env = []string{"HOME=" + d.home}
	d.must("", "apps", "create", "Over there")
	if got := d.must("", "apps", "list", "--context", "other"); !strings.Contains(got, "Over there") {
		t.Errorf("the new context was not used:\n%s", got)
	}
	if got := d.run("", "context", "use", "othr"); got.code != 4 || !strings.Contains(got.stderr, "did you mean other?") {
		t.Errorf("a typing error: %+v", got)
	}
	d.must("", "context", "delete", "other")
}

func TestMistakesAtTheCommandLineSayWhatToDo(t *testing.T) {
	p := start(t)
	d := signedIn(t, p)
	d.must("", "apps", "create", "Quotes")
	d.must("", "topics", "create", "Quotes", "Paris")
	d.must("", "topics", "create", "Quotes", "Paris")
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"topics show Nowhere", 4, `you have no topic "Nowhere"`},
		{"topics show Paris", 2, "is the name of several topics"},
		{"apps create Quotes", 5, "name is taken"},
		{"topics create Quotes", 2, "needs NAME"},
		{"topics create Quotes Poll --poll nonsense", 2, "publisher.config.url"},
		{"keys show Quotes private", 2, "is not a kind of key"},
		{"tail 0198c5f2-7d6e-7a10-8c3e-2f5b8e1d4a77", 4, "(40401)"},
		{"tail x --raw --json", 2, "choose one"},
		{"apps list -o yaml", 2, "--output must be table or json"},
		{"apps delete Quotes", 2, "--yes does it without asking"},
		{"apps list --server http://127.0.0.1:1 --token x", 6, "no answer from http://127.0.0.1:1"},
		{"apps list --server nonsense --token x", 2, "--server must look like"},
		{"publish 0198c5f2-7d6e-7a10-8c3e-2f5b8e1d4a77 /nowhere --key 0123456789abcdef", 4, "cannot be read"},
		{"login --email admin@freshet.local --password-stdin", 3, "refuses this e-mail and password"},
	} {
		got := d.run("wrong", strings.Fields(c.args)...)
		if got.code != c.code || !strings.Contains(got.stderr, c.want) || !strings.HasPrefix(got.stderr, "freshet: ") || got.stdout != "" {
			t.Errorf("freshet %s: %+v\nwant %d and %q", c.args, got, c.code, c.want)
		}
	}
}

func TestCompletionKnowsTopicsOfTheServer(t *testing.T) {
	d := signedIn(t, start(t))
	d.must("", "apps", "create", "Quotes")
	var topic struct{ ID string }
	d.mustJSON(&topic, "topics", "create", "Quotes", "Paris")
	if got := d.must("", "__complete", "tail", ""); !strings.HasPrefix(got, topic.ID+"\tQuotes/Paris\n") {
		t.Errorf("tail offers %q", got)
	}
	if got := d.must("", "__complete", "keys", "show", ""); !strings.HasPrefix(got, "Quotes\n") {
		t.Errorf("keys show offers %q", got)
	}
}

func TestTailSurvivesARestart(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	p := start(t, "--data", data)
	d := signedIn(t, p)
	d.must("", "apps", "create", "Quotes")
	d.must("", "topics", "create", "Quotes", "Paris")
	d.must("1", "publish", "Paris")
	cmd := d.command("tail", "Paris", "-n", "2")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 2)
	if _, err := io.ReadFull(out, line); err != nil || string(line) != "1\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	p.Stop()
	again := start(t, "--data", data, "--gateway-listen", p.Gateway, "--subscriber-listen", p.Subscriber, "--admin-listen", p.Admin)
	_ = again
	d.must("2", "publish", "Paris")
	if _, err := io.ReadFull(out, line); err != nil || string(line) != "2\n" {
		t.Errorf("got %q, %v", line, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func TestBenchMeasuresAndCleansUp(t *testing.T) {
	t.Parallel()
	d := signedIn(t, start(t))
	var report struct {
		Published, Delivered, Merged int64
		Complete                     bool
		LatencyMs                    struct{ P50, P99 float64 } `json:"latency_ms"`
	}
	d.mustJSON(&report, "bench", "--subscribers", "5", "--rate", "20", "--duration", "1s")
	if report.Published != 20 || report.Delivered+report.Merged != 100 || !report.Complete || report.LatencyMs.P99 < report.LatencyMs.P50 || report.LatencyMs.P50 <= 0 {
		t.Errorf("got %+v", report)
	}
	if got := d.must("", "bench", "--subscribers", "2", "--rate", "10", "--duration", "500ms"); !strings.Contains(got, "p99.9") || !strings.Contains(got, "█") {
		t.Errorf("got %s", got)
	}
	// Nobody there is said at once, not after all subscribers have tried for half a minute.
	if got := d.run("", "bench", "--subscribers", "2", "--subscriber", "http://127.0.0.1:1"); got.code != 6 || !strings.Contains(got.stderr, "--subscriber names another") {
		t.Errorf("got %+v", got)
	}
	var apps []any
	if d.mustJSON(&apps, "apps", "list"); len(apps) != 0 {
		t.Errorf("it left %v behind", apps)
	}
}

// watch reads from a terminal until it shows a text.
func watch(t *testing.T, terminal *os.File, seen *bytes.Buffer, want string) {
	t.Helper()
	if err := terminal.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	for buf := make([]byte, 4096); !strings.Contains(seen.String(), want); {
		n, err := terminal.Read(buf)
		if err != nil {
			t.Fatalf("%v before %q in\n%q", err, want, seen.String())
		}
		seen.Write(buf[:n])
	}
}

func TestTheTerminalShowsTheDocumentAndWhatChanged(t *testing.T) {
	d := signedIn(t, start(t))
	d.must("", "apps", "create", "Quotes")
	d.must("", "topics", "create", "Quotes", "Paris")
	d.must(`{"ACME":101,"evil":"\u009b31m"}`, "publish", "Paris")
	inside, outside := openTerminal(t)
	cmd := d.command("tail", "Paris")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = inside, inside, inside
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	var seen bytes.Buffer
	watch(t, outside, &seen, `"ACME": 101`)
	if !strings.Contains(seen.String(), "\x1b[?1049h") {
		t.Errorf("it did not take a screen of its own: %q", seen.String())
	}
	d.must(`{"ACME":102,"evil":"\u009b31m"}`, "publish", "Paris")
	watch(t, outside, &seen, "\x1b[7m102\x1b[0m")
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	watch(t, outside, &seen, "\x1b[?1049l")
	if err := cmd.Wait(); err != nil {
		t.Errorf("Ctrl-C: %v", err)
	}
}

func TestThePasswordIsNotShownWhileItIsTyped(t *testing.T) {
	d := newShell(t, start(t))
	inside, outside := openTerminal(t)
	cmd := d.command("login")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = inside, inside, inside
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	var seen bytes.Buffer
	watch(t, outside, &seen, "E-mail: ")
	io.WriteString(outside, "admin@freshet.local\n")
	watch(t, outside, &seen, "Password: ")
	io.WriteString(outside, "freshet-admin\n")
	watch(t, outside, &seen, "Signed in to")
	if err := cmd.Wait(); err != nil || strings.Contains(seen.String(), "freshet-admin") {
		t.Errorf("%v\n%q", err, seen.String())
	}
}
