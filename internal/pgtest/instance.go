package pgtest

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Instance is a PostgreSQL of its own, for tests that kill it. Unlike the shared one it is durable.
type Instance struct {
	URL string

	t      testing.TB
	dir    string
	bin    string
	host   string // an address of its own, so that nobody takes the port while the server is dead
	port   int
	owner  *syscall.Credential
	server *exec.Cmd
}

var instances atomic.Int32

// NewInstance starts a server that ends with the test.
func NewInstance(t testing.TB) *Instance {
	t.Helper()
	binaries, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(binaries) == 0 {
		t.Fatal("no PostgreSQL to test with: " + install)
	}
	dir, err := os.MkdirTemp("", "freshet-postgres-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	p := &Instance{t: t, dir: dir, bin: filepath.Dir(slices.Max(binaries))}
	if p.owner, err = serverOwner(dir); err != nil {
		t.Fatal(err)
	}
	p.host = fmt.Sprintf("127.%d.255.%d", 1+os.Getpid()%254, 1+instances.Add(1)%250)
	if p.port, err = freePort(p.host); err != nil {
		t.Fatal(err)
	}
	p.URL = fmt.Sprintf("postgres://postgres@%s:%d/postgres?sslmode=disable", p.host, p.port)
	if out, err := p.command("initdb", "-D", dir+"/data", "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync").CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	t.Cleanup(p.Kill)
	p.Start()
	return p
}

func (p *Instance) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(p.bin, name), args...)
	cmd.Dir, cmd.Env = p.dir, []string{"LC_ALL=C.UTF-8", "PATH=" + p.bin}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: p.owner}
	return cmd
}

// Start runs the server again after Kill and returns once it answers.
func (p *Instance) Start() {
	p.t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for time.Now().Before(deadline) {
		p.server = p.command("postgres", "-D", p.dir+"/data", "-p", strconv.Itoa(p.port), "-k", p.dir, "-c", "listen_addresses="+p.host)
		if err := p.server.Start(); err != nil {
			p.t.Fatal(err)
		}
		ended := make(chan struct{})
		go func(cmd *exec.Cmd) { _ = cmd.Wait(); close(ended) }(p.server)
		for p.ping() != nil && time.Now().Before(deadline) {
			select {
			case <-ended: // what was killed still has its memory; once more
			case <-time.After(20 * time.Millisecond):
				continue
			}
			break
		}
		if p.ping() == nil {
			return
		}
	}
	p.t.Fatal("PostgreSQL does not start")
}

func (p *Instance) ping() error {
	db, err := sql.Open("pgx", p.URL)
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return db.PingContext(ctx)
}

// Kill ends the server and all its processes as a power failure would.
func (p *Instance) Kill() {
	if p.server != nil && p.server.Process != nil {
		_ = syscall.Kill(-p.server.Process.Pid, syscall.SIGKILL) // the session is the server's own
		time.Sleep(50 * time.Millisecond)                        // until the kernel has let go of its memory
	}
}
