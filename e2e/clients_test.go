package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// publicClients are the clients that follow, by the program in e2e/clients that runs them. Each comes to hold one document
// for each applier. The old SDKs know no topics, only data sources and an app token; the token makes full documents
// arrive under the name they listen for.
var publicClients = []struct {
	program string
	names   []string
}{
	{"go", []string{"curl", "go-sse", "r3labs"}},
	{"node.mjs", []string{"eventsource", "streamdataio-js-sdk 2.0.2"}},
	{"browser.mjs", []string{"EventSource", "event-source-polyfill", "fetch-event-source", "streamdataio-js-sdk 2.0.2",
		"streamdataio-js-sdk 1.0.5", "streamdataio-js-sdk 1.0.5 polyfill"}},
}

// hasty are clients that take an id for seen when they have read its line, or an event for whole when they have read its data,
// although it ends only with the empty line behind. Nothing a server sends can help them if the connection breaks in
// between, so theirs break within the data.
var hasty = map[string]bool{"fetch-event-source": true, "go-sse": true, "r3labs": true, "streamdataio-js-sdk 2.0.2": true}

func TestPublicClientsEndWithTheSameDocument(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	following := map[string]*witness{}
	for _, c := range publicClients {
		for name, w := range s.follow(c.program, c.names) {
			following[c.program+" "+name] = w
		}
	}
	s.publish(1)
	s.until(following)
	s.cutting.Store(true)
	s.publish(150)
	s.restart(syscall.SIGTERM)
	s.publish(100)
	s.restart(syscall.SIGKILL)
	s.publish(100)
	s.cutting.Store(false)
	// One by one, so that whoever the restart left without a document has one to wait for, and the slowest sees some.
	for range 5 {
		s.publish(1)
		s.until(following)
	}
	for name, w := range following {
		if w.events() < 5 {
			t.Errorf("%s saw %d documents; it did not follow", name, w.events())
		}
	}
}

// TestOldSDKsFollowAnyAPI uses the public SDKs of the original service as they were meant to be used: they are given the URL
// of an API and an app token, and the server polls the API for them.
func TestOldSDKsFollowAnyAPI(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.api.must(http.StatusOK, "PATCH", "/api/v1/apps/"+s.app.ID, map[string]any{
		"auto_provisioning_allowed": true, "default_configurations": map[string]any{"http-poller": map[string]any{"polling_frequency": 100}},
	}, nil)
	var current atomic.Value
	current.Store(s.history.add(s.random))
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, current.Load().(string)) // the poller asks again
	}))
	t.Cleanup(origin.Close)
	s.path = "/" + origin.URL + "/quotes.json"
	following := map[string]*witness{}
	for program, names := range map[string][]string{
		"node.mjs":    {"streamdataio-js-sdk 2.0.2"},
		"browser.mjs": {"streamdataio-js-sdk 2.0.2", "streamdataio-js-sdk 1.0.5", "streamdataio-js-sdk 1.0.5 polyfill"},
	} {
		for name, w := range s.follow(program, names) {
			following[program+" "+name] = w
		}
	}
	for round := range 8 {
		s.until(following)
		s.cutting.Store(round > 1 && round < 5)
		current.Store(s.history.add(s.random))
	}
	s.until(following)
}

// scene is a server with one topic, and unreliable ways to it.
type scene struct {
	t      *testing.T
	random *rand.Rand
	data   string

	gateway, subscriber string // addresses

	server  *process
	api     *api
	app     app
	topic   named
	path    string      // of what is followed
	cutting atomic.Bool // connections break at random while it is set

	history history
}

// history knows every document that was published.
type history struct {
	mu       sync.Mutex
	versions map[string]int // by canonical text
	newest   int
}

func newScene(t *testing.T) *scene {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	s := &scene{t: t, random: rand.New(rand.NewPCG(seed, 9)), data: t.TempDir()}
	s.gateway, s.subscriber = freeAddress(t, "127.0.0.1"), freeAddress(t, "127.0.0.1")
	s.history.versions = map[string]int{}
	s.server = start(t, s.args()...)
	s.api = signIn(t, s.server)
	s.app = s.api.createApp("followed")
	s.api.must(http.StatusCreated, "POST", "/api/v1/apps/"+s.app.ID+"/topics", postTopic("followed"), &s.topic)
	s.path = "/v1/topics/" + s.topic.ID
	return s
}

