package e2e

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// openTerminal returns both ends of a pseudo-terminal: what the program writes to, and where a person looks.
func openTerminal(t *testing.T) (inside, outside *os.File) {
	t.Helper()
	outside, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatalf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { outside.Close() })
	conn, err := outside.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var number int
	if err := conn.Control(func(fd uintptr) {
		if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err == nil {
			number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	inside, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { inside.Close() })
	return inside, outside
}

// serveInTerminal returns what a person sees until the banner is complete.
func serveInTerminal(t *testing.T, env ...string) string {
	t.Helper()
	inside, outside := openTerminal(t)
	cmd := command(t, serveArgs("--log-format", "text")...)
	cmd.Env = append(cmd.Env, env...)
	cmd.Stderr = inside
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	if err := outside.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	var seen bytes.Buffer
	for buf := make([]byte, 4096); !strings.Contains(seen.String(), "Ctrl-C stops it"); {
		n, err := outside.Read(buf)
		if err != nil {
			t.Fatalf("%v after\n%s", err, seen.String())
		}
		seen.Write(buf[:n])
	}
	return seen.String()
}

func TestATerminalGetsABanner(t *testing.T) {
	seen := serveInTerminal(t)
	for _, want := range []string{"msg=ready", "\x1b[1mFreshet ", "/api/v1/api-browser/index.html", "admin@freshet.local, password freshet-admin"} {
		if !strings.Contains(seen, want) {
			t.Errorf("%q is missing in\n%s", want, seen)
		}
	}
}

func TestNoColourWhenAskedFor(t *testing.T) {
	for _, variable := range []string{"NO_COLOR=1", "TERM=dumb"} {
		if seen := serveInTerminal(t, variable); strings.Contains(seen, "\x1b") {
			t.Errorf("with %s it shows\n%q", variable, seen)
		}
	}
}

func TestAChosenPasswordIsNotShown(t *testing.T) {
	if seen := serveInTerminal(t, "FRESHET_ADMIN_PASSWORD=hunter2hunter2"); strings.Contains(seen, "hunter2") {
		t.Errorf("it shows\n%s", seen)
	}
}
