package server

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/httpkit"
	"github.com/freshet-io/freshet/internal/settings"
)

var update = flag.Bool("update", false, "rewrite golden files")

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "freshet")
	if err == nil {
		err = trustUpstreams(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// patience bounds every wait in these tests; nothing should come near it.
const patience = time.Minute

// logLines collects JSON log lines and lets a test wait for one.
type logLines struct {
	mu    sync.Mutex
	lines []map[string]any
	more  chan struct{} // closed and replaced at each new line
}

func newLogLines() *logLines { return &logLines{more: make(chan struct{})} }

func (l *logLines) Write(p []byte) (int, error) {
	var line map[string]any
	if err := json.Unmarshal(p, &line); err != nil {
		return 0, fmt.Errorf("a log line that is not JSON: %q", p)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	close(l.more)
	l.more = make(chan struct{})
	return len(p), nil
}

func (l *logLines) find(msg string) (line map[string]any, more <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if line["msg"] == msg {
			return line, nil
		}
	}
	return nil, l.more
}

// running is a server inside the test.
type running struct {
	t      testing.TB
	logs   *logLines
	cancel context.CancelFunc
	done   chan error
}

// run starts a server on free ports and stops it at the end of the test.
func run(t testing.TB, change func(*settings.Settings)) *running {
	t.Helper()
	return runWithin(t, bounds{}, change)
}

// runWithin is run with other bounds than the usual ones.
func runWithin(t testing.TB, b bounds, change func(*settings.Settings)) *running {
	t.Helper()
	return runWith(t, Options{bounds: b}, change)
}

func runWith(t testing.TB, o Options, change func(*settings.Settings)) *running {
	t.Helper()
	s := settings.Default()
	s.Data = t.TempDir()
	s.Gateway.Listen, s.Admin.Listen, s.Subscriber.Listen = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	s.Log.Format = settings.LogJSON
	if change != nil {
		change(&s)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{t: t, logs: newLogLines(), cancel: cancel, done: make(chan error, 1)}
	go func() {
		o.Settings, o.Version, o.Log = s, "test", NewLogger(r.logs, &s)
		r.done <- Run(ctx, o)
	}()
	t.Cleanup(func() { cancel(); r.wait() })
	return r
}

// await returns the first log line with the message.
func (r *running) await(msg string) map[string]any {
	r.t.Helper()
	deadline := time.After(patience)
	for {
		line, more := r.logs.find(msg)
		if line != nil {
			return line
		}
		select {
		case <-more:
		case err := <-r.done:
			r.done <- err
			r.t.Fatalf("the server ended before it said %q: %v", msg, err)
		case <-deadline:
			r.t.Fatalf("the server did not say %q", msg)
		}
	}
}

func (r *running) wait() error {
	select {
	case err := <-r.done:
		r.done <- err // for whoever asks next
		return err
	case <-time.After(patience):
		r.t.Error("the server did not stop")
		return nil
	}
}

func (r *running) address(listener string) string {
	r.t.Helper()
	address, _ := r.await("ready")[listener].(string)
	return address
}

var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}

func get(t testing.TB, address, path string) (int, string) {
	t.Helper()
	resp, err := client.Get("http://" + address + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestReadyComesOnceEverythingServes(t *testing.T) {
	r := run(t, nil)
	for _, listener := range []string{"gateway", "admin", "subscriber"} {
		get(t, r.address(listener), "/")
	}
	if status, body := get(t, r.address("admin"), "/readyz"); status != http.StatusOK || !strings.Contains(body, `"ready":true`) {
		t.Errorf("readyz answers %d %s", status, body)
	}
}

func TestHealthMetricsAndProfilingAreOnTheAdminListenerOnly(t *testing.T) {
	r := run(t, nil)
	for path, want := range map[string]string{
		"/livez":             `"alive":true`,
		"/readyz":            `"phase":"serving"`,
		"/healthz":           `"phase":"serving"`,
		"/metrics":           `freshet_build_info{go=`,
		"/debug/pprof/":      "goroutine",
		"/debug/pprof/heap?": "",
	} {
		if status, body := get(t, r.address("admin"), path); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("admin answers %d to %s: %.200s", status, path, body)
		}
		if status, body := get(t, r.address("gateway"), path); status != http.StatusNotFound {
			t.Errorf("the gateway answers %d to %s: %.200s", status, path, body)
		}
		if _, body := get(t, r.address("subscriber"), path); !strings.Contains(body, `"code":40400`) {
			t.Errorf("the subscriber interface answers %s: %.200s", path, body)
		}
	}
}

func TestMetricsCoverTheRuntimeAndTheProcess(t *testing.T) {
	r := run(t, nil)
	_, body := get(t, r.address("admin"), "/metrics")
	for _, name := range []string{"go_goroutines", "process_open_fds", "process_resident_memory_bytes"} {
		if !strings.Contains(body, "\n"+name+" ") {
			t.Errorf("%s is missing", name)
		}
	}
}

func TestTheCommandLineIsNotShown(t *testing.T) {
	r := run(t, nil)
	if status, _ := get(t, r.address("admin"), "/debug/pprof/cmdline"); status != http.StatusNotFound {
		t.Errorf("it answers %d; flags may hold secrets", status)
	}
}

// halfRequest opens a request and never ends it, so that a drain has something to wait for.
func halfRequest(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\n"); err != nil {
		t.Fatal(err)
	}
	// Connections are accepted in order, so once a later one was answered, ours is not waiting in the backlog,
	// where a closing listener would reset it.
	get(t, address, "/")
	return conn
}

func TestReadinessGoesFirstAndTheAdminListenerLast(t *testing.T) {
	r := run(t, nil)
	gateway, admin := r.address("gateway"), r.address("admin")
	busy := halfRequest(t, gateway)
	r.cancel()
	r.await("draining")
	waitFor(t, "readyz to answer 503", func() bool {
		status, body := get(t, admin, "/readyz")
		return status == http.StatusServiceUnavailable && strings.Contains(body, `"phase":"draining"`)
	})
	waitFor(t, "new connections to be refused", func() bool {
		conn, err := net.Dial("tcp", gateway)
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	if status, _ := get(t, admin, "/metrics"); status != http.StatusOK {
		t.Errorf("metrics during the drain answer %d", status)
	}
	busy.Close()
	if err := r.wait(); err != nil {
		t.Errorf("a drain is no failure: %v", err)
	}
	r.await("stopped")
}

func TestDrainLetsRequestsFinish(t *testing.T) {
	p, err := listen(t.Context(), "gateway", "127.0.0.1:0", stallTimeout)
	if err != nil {
		t.Fatal(err)
	}
	entered, finish := make(chan struct{}), make(chan struct{})
	w := newWeb(p, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-finish
		_, _ = io.WriteString(w, "all of it")
	}), httpkit.NewStreams(1<<20), httpkit.StreamLimits{Stall: patience}, quiet)
	w.serve(make(chan error, 1))

	answer := make(chan string, 1)
	go func() {
		resp, err := client.Get("http://" + p.Addr().String())
		if err != nil {
			answer <- err.Error()
			return
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		answer <- string(body)
	}()
	<-entered
	drained := make(chan error, 1)
	go func() { drained <- w.drain(context.Background()) }()
	waitFor(t, "the listener to close", func() bool {
		conn, err := net.Dial("tcp", p.Addr().String())
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	close(finish)
	if got := <-answer; got != "all of it" {
		t.Errorf("the request under way got %q", got)
	}
	if err := <-drained; err != nil {
		t.Error(err)
	}
}

func TestDrainCutsWhatDoesNotFinishInTime(t *testing.T) {
	r := run(t, func(s *settings.Settings) { s.Drain.Timeout = 10 * time.Millisecond })
	halfRequest(t, r.address("gateway"))
	r.cancel()
	if err := r.wait(); err != nil {
		t.Errorf("a drain that ran out of time is no failure: %v", err)
	}
	if line := r.await("stopping had problems"); !strings.Contains(line["err"].(string), "gateway listener did not finish in time") {
		t.Errorf("it logged %v", line)
	}
}

// waitFor polls, because what it waits for happens on the other side of a socket and leaves no event behind.
func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain for " + what)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestAPortInUseIsOneLineThatSaysWhatToDo(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	r := run(t, func(s *settings.Settings) { s.Subscriber.Listen = taken.Addr().String() })
	err = r.wait()
	want := "cannot listen on " + taken.Addr().String() + ": the address is in use; stop what uses it, or set subscriber.listen to another address"
	if err == nil || err.Error() != want || freshet.KindOf(err) != freshet.Conflict {
		t.Errorf("got %v\nwant %s", err, want)
	}
	for _, msg := range []string{"ready", "stopped"} {
		if line, _ := r.logs.find(msg); line != nil {
			t.Errorf("it said %s", msg)
		}
	}
}

func TestAddressesThatCannotBeUsed(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.1:0":               "this machine has no such address",
		"no-such-host.invalid:8000": "the host name is unknown",
	} {
		_, err := listen(t.Context(), "gateway", address, stallTimeout)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "gateway.listen") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestListenersFollowTheRoles(t *testing.T) {
	for _, c := range []struct {
		roles               []settings.Role
		gateway, subscriber bool
	}{
		{settings.Roles(), true, true},
		{[]settings.Role{settings.RolePoll}, false, false},
		{[]settings.Role{settings.RoleSubscribe}, false, true},
		{[]settings.Role{settings.RolePublish, settings.RolePoll}, true, false},
	} {
		t.Run(fmt.Sprint(c.roles), func(t *testing.T) {
			r := run(t, func(s *settings.Settings) { s.Roles = c.roles })
			ready := r.await("ready")
			_, gateway := ready["gateway"]
			_, subscriber := ready["subscriber"]
			_, admin := ready["admin"]
			if gateway != c.gateway || subscriber != c.subscriber || !admin {
				t.Errorf("ready says %v", ready)
			}
		})
	}
}

func TestEveryRoleHasItsNeeds(t *testing.T) {
	for _, name := range settings.Roles() {
		if _, ok := roles[name]; !ok {
			t.Errorf("%s is not in the table", name)
		}
	}
	if len(roles) != len(settings.Roles()) {
		t.Errorf("the table has %d roles, the settings %d", len(roles), len(settings.Roles()))
	}
	if n := needsOf([]settings.Role{settings.RoleGateway}); n.parts[partRouter] || !n.parts[partStore] {
		t.Errorf("the gateway alone needs %v", n.parts)
	}
}

func TestOverlongHeadersAreRefused(t *testing.T) {
	r := run(t, nil)
	for _, listener := range []string{"gateway", "admin", "subscriber"} {
		req, err := http.NewRequest(http.MethodGet, "http://"+r.address(listener)+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Long", strings.Repeat("x", 32<<10))
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("%s answers %d", listener, resp.StatusCode)
		}
	}
}

func TestStoppingWhileStartingIsNoFailure(t *testing.T) {
	s := settings.Default()
	s.Gateway.Listen, s.Admin.Listen, s.Subscriber.Listen = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := Run(ctx, Options{Settings: s, Log: NewLogger(io.Discard, &s)}); err != nil {
		t.Error(err)
	}
}
