package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// page is a page of documentation whose commands a newcomer types.
type page struct {
	t          *testing.T
	path       string
	blocks     []string          // of shell commands
	addresses  map[string]string // what stands in the page, and what it is here
	skip       *regexp.Regexp    // blocks that start a server, which the test has started
	dir        string            // where the commands run; freshet is there
	home       string
	additional []string // variables
	before     string   // commands that the page takes for typed
	events     int      // how many of them a stream is watched for
}

// watching runs a command that has no end until it has shown so many events or documents, or ended by itself.
const watching = `watching() {
	local want=$1 shown pid; shift
	shown=$(mktemp); "$@" > "$shown" 2>&1 & pid=$!
	for i in $(seq 600); do
		[ "$(grep -cE '^(data: |[[{])' "$shown")" -lt "$want" ] && kill -0 $pid 2>/dev/null || break
		sleep 0.1
	done
	if kill $pid 2>/dev/null; then wait $pid || true; else wait $pid || { cat "$shown"; return 1; }; fi
	cat "$shown"; rm "$shown"
}
`

var (
	shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")
	startsOne  = regexp.MustCompile(`git clone|freshet (serve|demo)|make test`)
	endless    = regexp.MustCompile(`(?m)^((?:\./)?(?:curl -N|freshet tail) (?:'[^'\n]*'|"[^"\n]*"|[^|&>'"\n])*)$`) // and not part of something longer
)

func openPage(t *testing.T, path string, addresses map[string]string) *page {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p := &page{t: t, path: path, addresses: addresses, skip: startsOne, dir: t.TempDir(), home: t.TempDir(), events: 1}
	for _, block := range shellBlock.FindAllStringSubmatch(string(text), -1) {
		p.blocks = append(p.blocks, block[1])
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(p.dir, "freshet"), "#!/bin/sh\n"+beFreshet+"=1 exec "+self+" \"$@\"\n")
	if err := os.Chmod(filepath.Join(p.dir, "freshet"), 0o755); err != nil {
		t.Fatal(err)
	}
	return p
}

// follow types everything, in one shell, and returns what was shown.
func (p *page) follow() string {
	p.t.Helper()
	var script strings.Builder
	script.WriteString("set -eu -o pipefail\n" + watching + p.before)
	typed := 0
	for _, block := range p.blocks {
		if !p.skip.MatchString(block) {
			script.WriteString(block + "\n")
			typed++
		}
	}
	if typed == 0 {
		p.t.Fatalf("there is nothing to type in %s", p.path)
	}
	commands := script.String()
	for from, to := range p.addresses {
		commands = strings.ReplaceAll(commands, from, to)
	}
	commands = endless.ReplaceAllString(commands, fmt.Sprintf("watching %d $1", p.events))
	commands = strings.ReplaceAll(commands, "curl ", "curl -fsS ")
	bash := exec.CommandContext(p.t.Context(), "bash", "-c", commands)
	bash.Dir = p.dir
	bash.Env = append([]string{"PATH=" + p.dir + ":" + os.Getenv("PATH"), "HOME=" + p.home, "GORACE=atexit_sleep_ms=0"}, p.additional...)
	out, err := bash.CombinedOutput()
	if err != nil {
		p.t.Fatalf("%s: %v\n%s\n%s", p.path, err, commands, out)
	}
	return string(out)
}

func (p *page) mustShow(out string, texts ...string) {
	p.t.Helper()
	for _, want := range texts {
		if !strings.Contains(out, want) {
			p.t.Errorf("following %s did not show %s:\n%s", p.path, want, out)
		}
	}
}

// addressesOf replaces the usual addresses by those of a server.
func addressesOf(p *process) map[string]string {
	return map[string]string{"localhost:8000": p.Gateway, "localhost:6080": p.Subscriber, "localhost:8001": p.Admin}
}

// variablesOf tells the command line what the page takes for granted.
func variablesOf(p *process) []string {
	return []string{"FRESHET_CLI_SERVER=http://" + p.Gateway, "FRESHET_CLI_SUBSCRIBER=http://" + p.Subscriber, "FRESHET_CLI_ADMIN=http://" + p.Admin,
		"FRESHET_ADMIN_LISTEN=" + p.Admin}
}

