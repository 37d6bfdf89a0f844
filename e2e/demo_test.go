package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	live "github.com/freshet-io/freshet/client"
)

// demo is a running freshet demo.
type demo struct {
	cmd           *exec.Cmd
	temporary     string // where it puts what it must not leave behind
	Pages         string
	Gateway       string
	Subscriber    string
	Email         string
	Password      string
	SubscriberKey string `json:"subscriber_key"`
	PublisherKey  string `json:"publisher_key"`
	API           string
	Topics        map[string]string
}

func startDemo(t *testing.T) *demo {
	t.Helper()
	d := &demo{temporary: t.TempDir()}
	d.cmd = command(t, "demo", "-o", "json", "--gateway-listen", "127.0.0.1:0", "--subscriber-listen", "127.0.0.1:0",
		"--admin-listen", "127.0.0.1:0", "--pages-listen", "127.0.0.1:0")
	d.cmd.Env = append(d.cmd.Env, "TMPDIR="+d.temporary)
	var stderr bytes.Buffer
	d.cmd.Stderr = &stderr
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = d.cmd.Process.Kill()
		_ = d.cmd.Wait()
		if t.Failed() {
			t.Logf("what the demo said:\n%s", stderr.String())
		}
	})
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		t.Fatalf("the demo said nothing: %v", err)
	}
	if err := json.Unmarshal(line, d); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *demo) client(t *testing.T) *live.Client {
	t.Helper()
	c, err := live.New(live.Options{BaseURL: d.Gateway, SubscriberURL: d.Subscriber})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTheDemoIsAliveAndLeavesNothingBehind(t *testing.T) {
	d := startDemo(t)
	c := d.client(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, topic := range []string{"Quotes", "News", "Sensors"} {
		patches := 0
		for e, err := range c.Subscribe(ctx, d.Topics[topic], live.SubscribeOptions{Key: d.SubscriberKey}) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == live.Patch {
				patches++
			}
			if topic == "News" && e.Kind == live.Patch && !strings.HasPrefix(string(e.Data), `[{"op":"add","path":"/0"`) {
				t.Errorf("a story in front is sent as %s", e.Data)
			}
			if patches == 2 {
				break
			}
		}
	}
	if err := d.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Wait(); err != nil {
		t.Errorf("Ctrl-C: %v", err)
	}
	if left, _ := os.ReadDir(d.temporary); len(left) > 0 {
		t.Errorf("it left %v behind", left)
	}
}

func TestTheDemoSaysWhatToType(t *testing.T) {
	cmd := command(t, "demo", "--gateway-listen", "127.0.0.1:0", "--subscriber-listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--pages-listen", "127.0.0.1:0")
	cmd.Env = append(cmd.Env, "TMPDIR="+t.TempDir()) // it is killed, and cannot clean up
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	var text strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan() && !strings.Contains(lines.Text(), "freshet topics list"); {
		text.WriteString(lines.Text() + "\n")
	}
	if !strings.Contains(text.String(), "/console/ ") {
		t.Errorf("it does not lead to the console:\n%s", text.String())
	}
	follow := ""
	var curls []string
	for line := range strings.Lines(strings.ReplaceAll(text.String(), "\\\n", " ")) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "freshet tail") && strings.Contains(line, "--key"):
			follow = strings.TrimPrefix(line, "freshet ")
		case strings.HasPrefix(line, "curl"):
			curls = append(curls, line)
		}
	}
	if got := freshet(t, append(strings.Fields(follow), "-n", "2")...); got.code != 0 || strings.Count(got.stdout, "\n") != 2 {
		t.Errorf("%q: %+v", follow, got)
	}
	for _, line := range curls {
		if got := showing(t, strings.Replace(line, "curl ", "curl -sS -w '%{http_code}' ", 1), "event: snapshot"); !strings.Contains(got, "event: snapshot") && got != "204" {
			t.Errorf("%s\nsays %s", line, got)
		}
	}
	if len(curls) != 2 || follow == "" {
		t.Errorf("the demo said\n%s", text.String())
	}
}

// showing runs a command until it has shown a text or has ended, and returns what it showed.
func showing(t *testing.T, command, text string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-c", "exec "+command+" 2>&1")
	out, err := shell.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	for buf := make([]byte, 4096); err == nil && !strings.Contains(shown.String(), text); {
		var n int
		n, err = out.Read(buf)
		shown.Write(buf[:n])
	}
	cancel() // a stream has no end of its own
	_ = shell.Wait()
	return shown.String()
}

