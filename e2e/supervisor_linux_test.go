package e2e

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// listenAsSystemd opens the socket that systemd would, and returns what is said on it, one message at a time.
func listenAsSystemd(t *testing.T, name string) <-chan string {
	t.Helper()
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	said := make(chan string, 1000)
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := socket.Read(buf)
			if err != nil {
				return
			}
			said <- string(buf[:n])
		}
	}()
	return said
}

func awaitState(t *testing.T, said <-chan string, state string) {
	t.Helper()
	for deadline := time.After(patience); ; {
		select {
		case message := <-said:
			if strings.HasPrefix(message, state) {
				return
			}
		case <-deadline:
			t.Fatalf("nobody said %s", state)
		}
	}
}

func TestSystemdHearsReadyAliveAndStopping(t *testing.T) {
	for name, socket := range map[string]string{"path": filepath.Join(t.TempDir(), "notify"), "abstract": "@" + t.Name() + t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			said := listenAsSystemd(t, socket)
			cmd := command(t, serveArgs()...)
			cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+socket, "WATCHDOG_USEC=150000")
			p := launch(t, cmd)
			awaitState(t, said, "READY=1")
			awaitState(t, said, "WATCHDOG=1")
			gateway, _ := p.Await("ready")["gateway"].(string)
			busy(t, gateway)
			p.Signal(15)
			awaitState(t, said, "STOPPING=1")
			awaitState(t, said, "WATCHDOG=1") // a drain may take longer than the watchdog's patience
			p.Kill()
		})
	}
}