func TestTheReadmeIsTrue(t *testing.T) {
	t.Parallel()
	p := openPage(t, "../README.md", addressesOf(start(t)))
	p.mustShow(p.follow(), `"subscriber_key"`, "event: snapshot", `data: {"ACME":101.5,"INIT":47}`, `data: {"ready":true`, `"key":"adas-own-key"`)
}

func TestTheQuickStartForFrontEndsIsTrue(t *testing.T) {
	t.Parallel()
	d := startDemo(t)
	bare := func(url string) string { return strings.TrimPrefix(url, "http://") }
	p := openPage(t, "../docs/quickstart-frontend.md", map[string]string{
		"localhost:7070": bare(d.Pages), "localhost:6080": bare(d.Subscriber),
	})
	p.events = 2 // data there never rests
	p.mustShow(p.follow(), `"subscriber_key"`, "event: snapshot", `"symbol":"ACME"`, "event: patch", `"id":"s1"`)
}

func TestTheQuickStartForBackendsIsTrue(t *testing.T) {
	t.Parallel()
	server := start(t)
	p := openPage(t, "../docs/quickstart-backend.md", addressesOf(server))
	p.additional = variablesOf(server)
	p.mustShow(p.follow(), `{"ACME":101.5,"INIT":47}`, "204 No Content", `[{"symbol":"ACME","price":102},{"symbol":"INIT","price":47}]`)
}

func TestTheQuickStartForOperatorsIsTrue(t *testing.T) {
	t.Parallel()
	cmd := command(t, serveArgs("--environment", "production")...)
	cmd.Env = append(cmd.Env, "FRESHET_ADMIN_PASSWORD=a better one")
	server := launch(t, cmd)
	server.addresses(server.Await("ready"))
	p := openPage(t, "../docs/quickstart-operator.md", addressesOf(server))
	p.additional = variablesOf(server)
	p.mustShow(p.follow(), "ready", "freshet_build_info", "environment: development", "Everybody holds the last document", "admin@freshet.local")
}

func TestTheGuidesAreTrue(t *testing.T) {
	t.Parallel()
	server := start(t)
	const login = "echo 'correct horse battery' | ./freshet login --email ada@example.com --password-stdin\n"
	signUp := "echo 'correct horse battery' | ./freshet users create ada@example.com --first-name Ada --last-name Lovelace --password-stdin\n"
	shows := map[string][]string{
		"topics":  {`{"open":true,"bikes":12}`, `column 14: duplicate key "bikes"`, "refused", "somebody was faster"},
		"patches": {"event: snapshot", `{"op":"add","path":"/news/0","value":"ACME rises"}`, `data: {"quotes":{"ACME":102`, `{"quotes":{"ACME":102,"INIT":48},"news":["ACME rises"]}`},
		"resume":  {`data: [{"op":"replace","path":"/late","value":7}]`},
		"items": {`[{"plate":"A-1","km":10},{"plate":"B-2","km":21,"driver":"Eve"},{"plate":"C-3","km":30}]`,
			`[{"plate":"A-1","km":10},{"plate":"C-3","km":30}]`, `data: [{"plate":"B-2","km":21,"driver":"Eve"}]`},
		"polling": {`"ready":true`, `data: {"ready":true`},
		"keys":    {"subscriber", `"code":40100`, `{"free":48}`},
		"usage":   {`"messages":`, `"bytes_saved":`},
		"gateway": {"200 OK", "X-RateLimit-Remaining-minute: 59"},
		"cluster": {"--roles", "nats:", "database:"},
	}
	files, err := filepath.Glob("../docs/guides/*.md")
	if err != nil || len(files) != len(shows)+1 {
		t.Fatalf("%d guides, want %d and their list: %v", len(files), len(shows), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".md")
		if name == "README" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			p := openPage(t, file, addressesOf(server))
			p.skip = regexp.MustCompile(`git clone`)
			p.additional = variablesOf(server)
			p.before = signUp + login
			signUp = "" // once
			p.mustShow(p.follow(), shows[name]...)
		})
	}
}
