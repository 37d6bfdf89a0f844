package cluster

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/freshet-io/freshet/internal/pgtest"
)

var (
	figures  = flag.Bool("figures", false, "measure")
	storage  = flag.String("storage", "memory", "of the streams: memory or file")
	duration = flag.Duration("duration", 10*time.Second, "of each measurement")
	clients  = flag.Int("clients", 64, "publishers at the same time")
	rate     = flag.Int("rate", 2500, "publications per second while latency is measured")
	extra    = flag.String("args", "", "further arguments of the nodes")
	crowd    = flag.Int("crowd", 10_000, "topics with one subscriber each in the restart")
)

// node is one process.
type node struct {
	t                          *testing.T
	args                       []string
	cmd                        *exec.Cmd
	gateway, subscriber, admin string
}

func (n *node) start() {
	n.t.Helper()
	n.cmd = exec.Command(binary(n.t), n.args...)
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	n.cmd.Stderr = os.Stderr
	if err := n.cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) ready() {
	n.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if resp, err := http.Get("http://" + n.admin + "/readyz"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
	}
	n.t.Fatal("a node does not become ready")
}

func (n *node) kill() {
	_ = n.cmd.Process.Kill()
	_ = n.cmd.Wait()
}

var built string

// binary builds the program once.
func binary(t *testing.T) string {
	if built == "" {
		dir, err := os.MkdirTemp("", "freshet-bench-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir); built = "" })
		built = filepath.Join(dir, "freshet")
		cmd := exec.Command("go", "build", "-o", built, "./cmd/freshet")
		cmd.Dir = "../.."
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	return built
}

func free(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// cluster starts a NATS server in a process of its own and two nodes with all roles.
func cluster(t *testing.T) (a, b *node) {
	if !*figures {
		t.Skip("run it with -figures")
	}
	postgres := pgtest.NewInstance(t)
	nats := free(t)
	start := func(args ...string) *node {
		n := &node{t: t, gateway: free(t), subscriber: free(t), admin: free(t)}
		n.args = append([]string{"serve", "--gateway-listen", n.gateway, "--subscriber-listen", n.subscriber, "--admin-listen", n.admin,
			"--log-level", "error", "--data", t.TempDir(), "--database", postgres.URL, "--grid-storage", *storage, "--grid-replicas", "1",
			"--manage-requests-per-minute", "0"}, append(args, strings.Fields(*extra)...)...)
		n.start()
		t.Cleanup(func() { n.kill() })
		return n
	}
	start("--roles", "poll", "--nats", "embedded", "--nats-listen", nats)
	a, b = start("--nats", "nats://"+nats), start("--nats", "nats://"+nats)
	a.ready()
	b.ready()
	return a, b
}

// management is a signed-in client.
type management struct {
	t     *testing.T
	base  string
	token string
}

func (m *management) call(method, path string, in, out any) {
	m.t.Helper()
	body, _ := json.Marshal(in)
	req, err := http.NewRequest(method, m.base+path, bytes.NewReader(body))
	if err != nil {
		m.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+m.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		m.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		text, _ := io.ReadAll(resp.Body)
		m.t.Fatalf("%s %s: %d %s", method, path, resp.StatusCode, text)
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		m.t.Fatal(err)
	}
}

// topics makes an app with so many topics.
func topics(t *testing.T, n *node, count int) (key string, ids []string) {
	t.Helper()
	m := &management{t: t, base: "http://" + n.gateway + "/api/v1"}
	var session struct{ Token string }
	m.call("PUT", "/session", map[string]string{"email": "admin@freshet.local", "password": "freshet-admin"}, &session)
	m.token = session.Token
	var keys []string
	ids = make([]string, count)
	for begin := 0; begin < count; begin += 5000 { // the limit of requests in a minute is the user's
		var app struct {
			ID  string
			Key string `json:"publisher_key"`
		}
		m.call("POST", "/apps", map[string]string{"name": fmt.Sprint("bench ", begin)}, &app)
		keys = append(keys, app.Key)
		var wg sync.WaitGroup
		next := atomic.Int64{}
		for range 8 {
			wg.Go(func() {
				for i := begin + int(next.Add(1)) - 1; i < min(begin+5000, count); i = begin + int(next.Add(1)) - 1 {
					var topic struct{ ID string }
					m.call("POST", "/apps/"+app.ID+"/topics", map[string]any{"name": fmt.Sprint(i), "publisher": map[string]any{"type": "http-post", "config": map[string]any{}}}, &topic)
					ids[i] = topic.ID
				}
			})
		}
		wg.Wait()
	}
	return keys[0], ids
}

// publisher posts over one connection.
type publisher struct {
	conn net.Conn
	in   *bufio.Reader
	host string
	key  string
}

func dial(t *testing.T, address, key string) *publisher {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return &publisher{conn: conn, in: bufio.NewReader(conn), host: address, key: key}
}

func (p *publisher) post(topic string, body []byte) (int, error) {
	_, err := fmt.Fprintf(p.conn, "POST /publish/v1/topics/%s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nX-Sd-Publisher-Key: %s\r\nContent-Length: %d\r\n\r\n%s",
		topic, p.host, p.key, len(body), body)
	if err != nil {
		return 0, err
	}
	resp, err := http.ReadResponse(p.in, nil)
	if err != nil {
		return 0, err
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, resp.Body.Close()
}

var text = strings.Repeat("lorem ipsum ", 20)

func document(n int64) []byte {
	return fmt.Appendf(nil, `{"at":%d,"n":%d,"symbol":"ACME","text":"%s","bid":%d.5,"ask":%d.75}`, time.Now().UnixNano(), n, text, n%100, n%100+1)
}

// subscribe follows a topic over a plain connection and calls event with each line of data.
func subscribe(address, topic, lastID string, event func(id, data string)) (net.Conn, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	if _, err = fmt.Fprintf(conn, "GET /v1/topics/%s HTTP/1.1\r\nHost: x\r\nLast-Event-ID: %s\r\n\r\n", topic, lastID); err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(conn, 1024)
	status, err := in.ReadString('\n')
	if err != nil || !strings.Contains(status, " 200 ") {
		conn.Close()
		return nil, fmt.Errorf("%s %w", status, err)
	}
	go func() {
		id := ""
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			if value, ok := strings.CutPrefix(line, "id: "); ok {
				id = strings.TrimSpace(value)
			}
			if value, ok := strings.CutPrefix(line, "data: "); ok {
				event(id, value)
			}
		}
	}()
	return conn, nil
}

func TestThroughput(t *testing.T) {
	a, b := cluster(t)
	key, ids := topics(t, a, 1000)
	var received atomic.Int64
	for _, id := range ids {
		conn, err := subscribe(b.subscriber, id, "", func(string, string) { received.Add(1) })
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	for _, to := range []struct {
		name  string
		nodes []*node
	}{{"one node", []*node{a}}, {"both nodes", []*node{a, b}}} {
		received.Store(0)
		var done, failed atomic.Int64
		var wg sync.WaitGroup
		began := time.Now()
		for i := range *clients {
			p := dial(t, to.nodes[i%len(to.nodes)].gateway, key)
			wg.Go(func() {
				defer p.conn.Close()
				for n := int64(i); time.Since(began) < *duration; n += int64(*clients) {
					if status, err := p.post(ids[n%1000], document(n)); err != nil || status != 204 {
						failed.Add(1)
						continue
					}
					done.Add(1)
				}
			})
		}
		wg.Wait()
		t.Logf("publications to %s: %.0f/s, %d failed; events on the other node: %.0f/s", to.name, float64(done.Load())/duration.Seconds(), failed.Load(), float64(received.Load())/duration.Seconds())
	}
}

func TestLatency(t *testing.T) {
	a, b := cluster(t)
	key, ids := topics(t, a, 1000)
	var mu sync.Mutex
	var took []time.Duration
	measuring := atomic.Bool{}
	for _, id := range ids {
		conn, err := subscribe(b.subscriber, id, "", func(_, data string) {
			now := time.Now().UnixNano()
			at := data[strings.Index(data, `"/at","value":`)+len(`"/at","value":`):]
			end := strings.IndexAny(at, ",}")
			if sent, err := strconv.ParseInt(at[:max(end, 0)], 10, 64); err == nil && measuring.Load() {
				mu.Lock()
				took = append(took, time.Duration(now-sent))
				mu.Unlock()
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	// Open loop: a publication is due when it is due, whether or not those before it are done.
	due := make(chan int64, 100_000)
	var wg sync.WaitGroup
	var posted []time.Duration
	for range *clients {
		p := dial(t, a.gateway, key)
		wg.Go(func() {
			defer p.conn.Close()
			for n := range due {
				began := time.Now()
				if status, err := p.post(ids[n%1000], document(n)); err != nil || status != 204 {
					t.Errorf("%d %v", status, err)
				}
				mu.Lock()
				posted = append(posted, time.Since(began))
				mu.Unlock()
			}
		})
	}
	begin := time.Now()
	for n := int64(0); time.Since(begin) < *duration+2*time.Second; {
		if time.Since(begin) > 2*time.Second {
			measuring.Store(true)
		}
		for due2 := int64(time.Since(begin).Seconds() * float64(*rate)); n < due2; n++ {
			due <- n
		}
		time.Sleep(time.Millisecond)
	}
	close(due)
	wg.Wait()
	time.Sleep(time.Second)
	mu.Lock()
	defer mu.Unlock()
	t.Logf("%d publications/s, POST to a subscriber on another node: %s; POST to its answer: %s", *rate, quantiles(took), quantiles(posted))
}

func quantiles(d []time.Duration) string {
	if len(d) == 0 {
		return "nothing"
	}
	slices.Sort(d)
	at := func(q float64) time.Duration { return d[int(q*float64(len(d)-1))].Round(10 * time.Microsecond) }
	return fmt.Sprintf("p50 %v, p99 %v, p99.9 %v, max %v (%d)", at(.5), at(.99), at(.999), at(1), len(d))
}

func TestRestart(t *testing.T) {
	a, b := cluster(t)
	_, ids := topics(t, a, *crowd)
	open := func() (time.Duration, int) {
		var wg sync.WaitGroup
		began := time.Now()
		next, failed := atomic.Int64{}, atomic.Int64{}
		for range 200 {
			wg.Go(func() {
				for i := next.Add(1) - 1; i < int64(len(ids)); i = next.Add(1) - 1 {
					for deadline := time.Now().Add(time.Minute); ; {
						_, err := subscribe(b.subscriber, ids[i], "", func(string, string) {})
						if err == nil {
							break
						}
						if time.Now().After(deadline) {
							failed.Add(1)
							break
						}
						time.Sleep(rand.N(50 * time.Millisecond))
					}
				}
			})
		}
		wg.Wait()
		return time.Since(began), int(failed.Load())
	}
	took, failed := open()
	t.Logf("%d topics with a subscriber each: all streams open after %v, %d failed", len(ids), took.Round(time.Millisecond), failed)
	b.kill()
	began := time.Now()
	b.start()
	b.ready()
	ready := time.Since(began)
	took, failed = open()
	t.Logf("after kill -9: ready after %v, all streams open again after %v, %d failed", ready.Round(time.Millisecond), (ready + took).Round(time.Millisecond), failed)
}
