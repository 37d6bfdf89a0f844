package e2e

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// proxies are what people put in front, set up with nothing but the address to listen on and where to send requests. What
// else is written is what Debian's own configuration says, or keeps files in the test's directory.
var proxies = map[string]struct {
	command []string // {dir} and {listen} stand for what they say
	config  string
}{
	"nginx": {
		command: []string{"nginx", "-p", "{dir}", "-c", "{dir}/config"},
		config: `daemon off;
			pid {dir}/pid;
			error_log stderr;
			user root;
			events {}
			http {
				access_log off;
				gzip on;
				client_body_temp_path {dir}; proxy_temp_path {dir}; fastcgi_temp_path {dir}; uwsgi_temp_path {dir}; scgi_temp_path {dir};
				server { listen {listen}; location / { proxy_pass http://{upstream}; } }
			}`,
	},
	"haproxy": {
		command: []string{"haproxy", "-db", "-f", "{dir}/config"},
		config: `
defaults
	mode http
	timeout connect 5000
	timeout client 50000
	timeout server 50000
frontend all
	bind {listen}
	default_backend freshet
backend freshet
	server one {upstream}
`,
	},
	"caddy": {
		command: []string{"caddy", "run", "--adapter", "caddyfile", "--config", "{dir}/config"},
		config:  "{\n\tadmin off\n}\nhttp://{listen} {\n\treverse_proxy {upstream}\n}\n",
	},
	"apache2": {
		command: []string{"apache2", "-DFOREGROUND", "-f", "{dir}/config"},
		config: `ServerRoot {dir}
PidFile {dir}/pid
DefaultRuntimeDir {dir}
Mutex file:{dir}
ServerName localhost
Listen {listen}
ErrorLog /dev/stderr
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule filter_module /usr/lib/apache2/modules/mod_filter.so
LoadModule deflate_module /usr/lib/apache2/modules/mod_deflate.so
LoadModule proxy_module /usr/lib/apache2/modules/mod_proxy.so
LoadModule proxy_http_module /usr/lib/apache2/modules/mod_proxy_http.so
User www-data
Group www-data
AddOutputFilterByType DEFLATE text/html text/plain text/xml text/css text/javascript application/javascript
ProxyPass / http://{upstream}/
`,
	},
	"varnish": {
		command: []string{"varnishd", "-F", "-n", "{dir}", "-a", "{listen}", "-f", "{dir}/config"},
		config:  "vcl 4.1;\nbackend default { .host = \"{host}\"; .port = \"{port}\"; }\n",
	},
}

// TestEventsPassProxiesAtOnce publishes the next event only after the one before has arrived, and nothing else is sent: no
// heartbeat, no further event. What a proxy holds back for company would never arrive.
func TestEventsPassProxiesAtOnce(t *testing.T) {
	p := start(t, "--subscriber-heartbeat", "1h")
	a := signIn(t, p)
	made := a.createApp("behind proxies")
	for name := range proxies {
		t.Run(name, func(t *testing.T) {
			address := startProxy(t, name, p.Subscriber)
			for _, compressed := range []bool{false, true} {
				var topic named
				a.must(http.StatusCreated, "POST", "/api/v1/apps/"+made.ID+"/topics", postTopic(name), &topic)
				publishTo(t, p, made, topic, `{"n":0}`) // the first event comes together with the header
				path := "/v1/topics/" + topic.ID
				straight := throughProxy(t, "http://"+p.Subscriber+path, compressed)
				proxied := throughProxy(t, "http://"+address+path, compressed)
				awaitNumber(t, straight, 0, compressed)
				awaitNumber(t, proxied, 0, compressed)
				var later []time.Duration // than without the proxy
				for n := 1; n < 20; n++ {
					publishTo(t, p, made, topic, fmt.Sprintf(`{"n":%d}`, n))
					direct := awaitNumber(t, straight, n, compressed)
					later = append(later, awaitNumber(t, proxied, n, compressed).Sub(direct))
				}
				slices.Sort(later)
				median := later[len(later)/2]
				t.Logf("compressed: %v; later than without %s: median %v, at most %v", compressed, name, median, later[len(later)-1])
				// A proxy that flushes by the clock delays every event, a machine that is busy only some.
				if median > time.Second {
					t.Errorf("%s delays events by %v (compressed: %v)", name, median, compressed)
				}
			}
		})
	}
}

