package e2e

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}

func get(t *testing.T, address, path string) (int, string) {
	t.Helper()
	resp, err := client.Get("http://" + address + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestServeAnnouncesRealAddressesAndDrainsOnSIGTERM(t *testing.T) {
	p := start(t)
	for name, address := range map[string]string{"gateway": p.Gateway, "admin": p.Admin, "subscriber": p.Subscriber} {
		if _, port, err := net.SplitHostPort(address); err != nil || port == "0" {
			t.Errorf("%s is said to be at %q", name, address)
		}
		get(t, address, "/")
	}
	if status, _ := get(t, p.Admin, "/readyz"); status != http.StatusOK {
		t.Errorf("readyz answers %d after ready", status)
	}
	if code := p.Stop(); code != 0 {
		t.Errorf("exit code %d after SIGTERM", code)
	}
	p.Await("draining")
	p.Await("stopped")
}

func TestCtrlCDrainsToo(t *testing.T) {
	p := start(t)
	p.Signal(syscall.SIGINT)
	if code := p.Wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// busy opens a request and never ends it, so that a drain has something to wait for.
func busy(t *testing.T, address string) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\n"); err != nil {
		t.Fatal(err)
	}
	get(t, address, "/") // connections are accepted in order, so ours is in the server's hands now
}

func TestASecondSignalExitsAtOnce(t *testing.T) {
	for signal, want := range map[syscall.Signal]int{syscall.SIGTERM: 143, syscall.SIGINT: 130} {
		p := start(t)
		busy(t, p.Gateway)
		p.Signal(syscall.SIGTERM)
		p.Await("draining")
		p.Signal(signal)
		if code := p.Wait(); code != want {
			t.Errorf("exit code %d after a second signal, want %d", code, want)
		}
		if strings.Contains(p.Output(), `"stopped"`) {
			t.Error("it finished its drain")
		}
	}
}

func TestReadinessGoesFirst(t *testing.T) {
	p := start(t)
	busy(t, p.Gateway)
	p.Signal(syscall.SIGTERM)
	p.Await("draining")
	if got := freshet(t, "healthcheck", "--admin-listen", p.Admin); got.code != 1 || !strings.HasPrefix(got.stderr, "freshet: not ready: draining") {
		t.Errorf("healthcheck during the drain: %+v", got)
	}
	if got := freshet(t, "healthcheck", "--live", "--admin-listen", p.Admin); got != (result{0, "alive\n", ""}) {
		t.Errorf("it is alive during the drain, but: %+v", got)
	}
}

func TestHealthcheckFindsTheServer(t *testing.T) {
	p := start(t)
	if got := freshet(t, "healthcheck", "--admin-listen", p.Admin); got != (result{0, "ready\n", ""}) {
		t.Errorf("got %+v", got)
	}
}

func TestAPortInUseIsOneLine(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	address := taken.Addr().String()
	got := freshet(t, serveArgs("--gateway-listen", address)...)
	want := "freshet: cannot listen on " + address + ": the address is in use; stop what uses it, or set gateway.listen to another address\n"
	if got.code != 5 || got.stdout != "" || got.stderr != want {
		t.Errorf("got %+v\nwant %s", got, want)
	}
}

func TestNothingButLogLinesWithoutATerminal(t *testing.T) {
	p := start(t)
	p.Stop()
	lines, _ := p.Logs()
	for _, l := range lines {
		if l.Fields == nil {
			t.Errorf("a line that is not JSON: %s", l.Text)
		}
	}
}

func TestConfigCheckAndPrint(t *testing.T) {
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good.yaml"), filepath.Join(dir, "bad.yaml")
	write(t, good, "environment: production\nsubscriber:\n  listen: :7080\n")
	write(t, bad, "subscriber:\n  lisen: :7080\nlog: {format: xml}\n")

	if got := freshet(t, "config", "check", "--config", good); got != (result{0, "ok\n", ""}) {
		t.Errorf("a good file: %+v", got)
	}
	got := freshet(t, "config", "check", "--config", bad)
	want := "freshet: 2 problems with the settings:\n" +
		"  " + bad + ":2: subscriber.lisen is not a setting; did you mean subscriber.listen?\n" +
		"  " + bad + ":3: log.format must be one of text, json, not \"xml\"\n"
	if got != (result{2, "", want}) {
		t.Errorf("a bad file: %+v", got)
	}

	cmd := command(t, "config", "print", "--config", good, "--log-level", "debug")
	cmd.Env = append(cmd.Env, "SDIO_admin_email=boss@example.com", "FRESHET_ADMIN_PASSWORD=hunter2hunter2")
	printed := runToEnd(t, cmd)
	for _, want := range []string{"environment: production", "good.yaml:1\n", `listen: ":7080"`, "boss@example.com", "# SDIO_admin_email\n", "# --log-level\n"} {
		if !strings.Contains(printed.stdout, want) {
			t.Errorf("%q is missing in\n%s", want, printed.stdout)
		}
	}
	if strings.Contains(printed.stdout, "hunter2") {
		t.Error("it prints a secret")
	}
	write(t, good, printed.stdout)
	if got := freshet(t, "config", "check", "--config", good); got.code != 0 {
		t.Errorf("what was printed is no configuration file: %+v", got)
	}
}

func TestASettingFromTheEnvironmentReachesTheServer(t *testing.T) {
	cmd := command(t, serveArgs()...)
	cmd.Env = append(cmd.Env, "FRESHET_ROLES=poll")
	p := launch(t, cmd)
	if ready := p.Await("ready"); ready["gateway"] != nil || ready["admin"] == nil {
		t.Errorf("ready says %v", ready)
	}
}

func TestVersionHelpAndCompletion(t *testing.T) {
	got := freshet(t, "version", "--json")
	var v struct{ Version, Go, Platform string }
	if err := json.Unmarshal([]byte(got.stdout), &v); err != nil || v.Version == "" || v.Go == "" || v.Platform == "" {
		t.Errorf("version: %+v, %v", got, err)
	}
	if got := freshet(t, "serve", "--help"); got.code != 0 || !strings.Contains(got.stdout, "--subscriber-listen") || got.stderr != "" {
		t.Errorf("help: %+v", got)
	}
	if got := freshet(t, "completion", "bash"); got.code != 0 || !strings.Contains(got.stdout, "__start_freshet") {
		t.Errorf("completion: exit %d", got.code)
	}
	if got := freshet(t, "sevre"); got.code != 2 || !strings.Contains(got.stderr, "did you mean serve?") {
		t.Errorf("a typing error: %+v", got)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
