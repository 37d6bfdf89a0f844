package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// unpack writes the image's files to a directory, with their owners.
func unpack(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	eachFile(t, image(t), func(h *tar.Header, content []byte) {
		path := filepath.Join(root, h.Name)
		var err error
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o755)
		} else if err = os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
			err = os.WriteFile(path, content, 0o644)
		}
		if err == nil {
			err = os.Chown(path, h.Uid, h.Gid)
		}
		if err == nil {
			err = os.Chmod(path, h.FileInfo().Mode())
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	return root
}

// inContainer prepares a command as a container engine would run it: its own view of mounts, a root that nobody can write to,
// the data directory as a volume, the image's user and environment, nothing from outside.
func inContainer(t *testing.T, root, volume string, env []string, args ...string) *exec.Cmd {
	t.Helper()
	file, err := image(t).ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	const script = `set -e
mount --bind "$1" "$1"
mount --bind "$2" "$1/data"
mount -o remount,bind,ro "$1"
root=$1
shift 2
exec chroot --userspec=65532:65532 "$root" "$@"`
	words := append([]string{"--mount", "--propagation", "private", "/bin/sh", "-c", script, "sh", root, volume}, file.Config.Entrypoint...)
	cmd := exec.Command("unshare", append(words, args...)...)
	cmd.Env = append([]string{"GODEBUG="}, env...)
	for _, pair := range file.Config.Env {
		if !strings.HasPrefix(pair, "PATH=") { // the shell needs its own
			cmd.Env = append(cmd.Env, pair)
		}
	}
	return cmd
}

func TestTheImageServesAsNobodyOnAReadOnlyRoot(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can change the root directory; run this test as root")
	}
	root, volume := unpack(t), t.TempDir()
	if err := os.Chown(volume, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	listen := []string{"FRESHET_GATEWAY_LISTEN=127.0.0.1:0", "FRESHET_SUBSCRIBER_LISTEN=127.0.0.1:0", "FRESHET_ADMIN_LISTEN=127.0.0.1:0"}
	cmd := inContainer(t, root, volume, listen, "serve")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	ready := awaitReady(t, stderr)

	if ready["version"] != "1.2.3" || ready["edition"] != "beta" {
		t.Errorf("ready says %v", ready)
	}
	admin := ready["admin"].(string)
	for url, want := range map[string]int{"http://" + admin + "/readyz": 200, "http://" + ready["gateway"].(string) + "/api/v1/apps": 401} {
		answer, err := (&http.Client{Timeout: 2 * time.Minute}).Get(url)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("%s answers %d", url, answer.StatusCode)
		}
	}
	health := inContainer(t, root, volume, []string{"FRESHET_ADMIN_LISTEN=" + admin}, "healthcheck")
	if said, err := health.CombinedOutput(); err != nil || string(said) != "ready\n" {
		t.Errorf("the health check says %q, %v", said, err)
	}
	if owner := ownerOf(t, filepath.Join(volume, "freshet.db")); owner != nobody {
		t.Errorf("the database belongs to %d", owner)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
}

// awaitReady reads the log up to the line that names the addresses, and the rest into nothing.
func awaitReady(t *testing.T, log io.Reader) map[string]any {
	t.Helper()
	found := make(chan map[string]any, 1)
	var said bytes.Buffer
	go func() {
		defer close(found)
		for lines := bufio.NewScanner(log); lines.Scan(); {
			var fields map[string]any
			said.WriteString(lines.Text() + "\n")
			if json.Unmarshal(lines.Bytes(), &fields) == nil && fields["msg"] == "ready" {
				found <- fields
				_, _ = io.Copy(io.Discard, log)
				return
			}
		}
	}()
	select {
	case fields, ok := <-found:
		if !ok {
			t.Fatalf("it ended before it was ready:\n%s", said.String())
		}
		return fields
	case <-time.After(2 * time.Minute):
		t.Fatal("it does not become ready")
	}
	return nil
}

func ownerOf(t *testing.T, path string) uint32 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		files, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
		t.Fatalf("%v; there is %v", err, files)
	}
	return info.Sys().(*syscall.Stat_t).Uid
}
