package router_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/grid/jetstream"
	"github.com/freshet-io/freshet/internal/grid/natsserver"
	"github.com/freshet-io/freshet/internal/router"
)

// clusterHour is what an hour of a script that lets time pass is on a cluster, where time cannot be hurried. Scripts leave some
// minutes between a moment and what depends on it, so that a busy machine may be seconds late.
const clusterHour = 8 * time.Second

// natsServer is one NATS server for all tests of the package.
var natsServer = sync.OnceValues(func() (*natsserver.Server, error) {
	dir, err := os.MkdirTemp("", "freshet-router-")
	if err != nil {
		return nil, err
	}
	cleanUp = func() { os.RemoveAll(dir) }
	return natsserver.Start(context.Background(), natsserver.Options{Name: "test", Dir: dir})
})

var cleanUp func()

func TestMain(m *testing.M) {
	code := m.Run()
	if cleanUp != nil {
		if s, err := natsServer(); err == nil {
			s.Close()
		}
		cleanUp()
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// cluster returns the grids of several nodes of one cluster.
func cluster(t *testing.T, nodes int, ttl time.Duration) []grid.Grid {
	t.Helper()
	server, err := natsServer()
	if err != nil {
		t.Fatal(err)
	}
	prefix := "t" + strings.ToLower(freshet.NewID())
	var all []grid.Grid
	for range nodes {
		g, err := jetstream.Open(t.Context(), jetstream.Options{InProcess: server, Prefix: prefix, MessageTTL: ttl})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { g.Close() })
		all = append(all, g)
	}
	return all
}

// TestWhatOneNodeTookAnotherOneShows: a document is read, and a stream begins, with what was published anywhere before.
func TestWhatOneNodeTookAnotherOneShows(t *testing.T) {
	t.Parallel()
	grids := cluster(t, 2, time.Hour)
	a, b := router.New(grids[0], router.Options{}), router.New(grids[1], router.Options{})
	defer a.Close()
	defer b.Close()
	topic := freshet.Topic{ID: freshet.NewID(), Publisher: freshet.Publisher{Type: freshet.HTTPPost, Payload: freshet.Payload{Type: freshet.PayloadSnapshot}}}
	feed, err := b.Subscribe(t.Context(), &topic, router.Variant{})
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Close()
	for i := range 100 {
		want := fmt.Sprintf(`{"n":%d}`, i)
		if _, err := a.Publish(t.Context(), &topic, router.Publication{Body: []byte(want)}); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			if got, _, err := b.Document(t.Context(), topic); err != nil || string(got) != want {
				t.Fatalf("the other node shows %s, %v; published was %s", got, err, want)
			}
			continue
		}
		feed.Refresh(t.Context())
		if got := string(feed.Begin("").Bytes); !strings.Contains(got, want) {
			t.Fatalf("a stream on the other node begins with %s; published was %s", got, want)
		}
	}
}

// lossy is the way to a server on which nothing comes through for a while.
type lossy struct {
	*natsserver.Server
	stalled *atomic.Bool
}

func (l lossy) InProcessConn() (net.Conn, error) {
	conn, err := l.Server.InProcessConn()
	return stalling{conn, l.stalled}, err
}

type stalling struct {
	net.Conn
	stalled *atomic.Bool
}

// Read keeps what came in while the way is blocked.
func (s stalling) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	for s.stalled.Load() {
		time.Sleep(10 * time.Millisecond)
	}
	return n, err
}