// restart ends the server as the signal does, and starts it again where it was.
func (s *scene) restart(signal syscall.Signal) {
	s.t.Helper()
	s.server.Signal(signal)
	s.server.Wait()
	s.server = start(s.t, s.args()...)
}

// args are those of every server of the scene, at addresses that stay free over a restart.
func (s *scene) args() []string {
	return []string{"--data", s.data, "--drain-timeout", "2s", "--gateway-listen", s.gateway, "--subscriber-listen", s.subscriber} // a drain takes as long as it may
}

// publish sends random versions of the document, one by one and not too fast for anybody.
func (s *scene) publish(times int) {
	s.t.Helper()
	pace := time.NewTicker(20 * time.Millisecond)
	defer pace.Stop()
	for range times {
		publishTo(s.t, s.server, s.app, s.topic, s.history.add(s.random))
		<-pace.C
	}
}

// add makes the next version of the document: a feed with insertions anywhere, quotes that move, text in many scripts.
func (h *history) add(random *rand.Rand) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.newest++
	words := []string{"été", "naïve\nline", "東京", "a/b~c", "<b>\u2028", "🙂", "%20+&"} // no "": evanphx/json-patch cannot find such a member
	feed := make([]any, 3+random.IntN(12))
	for i := range feed {
		feed[i] = map[string]any{"id": random.IntN(20), "text": words[random.IntN(len(words))], "price": float64(random.IntN(10000)) / 100}
	}
	quotes := map[string]any{}
	for range random.IntN(10) {
		quotes[words[random.IntN(len(words))]] = []any{random.IntN(3), nil, random.IntN(2) == 0}
	}
	text, err := json.Marshal(map[string]any{"version": h.newest, "feed": feed, "quotes": quotes, "deep": map[string]any{"er": map[string]any{"n": random.IntN(5)}}})
	if err != nil {
		panic(err)
	}
	h.versions[canonical(text)] = h.newest
	return string(text)
}

// version returns which version a document is, 0 if it never was published.
func (h *history) version(document []byte) (version, newest int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.versions[canonical(document)], h.newest
}

func canonical(text []byte) string {
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return "not JSON: " + string(text)
	}
	out, err := json.Marshal(v) // sorts keys
	if err != nil {
		panic(err)
	}
	return string(out)
}

// witness is what a client was seen to hold.
type witness struct {
	mu   sync.Mutex
	held map[string]int // version by applier
	seen int
	more chan struct{} // closed and replaced when there is news
}

func (w *witness) events() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen
}

// hold notes that the client now holds a version, and reports whether it went back in time.
func (w *witness) hold(applier string, version int) (back bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	back = version < w.held[applier]
	w.held[applier] = version
	w.seen++
	close(w.more)
	w.more = make(chan struct{})
	return back
}

func (w *witness) now() (held map[string]int, more <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	held = map[string]int{}
	for applier, version := range w.held {
		held[applier] = version
	}
	return held, w.more
}

// until returns when every client holds the newest version, by every applier.
func (s *scene) until(all map[string]*witness) {
	s.t.Helper()
	_, newest := s.history.version(nil)
	deadline := time.After(patience)
	for name, w := range all {
		for {
			held, more := w.now()
			reached := len(held) > 0
			for _, version := range held {
				reached = reached && version == newest
			}
			if reached {
				break
			}
			select {
			case <-more:
			case <-deadline:
				s.t.Fatalf("%s holds versions %v, not %d", name, held, newest)
			}
		}
	}
}

// follow runs a program of e2e/clients with clients that follow the topic, each over a way of its own.
func (s *scene) follow(program string, names []string) map[string]*witness {
	s.t.Helper()
	all := map[string]*witness{}
	var args []string
	for _, name := range names {
		all[name] = &witness{held: map[string]int{}, more: make(chan struct{})}
		url := "http://" + s.unreliable(hasty[name]) + s.path
		if strings.HasPrefix(name, "streamdataio") {
			url += "?X-Sd-Token=" + s.app.SubscriberKey
		}
		args = append(args, name, url)
	}
	cmd := clientProgram(s.t, program, args)
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		s.listen(out, all)
	}()
	s.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // fails only if it has ended
		<-read
		_ = cmd.Wait() // a program that ended early was noticed by its silence
	})
	return all
}

