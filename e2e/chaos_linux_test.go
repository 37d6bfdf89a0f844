package e2e

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

var (
	chaosRounds = flag.Int("chaos", 0, "how many faults TestChaos brings about; 0 leaves it out")
	chaosSeed   = flag.Uint64("seed", 0, "decides which faults, where and when; 0 takes the clock's")
)

// fault is something that goes wrong and is made good again.
type fault struct {
	name string
	do   func(c *cluster, r *rand.Rand)
}

var faults = []fault{
	{"a service node dies", func(c *cluster, r *rand.Rand) {
		i := r.IntN(len(c.nodes))
		c.nodes[i].Kill()
		time.Sleep(span(r, 0, 4*time.Second))
		c.nodes[i].start()
		c.ready(i)
	}},
	{"a service node is restarted in order", func(c *cluster, r *rand.Rand) {
		i := r.IntN(len(c.nodes))
		c.nodes[i].Stop()
		c.nodes[i].start()
		c.ready(i)
	}},
	{"a service node stops for a while", func(c *cluster, r *rand.Rand) {
		i := r.IntN(len(c.nodes))
		c.nodes[i].Signal(syscall.SIGSTOP)
		time.Sleep(span(r, time.Second, 12*time.Second))
		c.nodes[i].Signal(syscall.SIGCONT)
	}},
	{"the leader of the stream dies", func(c *cluster, r *rand.Rand) {
		m := c.leader()
		m.Kill()
		time.Sleep(span(r, 0, 8*time.Second))
		m.start()
	}},
	{"the leader of the stream stops for a while", func(c *cluster, r *rand.Rand) {
		m := c.leader()
		m.Signal(syscall.SIGSTOP)
		time.Sleep(span(r, time.Second, 12*time.Second))
		m.Signal(syscall.SIGCONT)
	}},
	{"two NATS servers die", func(c *cluster, r *rand.Rand) {
		skip := r.IntN(len(c.nats))
		for i, m := range c.nats {
			if i != skip {
				m.Kill()
			}
		}
		time.Sleep(span(r, 0, 3*time.Second))
		for i, m := range c.nats {
			if i != skip {
				m.start()
			}
		}
	}},
	{"NATS servers die one after the other", func(c *cluster, r *rand.Rand) {
		for _, i := range r.Perm(len(c.nats)) {
			c.nats[i].Kill()
			time.Sleep(span(r, 0, 600*time.Millisecond))
			c.nats[i].start()
		}
	}},
	{"all of NATS dies", func(c *cluster, r *rand.Rand) {
		for _, m := range c.nats {
			m.Kill()
		}
		time.Sleep(span(r, 0, 2*time.Second))
		for _, m := range c.nats {
			m.start()
		}
	}},
	{"the database dies", func(c *cluster, r *rand.Rand) {
		c.postgres.Kill()
		time.Sleep(span(r, 0, 8*time.Second))
		c.postgres.Start()
	}},
}

func span(r *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(r.Int64N(int64(to-from)))
}

// TestChaos brings about one fault after the other, as the seed says, and checks everything at the end.
func TestChaos(t *testing.T) {
	if *chaosRounds == 0 {
		t.Skip("run it with make chaos")
	}
	seed := *chaosSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, seed))
	net := newNetwork(t, 3)
	all := faults
	if net.real {
		all = append(all[:len(all):len(all)], fault{"a NATS server is cut off", func(c *cluster, r *rand.Rand) {
			net.cutOff(r.IntN(len(c.nats)), span(r, time.Second, 15*time.Second))
		}}, fault{"the leader of the stream is cut off", func(c *cluster, r *rand.Rand) {
			for i, m := range c.nats {
				if m == c.leader() {
					net.cutOff(i, span(r, time.Second, 15*time.Second))
				}
			}
		}})
	}
	c := startCluster(t, 3, net.hosts, net.wrap)
	run := c.load(load{topics: 12, items: 4, writers: 3, subscribers: 300, pause: 20 * time.Millisecond})
	run.progress()
	for round := range *chaosRounds {
		f := all[r.IntN(len(all))]
		t.Logf("%d/%d: %s", round+1, *chaosRounds, f.name)
		f.do(c, r)
		if r.IntN(3) > 0 { // sometimes the next one comes before this one is over
			run.progress()
		}
		time.Sleep(span(r, 0, 3*time.Second))
	}
	for i := range c.nodes {
		c.ready(i)
	}
	run.progress()
	run.finish()
}

// network gives every NATS server a network namespace of its own, so that it can be cut off without being stopped.
type network struct {
	t     *testing.T
	real  bool
	hosts []string
	name  string
}

func newNetwork(t *testing.T, n int) *network {
	net := &network{t: t, hosts: loopback(n), name: fmt.Sprint("fr", os.Getpid()%10000)}
	if os.Getuid() != 0 {
		t.Log("not root: NATS servers are not cut off, since that takes network namespaces")
		return net
	}
	subnet := fmt.Sprintf("10.213.%d.", os.Getpid()%250)
	commands := []string{"link add " + net.name + " type bridge", "addr add " + subnet + "1/24 dev " + net.name, "link set " + net.name + " up"}
	for i := range n {
		space, link := fmt.Sprint(net.name, "n", i), fmt.Sprint(net.name, "v", i)
		net.hosts[i] = fmt.Sprint(subnet, 10+i)
		commands = append(commands,
			"netns add "+space,
			"link add "+link+" type veth peer name eth0 netns "+space,
			"link set "+link+" master "+net.name+" up",
			"-n "+space+" addr add "+net.hosts[i]+"/24 dev eth0",
			"-n "+space+" link set eth0 up",
			"-n "+space+" link set lo up")
	}
	t.Cleanup(func() {
		for i := range n {
			_ = net.ip("netns del " + fmt.Sprint(net.name, "n", i))
		}
		_ = net.ip("link del " + net.name)
	})
	for _, command := range commands {
		if err := net.ip(command); err != nil {
			t.Logf("network namespaces cannot be made, so NATS servers are not cut off: %v", err)
			net.hosts = loopback(n)
			return net
		}
	}
	net.real = true
	return net
}

func (n *network) ip(command string) error {
	out, err := exec.Command("ip", strings.Fields(command)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", command, err, out)
	}
	return nil
}

// wrap runs a command in a server's namespace.
func (n *network) wrap(i int, cmd *exec.Cmd) *exec.Cmd {
	if n.real {
		cmd.Path = "/usr/sbin/ip"
		if found, err := exec.LookPath("ip"); err == nil {
			cmd.Path = found
		}
		cmd.Args = append([]string{"ip", "netns", "exec", fmt.Sprint(n.name, "n", i)}, cmd.Args...)
	}
	return cmd
}

// cutOff separates a server from everybody for a while. Nobody is told: packets just disappear.
func (n *network) cutOff(i int, d time.Duration) {
	link := fmt.Sprint(n.name, "v", i)
	if err := n.ip("link set " + link + " down"); err != nil {
		n.t.Fatal(err)
	}
	time.Sleep(d)
	if err := n.ip("link set " + link + " up"); err != nil {
		n.t.Fatal(err)
	}
}