// TestNobodyIsTakenBack: a reader who has seen an event on another node gets nothing older from one that has yet to hear of it.
func TestNobodyIsTakenBack(t *testing.T) {
	t.Parallel()
	server, err := natsServer()
	if err != nil {
		t.Fatal(err)
	}
	var stalled atomic.Bool
	prefix := "t" + strings.ToLower(freshet.NewID())
	var routers []*router.Router
	for _, way := range []lossy{{server, new(atomic.Bool)}, {server, &stalled}} {
		g, err := jetstream.Open(t.Context(), jetstream.Options{InProcess: way, Prefix: prefix, MessageTTL: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		r := router.New(g, router.Options{})
		defer r.Close()
		routers = append(routers, r)
	}
	defer stalled.Store(false)
	topic := freshet.Topic{ID: freshet.NewID(), Publisher: freshet.Publisher{Type: freshet.HTTPPost, Payload: freshet.Payload{Type: freshet.PayloadSnapshot}}}
	publish := func(n int) string {
		out, err := routers[0].Publish(t.Context(), &topic, router.Publication{Body: fmt.Appendf(nil, `{"n":%d}`, n)})
		if err != nil {
			t.Fatal(err)
		}
		return out.Position.String()
	}
	publish(0)
	feed, err := routers[1].Subscribe(t.Context(), &topic, router.Variant{})
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Close()

	stalled.Store(true)
	seen := publish(1)
	gone, leave := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer leave()
	if err := feed.Reach(gone, seen); freshet.KindOf(err) != freshet.Unavailable {
		t.Errorf("while the node hears nothing, the answer is %v", err)
	}
	reached := make(chan error, 1)
	go func() { reached <- feed.Reach(t.Context(), seen) }()
	stalled.Store(false)
	if err := <-reached; err != nil {
		t.Fatal(err)
	}
	if got := feed.Begin(seen).Bytes; len(got) > 0 {
		t.Errorf("whoever has the newest gets %s", got)
	}
	never := seen + "0"
	if err := feed.Reach(t.Context(), never); err != nil {
		t.Fatal(err)
	}
	if got := string(feed.Begin(never).Bytes); !strings.Contains(got, `data: {"n":1}`) {
		t.Errorf("whoever names an event that never was gets %s", got)
	}
}

// TestAPublicationWhoseNodeDiedIsNotMadeTwice: it was stored, and the node could not note that any more.
func TestAPublicationWhoseNodeDiedIsNotMadeTwice(t *testing.T) {
	t.Parallel()
	g := cluster(t, 1, time.Hour)[0]
	r := router.New(g, router.Options{})
	defer r.Close()
	topic := freshet.Topic{ID: freshet.NewID(), Publisher: freshet.Publisher{Type: freshet.HTTPPost, Payload: freshet.Payload{Type: freshet.PayloadSnapshot}}}
	publishBy := func(r *router.Router, p router.Publication) router.Outcome {
		t.Helper()
		out, err := r.Publish(t.Context(), &topic, p)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	publish := func(p router.Publication) router.Outcome { t.Helper(); return publishBy(r, p) }
	add := func(value int, key string) router.Publication {
		return router.Publication{Body: fmt.Appendf(nil, `[{"op":"add","path":"/-","value":%d}]`, value), Form: router.JSONPatch, IdempotencyKey: key}
	}
	publish(router.Publication{Body: []byte(`[]`)})
	dead := router.New(&dying{Grid: g}, router.Options{})
	defer dead.Close()
	publishBy(dead, add(1, "key"))
	want := `[1`
	for i := range 20 {
		publish(add(2+i, ""))
		want += fmt.Sprint(",", 2+i)
	}
	sum := sha256.Sum256([]byte("key"))
	record := "publication/" + topic.ID + "/" + hex.EncodeToString(sum[:16])
	value, err := g.Value(t.Context(), record)
	if err != nil || value == "" {
		t.Fatal("there is no record to lose", err)
	}
	body, _, _ := strings.Cut(value, " ")
	for _, left := range []string{"", body + " pending and dead"} {
		if _, err := g.Swap(t.Context(), record, value, left, time.Hour); err != nil {
			t.Fatal(err)
		}
		if out := publish(add(1, "key")); !out.Replayed {
			t.Errorf("the outcome is %+v", out)
		}
		if value, err = g.Value(t.Context(), record); err != nil {
			t.Fatal(err)
		}
	}
	if got, _, err := r.Document(t.Context(), topic); err != nil || string(got) != want+"]" {
		t.Errorf("the document is %s, %v", got, err)
	}
}

// TestANodeThatComesLateResumesFromTheVersionBefore: a subscriber who was on another node misses one version and gets the patch.
func TestANodeThatComesLateResumesFromTheVersionBefore(t *testing.T) {
	t.Parallel()
	grids := cluster(t, 2, time.Hour)
	a, b := router.New(grids[0], router.Options{}), router.New(grids[1], router.Options{})
	defer a.Close()
	defer b.Close()
	topic := freshet.Topic{ID: freshet.NewID(), Publisher: freshet.Publisher{Type: freshet.HTTPPost, Payload: freshet.Payload{Type: freshet.PayloadSnapshot}}}
	var ids []string
	for i := range 3 {
		out, err := a.Publish(t.Context(), &topic, router.Publication{Body: fmt.Appendf(nil, `{"n":%d,"rest":"stays"}`, i)})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, out.Position.String())
	}
	feed, err := b.Subscribe(t.Context(), &topic, router.Variant{})
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Close()
	for lastID, want := range map[string]string{
		ids[1]: `[{"op":"replace","path":"/n","value":2}]`, ids[0]: `{"n":2,"rest":"stays"}`, "": `{"n":2,"rest":"stays"}`, ids[2]: "",
	} {
		got := string(feed.Begin(lastID).Bytes)
		if !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("from %q it begins with %s", lastID, got)
		}
	}
	if _, err := a.Publish(t.Context(), &topic, router.Publication{Body: []byte(`{"n":3,"rest":"stays"}`)}); err != nil {
		t.Fatal(err)
	}
	feed.Refresh(t.Context())
	if got := string(feed.Begin(ids[1]).Bytes); !strings.Contains(got, `[{"op":"replace","path":"/n","value":3}]`) {
		t.Errorf("two versions later it begins with %s", got)
	}
}
