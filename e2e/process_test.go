package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait; nothing should come near it, even with the race detector on a busy machine.
const patience = 2 * time.Minute

// command prepares freshet with a clean environment and an empty directory to work in.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background()) // a server may have to live as long as a long test
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = []string{
		beFreshet + "=1", "PATH=" + os.Getenv("PATH"), "HOME=" + cmd.Dir, "TMPDIR=" + os.TempDir(),
		"GORACE=atexit_sleep_ms=0", // the race detector lets every process linger for a second otherwise
	}
	return cmd
}

// result is how a command ended.
type result struct {
	code           int
	stdout, stderr string
}

// freshet runs a command to its end.
func freshet(t *testing.T, args ...string) result {
	t.Helper()
	return runToEnd(t, command(t, args...))
}

func runToEnd(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(2*patience, func() { _ = cmd.Process.Kill() }).Stop()
	err := cmd.Wait()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// process is a running server.
type process struct {
	// Static after start.
	t   *testing.T
	cmd *exec.Cmd

	// Addresses as host:port; empty if the server has no such listener.
	Gateway, Admin, Subscriber string

	exited chan struct{} // closed once the process has ended and its output was read

	// Guarded by mu.
	mu    sync.Mutex
	lines []logLine
	more  chan struct{} // closed and replaced at each new line
}

// logLine is one line on stderr. Fields is nil if it is not JSON.
type logLine struct {
	Text   string
	Fields map[string]any
}

// start runs freshet serve on free ports, with its data in a directory of the test, and returns once it is ready.
// Further arguments come last and win. The process is killed at the end of the test if it still runs.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	p := launch(t, command(t, serveArgs(args...)...))
	p.addresses(p.Await("ready"))
	return p
}

// addresses takes the addresses from the fields of the ready line.
func (p *process) addresses(ready map[string]any) {
	p.Gateway, _ = ready["gateway"].(string)
	p.Admin, _ = ready["admin"].(string)
	p.Subscriber, _ = ready["subscriber"].(string)
}

// serveArgs is a command line for a server that gets in nobody's way.
func serveArgs(more ...string) []string {
	return append([]string{"serve", "--gateway-listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0",
		"--subscriber-listen", "127.0.0.1:0", "--log-format", "json"}, more...)
}

// launch starts the command without waiting for anything.
func launch(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: cmd, exited: make(chan struct{}), more: make(chan struct{})}
	go func() {
		defer close(p.exited)
		p.read(stderr)
		_ = cmd.Wait() // how it ended is in ProcessState
	}()
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("what the server said:\n%s", p.Output())
		}
	})
	return p
}

func (p *process) read(stderr io.Reader) {
	lines := bufio.NewScanner(stderr)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := logLine{Text: lines.Text()}
		_ = json.Unmarshal(lines.Bytes(), &line.Fields) // leaves Fields nil for lines that are not JSON
		p.mu.Lock()
		p.lines = append(p.lines, line)
		close(p.more)
		p.more = make(chan struct{})
		p.mu.Unlock()
	}
}

// Logs returns the lines so far, and a channel that closes when there are more.
func (p *process) Logs() ([]logLine, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lines[:len(p.lines):len(p.lines)], p.more
}

// Output is everything the process wrote to stderr so far.
func (p *process) Output() string {
	lines, _ := p.Logs()
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.Text + "\n")
	}
	return b.String()
}

// Await returns the fields of the first log line with the message.
func (p *process) Await(msg string) map[string]any {
	p.t.Helper()
	deadline := time.After(patience)
	for ended := false; ; {
		lines, more := p.Logs()
		for _, l := range lines {
			if l.Fields["msg"] == msg {
				return l.Fields
			}
		}
		if ended {
			p.t.Fatalf("the server exited with %d before it said %q", p.cmd.ProcessState.ExitCode(), msg)
		}
		select {
		case <-more:
		case <-p.exited:
			ended = true // look at the last lines once more
		case <-deadline:
			p.t.Fatalf("the server did not say %q", msg)
		}
	}
}

// Signal sends a signal and returns at once.
func (p *process) Signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// Wait returns the exit code once the process has ended. A process killed by a signal has -1.
func (p *process) Wait() int {
	p.t.Helper()
	select {
	case <-p.exited:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		p.t.Fatal("the server did not exit")
		return 0
	}
}

// Stop drains the server and returns its exit code.
func (p *process) Stop() int {
	p.t.Helper()
	p.Signal(syscall.SIGTERM)
	return p.Wait()
}

// Kill ends the process as a power failure would, and returns once it is gone. Killing twice does no harm.
func (p *process) Kill() {
	_ = p.cmd.Process.Kill() // fails only if it has ended
	<-p.exited
}
