package gateway

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/grid/memory"
	"github.com/freshet-io/freshet/internal/registry"
	"github.com/freshet-io/freshet/internal/store"
)

// eventually waits for what another node has to learn first.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestAChangeIsInEffectOnEveryNodeBeforeItIsAnswered(t *testing.T) {
	w := newWorld(t)
	other := newNode(t, w.store, w.grid)
	up := newUpstreamServer(t)
	expect := func(path string, status int) {
		t.Helper()
		if a := other.call("GET", path); a.status != status {
			t.Fatalf("the other node answers %d to %s, not %d", a.status, path, status)
		}
	}
	for range 20 {
		w.register("/quote", up.URL, "name", "quote")
		expect("/quote", 200)
		w.must("POST", "/apis/quote/plugins", "name", "key-auth")
		expect("/quote", 401)
		w.must("PATCH", "/apis/quote", "request_path", "/other")
		expect("/quote", 404)
		expect("/other", 401)
		w.must("DELETE", "/apis/quote")
		expect("/other", 404)
	}
}

// deaf hears no notices.
type deaf struct{ *memory.Grid }

func (deaf) OnNotice(func(grid.Notice)) (stop func()) { return func() {} }

func TestALostNoticeIsMadeGood(t *testing.T) {
	w := newWorld(t)
	g, err := New(Options{Log: slog.New(slog.DiscardHandler), Counter: w.grid})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	r, err := Follow(t.Context(), g, registry.New(w.store, w.grid, registry.Options{}), deaf{w.grid}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	w.register("/quote", "http://x.example")
	eventually(t, "the node never looked", func() bool { return g.table.Load().byPath("/quote") != nil })
}

func TestWhileTheStoreIsAwayTheLastTableStays(t *testing.T) {
	s, err := store.Open(t.Context(), store.Location{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	g := memory.New(memory.Options{})
	t.Cleanup(func() { g.Close() })
	w := newNode(t, s, g)
	up := newUpstreamServer(t)
	w.register("/quote", up.URL)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "nobody noticed", func() bool { return strings.Contains(w.logs.String(), "the last known ones stay in use") })
	if a := w.call("GET", "/quote"); a.status != http.StatusOK {
		t.Errorf("answers %d %s", a.status, a.body)
	}
	if a := w.administer("POST", "/consumers", "username", "x"); a.status < 500 || !strings.HasPrefix(a.body, `{"message":`) {
		t.Errorf("the administration answers %d %s", a.status, a.body)
	}
}

func TestOneLookReadsOnlyWhatIsNew(t *testing.T) {
	w := newWorld(t)
	for i := range 20 {
		w.register(fmt.Sprint("/api-", i), "http://x.example")
	}
	before := w.gateway.table.Load()
	w.register("/another", "http://x.example")
	after := w.gateway.table.Load()
	for i := range 20 {
		path := fmt.Sprint("/api-", i)
		if before.paths[path] == nil || before.paths[path] != after.paths[path] {
			t.Errorf("%s was made anew", path)
		}
	}
	if before.paths["/another"] != nil || after.paths["/another"] == nil {
		t.Error("a table changed that was in use, or the new one lacks the API")
	}
	w.must("DELETE", "/apis/api-7")
	if got := w.gateway.table.Load(); len(got.paths) != 20 || got.paths["/api-7"] != nil {
		t.Errorf("after a deletion there are %d", len(got.paths))
	}
}

func TestKeysThatChangePlacesAreNotLost(t *testing.T) {
	table, known := &table{}, map[string]digest{}
	table.addCredentials([]freshet.Credential{{ID: "1", ConsumerID: "a", Key: "x"}, {ID: "2", ConsumerID: "b", Key: "y"}}, known)
	table.addCredentials([]freshet.Credential{{ID: "1", ConsumerID: "a", Key: "y"}, {ID: "2", ConsumerID: "b", Key: "x"}}, known)
	table.consumers = map[string]*freshet.Consumer{"a": {ID: "a"}, "b": {ID: "b"}}
	if a, b := table.consumer("y"), table.consumer("x"); len(table.keys) != 2 || a == nil || a.ID != "a" || b == nil || b.ID != "b" {
		t.Errorf("the table knows %v and %v", a, b)
	}
}

func TestFindingARouteAllocatesNothing(t *testing.T) {
	w := newWorld(t)
	w.register("/a/b/c/d", "http://x.example")
	w.register("/quote", "http://x.example")
	table := w.gateway.table.Load()
	r := mustRequest(t, "GET", "http://x/publish/v1/topics/x", nil)
	for _, path := range []string{"/publish/v1/topics/x", "/quote/x/y/z/1/2/3", "/nowhere/at/all"} {
		if n := testing.AllocsPerRun(100, func() { table.find(r, path) }); n != 0 {
			t.Errorf("%s costs %v allocations", path, n)
		}
	}
}

func TestHeadersAreWrittenAsPromised(t *testing.T) {
	w := newWorld(t)
	up := newUpstreamServer(t)
	w.register("/quote", up.URL)
	w.must("POST", "/apis/quote/plugins", "name", "rate-limiting", "config.minute", "5")
	_, answer := w.raw("GET /quote HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	for _, want := range []string{"\r\nX-RateLimit-Limit-minute: 5\r\n", "\r\nX-RateLimit-Remaining-minute: 4\r\n"} {
		if !strings.Contains(answer, want) {
			t.Errorf("%q is not in %q", want, answer)
		}
	}
}

func BenchmarkFind(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		t := &table{}
		for i := range n {
			t.addPath(fmt.Sprint("/api-", i), &route{})
		}
		r, err := http.NewRequest("GET", "http://x/", http.NoBody)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if t.find(r, "/api-7/some/path") == nil {
					b.Fatal(io.EOF)
				}
			}
		})
	}
}
