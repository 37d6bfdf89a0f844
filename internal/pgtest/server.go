package pgtest

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// guard runs the server for as long as its standard input is open. The other end of that pipe is ours alone, so the
// server stops and its files go away with the test process, however that ends: at the end of its tests, in a panic, by
// kill -9.
const guard = `
dir=$1; port=$2
stop() { pg_ctl -D "$dir/data" -m immediate stop; rm -rf "$dir"; }
{
	initdb -D "$dir/data" -U postgres --auth=trust --encoding=UTF8 --locale=C.UTF-8 --no-sync &&
	pg_ctl -D "$dir/data" -w -t 60 -l "$dir/server.log" -o "-p $port -k '$dir' -c listen_addresses=127.0.0.1 \
		-c fsync=off -c synchronous_commit=off -c full_page_writes=off -c max_connections=300" start
} >"$dir/setup.log" 2>&1 || { tail -n 5 "$dir"/*.log | tr '\n' ' '; echo; stop >/dev/null 2>&1; exit 1; }
echo ready
cat >/dev/null
stop >/dev/null 2>&1
`

const install = "install it (apt-get install postgresql), or set FRESHET_TEST_POSTGRES=postgres://… to a running server"

// start returns the address of a new server.
func start() (string, error) {
	binaries, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil {
		return "", err
	}
	path := os.Getenv("PATH")
	if len(binaries) > 0 {
		path = filepath.Dir(slices.Max(binaries)) + ":" + path
	} else if _, err := exec.LookPath("initdb"); err != nil {
		return "", errors.New(install)
	}
	// A free port can be taken by somebody else before the server listens to it.
	var port int
	for range 3 {
		if port, err = freePort("127.0.0.1"); err != nil {
			return "", err
		}
		if err = startAt(port, path); err == nil {
			return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", port), nil
		}
	}
	return "", err
}

func startAt(port int, path string) error {
	dir, err := os.MkdirTemp("", "freshet-postgres-")
	if err != nil {
		return err
	}
	owner, err := serverOwner(dir)
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	cmd := exec.Command("/bin/sh", "-c", guard, "sh", dir, strconv.Itoa(port))
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + path, "LC_ALL=C.UTF-8"}
	// A session of its own, or Ctrl-C would end the guard before it has cleaned up.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: owner}
	alive, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	said, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	line, _ := bufio.NewReader(said).ReadString('\n')
	if line != "ready\n" {
		alive.Close()
		cmd.Wait()
		return fmt.Errorf("it does not start: %s", line)
	}
	held = append(held, cmd)
	return nil
}

// held keeps the pipes of guards from being collected, which would close them. Written once, inside start.
var held []*exec.Cmd

// serverOwner is who runs the server: PostgreSQL refuses to run as root.
func serverOwner(dir string) (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("tests run as root, but there is no user postgres to run the server: %s", install)
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, os.Chown(dir, uid, gid)
}

func freePort(host string) (int, error) {
	l, err := net.Listen("tcp", host+":0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
