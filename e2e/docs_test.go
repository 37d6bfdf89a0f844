package e2e

import (
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
	until      string   // what a stream must show before the next command, as a regular expression
}

var (
	shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")
	startsOne  = regexp.MustCompile(`git clone|freshet (serve|demo)|make test`)
	endless    = regexp.MustCompile(`(?m)^((?:\./)?(?:curl -N|freshet tail) .*)$`)
)

func openPage(t *testing.T, path string, addresses map[string]string) *page {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p := &page{t: t, path: path, addresses: addresses, skip: startsOne, dir: t.TempDir(), home: t.TempDir(), until: "^data: |^[[{]"}
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

// see runs a command that has no end of its own, in a shell, until it has shown what there is to wait for.
const see = `
see() {
	local shown pid
	shown=$(mktemp)
	"$@" >"$shown" &
	pid=$!
	for _ in $(seq 1200); do
		if grep -qE "$UNTIL" "$shown" || ! kill -0 $pid 2>/dev/null; then break; fi
		sleep 0.05
	done
	if kill $pid 2>/dev/null; then wait $pid || true; else wait $pid; fi
	cat "$shown"
	rm "$shown"
}
`

// follow types everything, in one shell, and returns what was shown.
func (p *page) follow() string {
	p.t.Helper()
	var script strings.Builder
	script.WriteString("set -eu -o pipefail\n" + see)
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
	commands = endless.ReplaceAllString(commands, "see $1")
	commands = strings.ReplaceAll(commands, "curl ", "curl -fsS ")
	bash := exec.CommandContext(p.t.Context(), "bash", "-c", commands)
	bash.Dir = p.dir
	bash.Env = append([]string{"PATH=" + p.dir + ":" + os.Getenv("PATH"), "HOME=" + p.home, "UNTIL=" + p.until, "GORACE=atexit_sleep_ms=0"}, p.additional...)
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
	return []string{"FRESHET_CLI_SERVER=http://" + p.Gateway, "FRESHET_CLI_SUBSCRIBER=http://" + p.Subscriber, "FRESHET_ADMIN_LISTEN=" + p.Admin}
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
	p.until = "^event: patch"
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
