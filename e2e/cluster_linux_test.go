package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/freshet-io/freshet/internal/grid/natsserver"
	"github.com/freshet-io/freshet/internal/pgtest"
)

// member is one process of the cluster that can be killed and started again at the same place.
type member struct {
	t    *testing.T
	name string
	cmd  func() *exec.Cmd
	*process
}

func (m *member) start() {
	m.t.Helper()
	m.process = launch(m.t, m.cmd())
}

// cluster is service nodes, NATS servers and a PostgreSQL on this machine, all of them processes.
type cluster struct {
	t        *testing.T
	nodes    []*member
	gateways []string
	streams  []string // subscriber addresses
	admins   []string
	nats     []*member
	urls     []string // of NATS
	postgres *pgtest.Instance
}

// freeAddress returns an address that is still free when somebody listens on it, once and again after a restart. All of 127/8 is
// this machine, so it is an IP address of its own: on 127.0.0.1, where every connection of every test begins and most listeners
// are, somebody else may get the port meanwhile.
func freeAddress(t *testing.T, host string) string {
	t.Helper()
	own := "127.0.0.1" // where to look for a port, if the host is in another network
	if host == own {
		n := addresses.Add(1)
		host = fmt.Sprintf("127.%d.%d.%d", 1+os.Getpid()%254, n/250, 1+n%250)
		own = host
	}
	l, err := net.Listen("tcp", own+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return net.JoinHostPort(host, port)
}

var addresses atomic.Int32

// startCluster starts everything and returns once it is ready. hosts are the addresses of the NATS servers and wrap may run
// them elsewhere.
func startCluster(t *testing.T, nodes int, hosts []string, wrap func(i int, cmd *exec.Cmd) *exec.Cmd, args ...string) *cluster {
	t.Helper()
	c := &cluster{t: t, postgres: pgtest.NewInstance(t)}
	var peers []string
	for _, host := range hosts {
		c.urls = append(c.urls, freeAddress(t, host))
		peers = append(peers, freeAddress(t, host))
	}
	dir := t.TempDir()
	for i := range hosts {
		opts := natsserver.Options{Name: fmt.Sprint("nats-", i), Dir: filepath.Join(dir, fmt.Sprint("nats-", i)), Listen: c.urls[i], Cluster: peers[i], Peers: peers}
		if len(hosts) == 1 {
			opts.Cluster, opts.Peers = "", nil
		}
		config, err := json.Marshal(opts)
		if err != nil {
			t.Fatal(err)
		}
		c.nats = append(c.nats, &member{t: t, name: opts.Name, cmd: func() *exec.Cmd {
			return wrap(i, c.command([]string{beNATS + "=" + string(config)}))
		}})
	}
	for _, m := range c.nats {
		m.start()
	}
	for i := range nodes {
		c.addNode(fmt.Sprint("node-", i), args...)
	}
	for _, m := range c.nodes {
		m.start()
	}
	for _, m := range c.nodes {
		m.Await("ready")
	}
	return c
}

// addNode adds a service node that is not started yet.
func (c *cluster) addNode(name string, args ...string) *member {
	gateway, stream, admin := freeAddress(c.t, "127.0.0.1"), freeAddress(c.t, "127.0.0.1"), freeAddress(c.t, "127.0.0.1")
	data := c.t.TempDir()
	m := &member{t: c.t, name: name, cmd: func() *exec.Cmd {
		return c.command([]string{beFreshet + "=1"}, append([]string{"serve", "--gateway-listen", gateway, "--subscriber-listen", stream,
			"--admin-listen", admin, "--log-format", "json", "--data", data, "--database", c.postgres.URL,
			"--nats", "nats://" + strings.Join(c.urls, ",nats://"), "--drain-timeout", "2s"}, args...)...)
	}}
	c.nodes, c.gateways, c.streams, c.admins = append(c.nodes, m), append(c.gateways, gateway), append(c.streams, stream), append(c.admins, admin)
	return m
}

func noWrap(_ int, cmd *exec.Cmd) *exec.Cmd { return cmd }

func loopback(n int) []string {
	hosts := make([]string, n)
	for i := range hosts {
		hosts[i] = "127.0.0.1"
	}
	return hosts
}

func (c *cluster) command(env []string, args ...string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		c.t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Dir = c.t.TempDir()
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + cmd.Dir, "TMPDIR=" + os.TempDir(), "GORACE=atexit_sleep_ms=0"}, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// leader returns which NATS server leads the documents.
func (c *cluster) leader() *member {
	c.t.Helper()
	conn, err := nats.Connect("nats://"+strings.Join(c.urls, ",nats://"), nats.Timeout(patience))
	if err != nil {
		c.t.Fatal(err)
	}
	defer conn.Close()
	var info struct{ Cluster struct{ Leader string } }
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		answer, err := conn.Request("$JS.API.STREAM.INFO.FRESHET_DOCUMENTS", nil, 2*time.Second)
		if err != nil || json.Unmarshal(answer.Data, &info) != nil {
			continue
		}
		for _, m := range c.nats {
			if m.name == info.Cluster.Leader {
				return m
			}
		}
	}
	c.t.Fatal("the stream has no leader")
	return nil
}

// ready waits until a node calls itself ready.
func (c *cluster) ready(node int) {
	c.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		resp, err := client.Get("http://" + c.admins[node] + "/readyz")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
	}
	c.t.Fatalf("node %d does not become ready", node)
}

func (c *cluster) signIn(node int) *api {
	c.t.Helper()
	return signIn(c.t, &process{Gateway: c.gateways[node]})
}

// TestAClusterLosesNothing is what CI can afford of the chaos run: every fault once.
func TestAClusterLosesNothing(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes a minute")
	}
	c := startCluster(t, 3, loopback(3), noWrap)
	run := c.load(load{topics: 4, items: 2, writers: 2, subscribers: 60})
	calm := func(d time.Duration) {
		before := run.acked.Load()
		time.Sleep(d)
		t.Logf("%d publications in %v", run.acked.Load()-before, d)
	}
	calm(2 * time.Second)

	t.Log("a service node dies")
	c.nodes[1].Kill()
	calm(2 * time.Second)
	c.nodes[1].start()
	c.ready(1)

	t.Log("the leader of the stream dies")
	leader := c.leader()
	leader.Kill()
	run.progress()
	leader.start()
	calm(time.Second)

	t.Log("the database dies")
	c.postgres.Kill()
	run.progress()
	calm(4 * time.Second)
	c.postgres.Start()

	t.Log("a service node stops for ten seconds")
	c.nodes[2].Signal(syscall.SIGSTOP)
	calm(10 * time.Second)
	c.nodes[2].Signal(syscall.SIGCONT)

	t.Log("all of NATS dies")
	for _, m := range c.nats {
		m.Kill()
	}
	calm(time.Second)
	for _, m := range c.nats {
		m.start()
	}
	run.progress()
	calm(2 * time.Second)
	run.finish()
}