// listen reads what the clients say until their program ends.
func (s *scene) listen(out io.Reader, all map[string]*witness) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var said struct {
			Client, Applier, Error, Failed string
			Document                       json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &said); err != nil {
			s.t.Errorf("a client said %q", lines.Text())
			continue
		}
		switch w := all[said.Client]; {
		case said.Failed != "":
			s.t.Errorf("%s: %s", said.Client, said.Failed)
		case said.Error != "":
			s.t.Errorf("%s was told of an error: %s", said.Client, said.Error)
		default:
			version, _ := s.history.version(said.Document)
			if version == 0 {
				s.t.Errorf("%s holds a document that never was: %s", said.Client, said.Document)
			}
			if w.hold(said.Applier, version) {
				s.t.Errorf("%s went back to version %d", said.Client, version)
			}
		}
	}
}

// clientProgram prepares a program of e2e/clients.
func clientProgram(t *testing.T, program string, args []string) *exec.Cmd {
	t.Helper()
	var cmd *exec.Cmd
	if program == "go" {
		binary := filepath.Join(t.TempDir(), "clients")
		build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".")
		build.Dir, build.Env = "clients", plainBuild()
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("building the Go clients: %v\n%s", err, out)
		}
		cmd = exec.Command(binary, args...)
	} else {
		installPackages(t, "clients")
		cmd = exec.Command("node", append([]string{"clients/" + program}, args...)...)
	}
	cmd.Stderr = os.Stderr
	return cmd
}

// unreliable listens on an address that leads to the subscriber interface. While the scene cuts, each connection breaks
// after a random number of bytes: anywhere, or within the data of an event.
func (s *scene) unreliable(withinData bool) (address string) {
	s.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { l.Close() })
	target := s.server.Subscriber
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return // the test is over
			}
			go s.relay(client.(*net.TCPConn), target, withinData)
		}
	}()
	return l.Addr().String()
}

func (s *scene) relay(client *net.TCPConn, target string, withinData bool) {
	defer client.Close()
	server, err := net.Dial("tcp", target)
	if err != nil {
		return // restarting
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(server, client) // ends when either side does
		server.Close()
	}()
	left := rand.IntN(40_000)
	buf := make([]byte, 64<<10)
	for {
		n, err := server.Read(buf)
		cut := false
		if left -= n; left < 0 && s.cutting.Load() {
			n, cut = breakingPoint(buf[:n], withinData)
		}
		if _, gone := client.Write(buf[:n]); err != nil || gone != nil || cut {
			if rand.IntN(2) == 0 {
				_ = client.SetLinger(0) // half of the connections end with a reset
			}
			return
		}
	}
}

// breakingPoint chooses after how many bytes a connection breaks, if it does.
func breakingPoint(b []byte, withinData bool) (n int, cut bool) {
	if !withinData {
		return rand.IntN(len(b) + 1), true
	}
	data := bytes.LastIndex(b, []byte("\ndata: "))
	if data < 0 {
		return len(b), false
	}
	id := bytes.Index(b[data:], []byte("\nid: "))
	if id < 0 {
		return len(b), false
	}
	return data + rand.IntN(id), true // its last byte is missing at least: with all of it, the clients that need this take it for whole
}

var npmInstalled sync.Map // of *sync.Once by folder

// installPackages runs npm ci in a folder, once; without npm the test fails and says so. No script of any package runs.
func installPackages(t *testing.T, dir string) {
	t.Helper()
	once, _ := npmInstalled.LoadOrStore(dir, sync.OnceValue(func() error {
		if newer(filepath.Join(dir, "node_modules/.package-lock.json"), filepath.Join(dir, "package-lock.json")) {
			return nil
		}
		npm := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
		npm.Dir = dir
		if out, err := npm.CombinedOutput(); err != nil {
			return fmt.Errorf("npm ci in %s: %w\n%s", dir, err, out)
		}
		return nil
	}))
	if err := once.(func() error)(); err != nil {
		t.Fatal(err)
	}
}

// newer reports whether a file exists and is newer than the other.
func newer(file, other string) bool {
	a, err := os.Stat(file)
	if err != nil {
		return false
	}
	b, err := os.Stat(other)
	return err == nil && a.ModTime().After(b.ModTime())
}