// plainBuild is the environment in which releases are compiled: the Makefile compiles more like that, so much of it is there.
func plainBuild() []string { return append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath") }

// build compiles an example program.
func build(t *testing.T, name string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), name)
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../examples/"+name)
	cmd.Env = plainBuild()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

func TestExampleTicker(t *testing.T) {
	d := startDemo(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, build(t, "ticker"), "-demo", d.Pages, "-count", "12").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "ACME") || strings.Count(string(out), "\n") != 12 {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestExampleWebhook(t *testing.T) {
	d := startDemo(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, build(t, "webhook"), "-demo", d.Pages, "-listen", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	var at string
	if _, err := fmt.Fscanf(out, "Send webhooks to %s", &at); err != nil {
		t.Fatal(err)
	}
	for n, body := range map[int]string{http.StatusNoContent: `{"ref":"main"}`, http.StatusBadRequest: `ref=main`} {
		resp, err := http.Post(at+"/push", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != n {
			t.Errorf("%s: %d %s", body, resp.StatusCode, text)
		}
	}
	for e, err := range d.client(t).Subscribe(ctx, d.Topics["Hooks"], live.SubscribeOptions{Key: d.SubscriberKey}) {
		if err != nil || !strings.Contains(string(e.Document), `"path":"/push","body":{"ref":"main"}`) {
			t.Errorf("got %s, %v", e.Document, err)
		}
		break
	}
}

// wait is something that must happen on a page.
type wait struct {
	Selector string `json:"selector"`
	AtLeast  int    `json:"atLeast,omitempty"`
	Text     string `json:"text,omitempty"`
	Changes  bool   `json:"changes,omitempty"`
	Click    bool   `json:"click,omitempty"`
}

func TestExamplePages(t *testing.T) {
	t.Parallel()
	d := startDemo(t)
	installPackages(t, "browser")
	for page, waits := range map[string][]wait{
		"index.html":  {{Selector: "li a", AtLeast: 4}},
		"stocks.html": {{Selector: "#quotes tr", AtLeast: 10}, {Selector: "#state", Text: "open"}, {Selector: "#patches", Changes: true}, {Selector: "#quotes", Changes: true}},
		"news.html":   {{Selector: "#feed li", AtLeast: 1}, {Selector: "#patch", Text: `"path": "/0"`}, {Selector: "#feed li:first-child", Changes: true}},
		"sensors.html": {{Selector: "#sensors tr", AtLeast: 3}, {Selector: "#sensors", Changes: true},
			{Selector: "input[value=s8]", Click: true}, {Selector: "#sensors tr", AtLeast: 4}, {Selector: "#sensors tr:last-child", Text: "garage"}},
		"any-api.html": {{Selector: "#document", Text: "Lisbon"}, {Selector: "#patch", Text: "/cities/"}, {Selector: "#document", Changes: true}},
	} {
		t.Run(page, func(t *testing.T) {
			s := openExample(t, d, page, waits)
			if len(s.Foreign) > 0 || len(s.Errors) > 0 {
				t.Errorf("the page loads %q and complains %q", s.Foreign, s.Errors)
			}
		})
	}
}

func openExample(t *testing.T, d *demo, page string, waits []wait) seen {
	t.Helper()
	pictures := os.Getenv("FRESHET_TEST_PICTURES") // keep them to look at
	if pictures == "" {
		pictures = t.TempDir()
	} else {
		pictures = filepath.Join(pictures, t.Name())
	}
	text := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	node := exec.CommandContext(ctx, "node", "browser/examples.mjs", d.Pages+"/"+page, text([]string{d.Pages, d.Subscriber}), text(waits), pictures)
	var stdout, stderr bytes.Buffer
	node.Stdout, node.Stderr = &stdout, &stderr
	if err := node.Run(); err != nil {
		t.Fatalf("browser: %v\n%s", err, stderr.String())
	}
	var s seen
	if err := json.Unmarshal(stdout.Bytes(), &s); err != nil {
		t.Fatalf("browser said %q: %v", stdout.String(), err)
	}
	return s
}
