package server

import (
	"encoding/pem"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	api "github.com/freshet-io/freshet/client"
	"github.com/freshet-io/freshet/internal/settings"
)

// Freshet answers most requests without net/http. These tests send the same bytes to a server that does and to one that does not, and
// compare all that can be seen from outside: the answers, what becomes of the connection, what the upstream behind the gateway
// reads, and which publications take effect. They know nothing of how the fast path is built.

var (
	differentialCases = flag.Int("cases", 400, "how many random connections TestSameAnswers compares")
	differentialSeed  = flag.Uint64("seed", 1, "which ones")
)

// lanes is how many connections are compared at the same time, each with a topic and an API of its own.
const lanes = 6

// maxDifferent is how many differences are enough.
const maxDifferent = 10

// TestSameAnswers compares random connections. For a long run: -run TestSameAnswers -cases 100000 -seed 7 -timeout 2h.
func TestSameAnswers(t *testing.T) {
	d := newDifferential(t, lanes)
	var next, repeated, different atomic.Int64
	var wg sync.WaitGroup
	begun := time.Now()
	for _, l := range d.lanes {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(*differentialCases) && different.Load() < maxDifferent; i = next.Add(1) - 1 {
				c := randomConnection(rand.New(rand.NewPCG(*differentialSeed, uint64(i))))
				difference, again := l.compare(c)
				if again {
					repeated.Add(1)
				}
				if difference != "" {
					different.Add(1)
					t.Errorf("case %d of seed %d: %s\n%s", i, *differentialSeed, c, difference)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d of %d connections in %s; %d were repeated", min(next.Load(), int64(*differentialCases)), *differentialCases, time.Since(begun).Round(time.Millisecond), repeated.Load())
}

// FuzzConnections compares connections that the fuzzer makes up. In what is sent, {topic}, {key}, {subscriberkey} and {api} stand for what
// the servers call these, and {await} is where the client waits for its answers.
func FuzzConnections(f *testing.F) {
	for i := range uint64(40) {
		c := randomConnection(rand.New(rand.NewPCG(0, i)))
		f.Add(c.toSubscriber, c.cuts, c.sent)
	}
	d := newDifferential(f, 1)
	f.Fuzz(func(t *testing.T, toSubscriber bool, cuts uint64, sent string) {
		if len(sent) > 64<<10 {
			t.Skip("longer than anything that is decided by the bytes")
		}
		c := connection{toSubscriber, cuts, sent}
		if difference, _ := d.lanes[0].compare(c); difference != "" {
			t.Errorf("%s\n%s", c, difference)
		}
	})
}

// differential is a pair of servers with the same data.
type differential struct {
	lanes []*lane
}

// lane is a topic and an API that one connection at a time uses, on both servers.
type lane struct {
	fast, plain *side
}

// side is a lane of one server.
type side struct {
	name                string
	gateway, subscriber string // addresses
	client              *api.Client
	topic, key, api     string
	upstream            *recorder
	upstreamAddress     string
	replacer            *strings.Replacer // of what stands for these

	// Of the one who uses it.
	resets   int
	document string // of the last reset
	epoch    string // of its version
	version  int64
}

func newDifferential(t testing.TB, lanes int) *differential {
	t.Helper()
	data := t.TempDir()
	raise := func(s *settings.Settings) {
		s.Data = data
		s.Publish.RequestsPerMinute, s.Manage.RequestsPerMinute = 1e9, 1e9
	}
	first := run(t, raise)
	c, err := api.New(api.Options{BaseURL: "http://" + first.address("gateway")})
	if err != nil {
		t.Fatal(err)
	}
	topic, app := makeTopic(t.Context(), t, c)
	topics := []string{topic}
	for len(topics) < lanes {
		topic, err := c.CreateTopic(t.Context(), app.ID, api.NewTopic{Name: fmt.Sprint("Lane ", len(topics)), Publisher: api.NewPublisher{Type: "http-post"}})
		if err != nil {
			t.Fatal(err)
		}
		topics = append(topics, topic.ID)
	}
	token := c.Token()
	c.CloseIdleConnections()
	first.cancel()
	if err := first.wait(); err != nil {
		t.Fatal(err)
	}

	d := &differential{}
	for range topics {
		d.lanes = append(d.lanes, &lane{})
	}
	for _, withoutFastPath := range []bool{false, true} {
		copied := filepath.Join(t.TempDir(), "data")
		if err := os.CopyFS(copied, os.DirFS(data)); err != nil {
			t.Fatal(err)
		}
		_ = os.Chmod(copied, 0o700)
		r := runWith(t, Options{withoutFastPath: withoutFastPath}, func(s *settings.Settings) { raise(s); s.Data = copied })
		up := newUpstream(t, len(topics), withoutFastPath)
		client, err := api.New(api.Options{BaseURL: "http://" + r.address("gateway"), Token: token})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.CloseIdleConnections)
		for i, topic := range topics {
			s := &side{
				name:    map[bool]string{false: "with the fast path", true: "without it"}[withoutFastPath],
				gateway: r.address("gateway"), subscriber: r.address("subscriber"), client: client, topic: topic, key: app.PublisherKey,
				api: fmt.Sprint("lane", i), upstream: up.recorders[i], upstreamAddress: up.server.Listener.Addr().String(),
			}
			s.replacer = strings.NewReplacer("{topic}", topic, "{key}", s.key, "{subscriberkey}", app.SubscriberKey, "{api}", s.api)
			if status := administer(t, r, "", "/apis", "name", s.api, "request_path", "/"+s.api, "upstream_url", up.server.URL+"/"+s.api); status != 201 {
				t.Fatalf("registering answers %d", status)
			}
			s.reset()
			t.Cleanup(s.follow())
			if withoutFastPath {
				d.lanes[i].plain = s
			} else {
				d.lanes[i].fast = s
			}
		}
	}
	return d
}

// trustUpstreams makes this process trust the certificates of httptest. The upstreams of the server without a fast path have one, since
// requests to those are net/http's to send.
func trustUpstreams(dir string) error {
	up := httptest.NewTLSServer(nil)
	defer up.Close()
	file := filepath.Join(dir, "roots.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: up.Certificate().Raw}
	if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
		return err
	}
	return os.Setenv("SSL_CERT_FILE", file)
}

// attempts is how often a connection is repeated whose outcomes differ. Some things are chance, such as how much a server reads of what
// it refuses; they happen on both sides.
const attempts = 4

// compare returns what differs, and whether that took more than a look.
func (l *lane) compare(c connection) (difference string, repeated bool) {
	if isUndecided(c) {
		return "", false
	}
	fast, plain := l.fast.exchange(c), l.plain.exchange(c)
	if fast == plain || forgive(c, fast) == forgive(c, plain) {
		return "", false
	}
	ofFast, ofPlain := map[string]bool{forgive(c, fast): true}, map[string]bool{forgive(c, plain): true}
	for range attempts {
		f, p := forgive(c, l.fast.exchange(c)), forgive(c, l.plain.exchange(c))
		ofFast[f], ofPlain[p] = true, true
		if ofPlain[f] || ofFast[p] {
			return "", true
		}
	}
	return fmt.Sprintf("with the fast path:\n%s\nwithout it:\n%s", marked(fast, plain), marked(plain, fast)), true
}

// marked marks the lines of a text that another one has not.
func marked(text, other string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if !strings.Contains("\n"+other, "\n"+line+"\n") {
			lines[i] = "! " + line
		}
	}
	return strings.Join(lines, "\n")
}