// line is one line of a stream, and when it arrived.
type line struct {
	text string
	at   time.Time
}

// awaitNumber waits for the event that a publication made, and returns when it arrived.
func awaitNumber(t *testing.T, lines <-chan line, n int, compressed bool) time.Time {
	t.Helper()
	want := []string{fmt.Sprintf(`data: {"n":%d}`, n), fmt.Sprintf(`data: [{"op":"replace","path":"/n","value":%d}]`, n)}
	timeout := time.After(patience)
	for {
		select {
		case got, more := <-lines:
			if got.text == want[0] || got.text == want[1] {
				return got.at
			}
			if !more {
				t.Fatalf("the stream ended before event %d (compressed: %v)", n, compressed)
			}
		case <-timeout:
			t.Fatalf("event %d is held back (compressed: %v)", n, compressed)
		}
	}
}

// throughProxy subscribes and returns the lines of the stream as they arrive.
func throughProxy(t *testing.T, url string, compressed bool) <-chan line {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Accept-Encoding", "gzip, deflate")
	if compressed {
		r.Header.Set("X-Sd-Compress", "true")
	}
	lines := make(chan line, 100)
	go func() {
		defer close(lines)
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Log(err)
			return
		}
		defer answer.Body.Close()
		body := io.Reader(answer.Body)
		if encoding := answer.Header.Get("Content-Encoding"); (encoding == "gzip") != compressed {
			t.Errorf("the stream is encoded as %q", encoding)
		}
		if compressed {
			if body, err = gzip.NewReader(body); err != nil {
				t.Log(err)
				return
			}
		}
		for text := bufio.NewScanner(body); text.Scan(); {
			select {
			case lines <- line{text.Text(), time.Now()}:
			case <-t.Context().Done():
				return
			}
		}
	}()
	return lines
}

func publishTo(t *testing.T, p *process, a app, topic named, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+p.Gateway+"/publish/v1/topics/"+topic.ID, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Sd-Publisher-Key", a.PublisherKey)
	answer, err := client.Do(r) // on a connection of its own: those to a server that was killed may not be known to be broken
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusNoContent {
		t.Fatalf("publishing answered %d", answer.StatusCode)
	}
}

// startProxy runs a proxy in front of an address until the test ends, and returns where it listens.
func startProxy(t *testing.T, name, upstream string) (address string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "proxy") // not the test's own: proxies give up root, and it is nobody else's
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil { //nolint:gosec // see above
		t.Fatal(err)
	}
	address = freeAddress(t, "127.0.0.1")
	host, port, _ := net.SplitHostPort(upstream)
	fill := strings.NewReplacer("{dir}", dir, "{listen}", address, "{upstream}", upstream, "{host}", host, "{port}", port)
	if err := os.WriteFile(filepath.Join(dir, "config"), []byte(fill.Replace(proxies[name].config)), 0o644); err != nil { //nolint:gosec // see above
		t.Fatal(err)
	}
	var command []string
	for _, word := range proxies[name].command {
		command = append(command, fill.Replace(word))
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir, "PATH="+os.Getenv("PATH")+":/usr/sbin")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said // one writer, so one at a time
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s: %v; scripts/needs installs it", name, err)
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // with its children; asked kindly, some wait for streams to end
		<-exited
		if t.Failed() {
			t.Logf("what %s said:\n%s", name, said.String())
		}
	})
	awaitListener(t, name, address, exited)
	return address
}

func awaitListener(t *testing.T, name, address string, exited <-chan struct{}) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
			return
		}
		select {
		case <-tick.C:
		case <-exited:
			t.Fatalf("%s ended at once", name)
		case <-deadline:
			t.Fatalf("%s does not listen: %v", name, err)
		}
	}
}
