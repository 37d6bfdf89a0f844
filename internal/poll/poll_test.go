package poll

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/grid/memory"
	"github.com/freshet-io/freshet/internal/router"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// directory is the catalog as far as pollers know it.
type directory struct {
	mu      sync.Mutex
	topics  map[string]freshet.Topic
	retired []string
	down    error
}

func (d *directory) Source(_ context.Context, id string) (*catalog.Source, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	topic, ok := d.topics[id]
	if d.down != nil {
		return nil, d.down
	}
	if !ok {
		return nil, freshet.Errorf(freshet.NotFound, "no such topic")
	}
	return &catalog.Source{Topic: topic}, nil
}

func (d *directory) PollerTopics(_ context.Context, after string, limit int) (all []freshet.Topic, _ error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range d.topics {
		if t.ID > after {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b freshet.Topic) int { return strings.Compare(a.ID, b.ID) })
	return all[:min(limit, len(all))], nil
}

func (d *directory) Retire(ctx context.Context, id string, present func(context.Context) (bool, error)) error {
	if here, err := present(ctx); err != nil || here {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.topics, id)
	d.retired = append(d.retired, id)
	return nil
}

func (d *directory) set(id string, every time.Duration, change ...func(*freshet.Topic)) {
	topic := freshet.Topic{ID: id, AppID: "app", CreatedAt: time.Now(), Publisher: freshet.Publisher{
		Type: freshet.HTTPPoller, URL: "http://" + id + ".example.com/", PollEvery: &every, Payload: freshet.Payload{Type: freshet.PayloadSnapshot},
	}}
	for _, c := range change {
		c(&topic)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.topics[id] = topic
}

func auto(t *freshet.Topic) { t.AutoProvisioned = true }

func at(url string) func(*freshet.Topic) { return func(t *freshet.Topic) { t.Publisher.URL = url } }

// script is a target that answers from a function, and keeps time.
type script struct {
	mu     sync.Mutex
	start  time.Time
	polls  map[string][]time.Duration // when, by host
	asked  []*request
	answer func(n int, q *request) (*response, error) // n counts the polls of the host
	takes  time.Duration
	under  map[string]int // way, by host
	most   int
}

func newScript(f func(n int, q *request) (*response, error)) *script {
	return &script{start: time.Now(), polls: map[string][]time.Duration{}, answer: f, under: map[string]int{}}
}

func (s *script) fetch(ctx context.Context, q *request) (*response, error) {
	host := q.endpoint.url.Hostname()
	s.mu.Lock()
	s.polls[host] = append(s.polls[host], time.Since(s.start))
	s.asked = append(s.asked, q)
	n := len(s.polls[host])
	s.under[host]++
	s.most = max(s.most, s.under[host])
	takes := s.takes
	s.mu.Unlock()
	if takes > 0 {
		select {
		case <-time.After(takes):
		case <-ctx.Done():
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.under[host]--
	return s.answer(n, q)
}

func (s *script) times(id string) []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.polls[id+".example.com"])
}

func counting(n int, _ *request) (*response, error) {
	return &response{body: fmt.Appendf(nil, `{"n":%d}`, n)}, nil
}

func failing(kind freshet.Kind) (*response, error) { return nil, freshet.Errorf(kind, "It fails") }

// world is a poller and what it stands on. Everything in it lives in one bubble.
type world struct {
	t       *testing.T
	grid    *memory.Grid
	router  *router.Router
	catalog *directory
	target  *script
	poller  *Poller
}

func newWorld(t *testing.T, target *script, opts Options) *world {
	t.Helper()
	w := &world{t: t, grid: memory.New(memory.Options{}), catalog: &directory{topics: map[string]freshet.Topic{}}, target: target}
	w.router = router.New(w.grid, router.Options{})
	w.poller = w.node(opts)
	t.Cleanup(func() {
		_ = w.poller.Close()
		_ = w.router.Close()
		_ = w.grid.Close()
	})
	return w
}

func (w *world) node(opts Options) *Poller {
	p := newPoller(Parts{Catalog: w.catalog, Router: w.router, Grid: w.grid}, opts, w.target)
	p.start()
	return p
}

func (w *world) join(id string) (leave func()) {
	w.t.Helper()
	leave, err := w.grid.Join(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return leave
}

func (w *world) document(id string) string {
	w.t.Helper()
	body, _, err := w.router.Document(w.t.Context(), freshet.Topic{ID: id, Publisher: freshet.Publisher{Payload: freshet.Payload{Type: freshet.PayloadSnapshot}}})
	if err != nil {
		w.t.Fatal(err)
	}
	return string(body)
}

func (w *world) failure(id string) *freshet.SourceFailure {
	w.t.Helper()
	text, err := w.grid.Value(w.t.Context(), freshet.SourceValue(id))
	if err != nil {
		w.t.Fatal(err)
	}
	f, _ := freshet.ParseSourceFailure(text)
	return f
}

func (w *world) notify(scope grid.Scope, id string) {
	_ = w.grid.Notify(w.t.Context(), grid.Notice{Scope: scope, ID: id})
}

// after lets time pass and everything settle.
func after(d time.Duration) { time.Sleep(d); synctest.Wait() }

func near(got, want time.Duration) bool {
	return got >= want*8/10 && got <= want*12/10
}

func TestATopicIsPolledWhileSomebodyIsSubscribedAndTenSecondsMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newScript(counting), Options{})
		w.catalog.set("a", 2*time.Second)
		after(time.Minute)
		if got := w.target.times("a"); len(got) != 0 {
			t.Fatalf("polled without a subscriber at %v", got)
		}
		leave := w.join("a")
		synctest.Wait()
		if got := w.target.times("a"); len(got) != 1 || got[0] != time.Minute {
			t.Fatalf("the first subscriber did not have it polled at once: %v", got)
		}
		if got := w.document("a"); got != `{"n":1}` {
			t.Errorf("published %s", got)
		}
		after(20 * time.Second)
		got := w.target.times("a")
		for i := 1; i < len(got); i++ {
			if !near(got[i]-got[i-1], 2*time.Second) {
				t.Errorf("polls at %v", got)
			}
		}
		leave()
		left := time.Since(w.target.start)
		after(time.Minute)
		got = w.target.times("a")
		if last := got[len(got)-1]; last < left+6*time.Second || last > left+10*time.Second {
			t.Errorf("the last subscriber left at %v, the last poll was at %v", left, last)
		}
		if st := w.poller.Stats(); st.Sources != 0 || st.Polls[changed] != uint64(len(got)) || st.Shards != numShards {
			t.Errorf("in the end: %+v", st)
		}
	})
}

func TestASubscriberWhoComesBackInTimeFindsItStillPolled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newScript(counting), Options{})
		w.catalog.set("a", 2*time.Second, auto)
		leave := w.join("a")
		after(3 * time.Second)
		leave()
		after(9 * time.Second)
		leave = w.join("a")
		after(30 * time.Second)
		if len(w.catalog.retired) != 0 || len(w.target.times("a")) < 18 {
			t.Errorf("retired %v after polls at %v", w.catalog.retired, w.target.times("a"))
		}
		leave()
		after(11 * time.Second)
		if !slices.Equal(w.catalog.retired, []string{"a"}) {
			t.Errorf("retired %v", w.catalog.retired)
		}
	})
}

func TestChangesOfATopicTakeEffectAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newScript(counting), Options{})
		w.catalog.set("a", time.Hour)
		defer w.join("a")()
		after(time.Second)
		w.catalog.set("a", time.Hour, at("http://b.example.com/"))
		w.notify(grid.ScopeTopic, "a")
		synctest.Wait()
		if got := w.target.times("b"); len(got) != 1 {
			t.Errorf("the new URL was polled at %v", got)
		}
		w.catalog.set("a", time.Second, at("http://b.example.com/"))
		w.notify(grid.ScopeApp, "app")
		after(10 * time.Second)
		if got := w.target.times("b"); len(got) < 10 || len(w.target.times("a")) != 1 {
			t.Errorf("the new frequency had it polled at %v", got)
		}
		w.catalog.set("a", time.Hour, at("http://c.example.com/"))
		w.notify(grid.ScopeCatalog, "")
		synctest.Wait()
		if got := w.target.times("c"); len(got) != 1 {
			t.Errorf("the third URL was polled at %v", got)
		}
		w.catalog.set("a", time.Second, at("http://b.example.com/"))
		w.notify(grid.ScopeTopic, "a")
		synctest.Wait()
		w.catalog.mu.Lock()
		delete(w.catalog.topics, "a")
		w.catalog.mu.Unlock()
		w.notify(grid.ScopeTopic, "a")
		synctest.Wait()
		before := len(w.target.times("b"))
		after(time.Minute)
		if got := w.target.times("b"); len(got) != before || w.poller.Stats().Sources != 0 {
			t.Errorf("a deleted topic was polled at %v", got[before:])
		}
	})
}

func TestAnAnswerThatComesAfterTheURLChangedIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(func(_ int, q *request) (*response, error) {
			return &response{body: fmt.Appendf(nil, "%q", q.endpoint.url.Hostname())}, nil
		})
		s.takes = time.Second
		w := newWorld(t, s, Options{})
		w.catalog.set("a", time.Hour)
		defer w.join("a")()
		after(500 * time.Millisecond)
		w.catalog.set("a", time.Hour, at("http://b.example.com/"))
		w.notify(grid.ScopeTopic, "a")
		after(700 * time.Millisecond)
		if got := w.document("a"); got != "" {
			t.Errorf("the old answer was published: %s", got)
		}
		after(time.Second)
		if got := w.document("a"); got != `"b.example.com"` || w.poller.Stats().Polls[dropped] != 1 {
			t.Errorf("published %s", got)
		}
	})
}

func TestRefreshPollsNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newScript(counting), Options{})
		w.catalog.set("a", time.Hour)
		w.catalog.set("b", time.Second)
		defer w.join("a")()
		after(time.Minute)
		w.notify(grid.ScopePoll, "a")
		w.notify(grid.ScopePoll, "b")
		w.notify(grid.ScopePoll, "nobody's")
		after(time.Minute)
		if a, b := w.target.times("a"), w.target.times("b"); len(a) != 2 || len(b) != 1 || w.document("b") != `{"n":1}` {
			t.Errorf("polled at %v, and the one without subscribers at %v", a, b)
		}
		if n := w.poller.Stats().Sources; n != 1 {
			t.Errorf("%d sources stay", n)
		}
	})
}

func TestConditionsAreSentAndEverySixtiethRequestIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newScript(func(_ int, q *request) (*response, error) {
			if q.etag != "" {
				return &response{notModified: true}, nil
			}
			return &response{body: []byte("{}"), etag: `"stuck"`, lastModified: "then"}, nil
		}), Options{})
		w.catalog.set("a", time.Second)
		defer w.join("a")()
		after(150 * time.Second)
		full := []int{}
		for i, q := range w.target.asked {
			if q.etag == "" {
				full = append(full, i)
			} else if q.etag != `"stuck"` || q.lastModified != "then" {
				t.Fatalf("sent %q, %q", q.etag, q.lastModified)
			}
		}
		if len(full) != 3 || full[0] != 0 || full[1] != 60 || full[2] != 120 {
			t.Errorf("full requests: %v", full)
		}
	})
}

func TestADocumentThatNeverChangesDoesNotExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newScript(func(_ int, q *request) (*response, error) {
			if q.etag != "" {
				return &response{notModified: true}, nil
			}
			return &response{body: []byte("{}"), etag: `"e"`}, nil
		}), Options{MessageTTL: 40 * time.Second})
		w.catalog.set("a", 5*time.Second)
		defer w.join("a")()
		after(2 * time.Minute)
		full := 0
		for _, q := range w.target.asked {
			if q.etag == "" {
				full++
			}
		}
		if full < 7 { // one in four is enough for a TTL of eight polls
			t.Errorf("%d full requests of %d", full, len(w.target.asked))
		}
	})
}

func TestALostDocumentIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newScript(func(_ int, q *request) (*response, error) {
			if q.etag != "" {
				return &response{notModified: true}, nil
			}
			return &response{body: []byte("{}"), etag: `"e"`}, nil
		}), Options{})
		w.catalog.set("a", time.Second)
		defer w.join("a")()
		after(5 * time.Second)
		_ = w.grid.Delete(t.Context(), "a")
		after(1100 * time.Millisecond)
		if w.document("a") != "{}" {
			t.Error("the document is still lost")
		}
	})
}

func TestWithoutADocumentTheFirstFailureIsFatal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newScript(func(n int, _ *request) (*response, error) {
			if n == 1 {
				return failing(freshet.SourceUnknownHost)
			}
			return counting(n, nil)
		}), Options{})
		w.catalog.set("a", time.Second)
		defer w.join("a")()
		synctest.Wait()
		f := w.failure("a")
		if f == nil || f.Kind != freshet.SourceUnknownHost || !f.Fatal || f.Msg != "It fails" {
			t.Fatalf("told %+v", f)
		}
		after(1100 * time.Millisecond)
		if w.failure("a") != nil || w.document("a") != `{"n":2}` {
			t.Errorf("after the recovery: %+v, %s", w.failure("a"), w.document("a"))
		}
	})
}

func TestWithADocumentTheThirdFailureIsToldOncePerOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newScript(func(n int, _ *request) (*response, error) {
			if n%20 == 1 {
				return counting(n, nil)
			}
			return failing([]freshet.Kind{freshet.SourceFailed, freshet.SourceUnreachable}[n%2])
		}), Options{})
		w.catalog.set("a", time.Second)
		notices := 0
		defer w.grid.OnNotice(func(n grid.Notice) {
			if n.Scope == grid.ScopeSource && n.ID == "a" {
				notices++
			}
		})()
		defer w.join("a")()
		after(2500 * time.Millisecond) // failures at about 1 and 2 s
		if f := w.failure("a"); f != nil {
			t.Fatalf("told after two failures: %+v", f)
		}
		after(2 * time.Second) // and at 4 s
		f := w.failure("a")
		if f == nil || f.Fatal || f.Kind != freshet.SourceFailed || notices != 1 {
			t.Fatalf("told %+v, %d notices", f, notices)
		}
		since := f.Since
		after(5 * time.Minute)
		if f := w.failure("a"); f == nil || !f.Since.Equal(since) || notices != 1 {
			t.Errorf("during the outage: %+v, %d notices", f, notices)
		}
		if got := w.document("a"); got != `{"n":1}` {
			t.Errorf("the last good document is %s", got)
		}
		got := w.target.times("a")
		for i := 2; i < len(got); i++ {
			want := min(time.Second<<(i-2), longestBackOff)
			if pause := got[i] - got[i-1]; !near(pause, want) {
				t.Errorf("after %d failures the pause was %v, want about %v", i-1, pause, want)
			}
		}
		after(20 * time.Minute)
		if notices < 3 {
			t.Errorf("%d notices for the end of an outage and the next one", notices)
		}
	})
}

// tight is a quota of so many bytes for a document.
type tight int

func (q tight) Reserve(_ context.Context, before, after int) (func(error), error) {
	if after > int(q) && after >= before {
		return nil, freshet.Errorf(freshet.DocumentLimit, "The documents of the app are too long")
	}
	return func(error) {}, nil
}

func TestAPolledTopicOverItsQuotaKeepsItsDocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var limit atomic.Int64
		limit.Store(10)
		w := newWorld(t, newScript(func(n int, _ *request) (*response, error) {
			if n == 1 {
				return &response{body: []byte(`{"n":1}`), etag: `"1"`}, nil
			}
			return &response{body: []byte(`{"n":"much longer"}`), etag: `"2"`}, nil
		}), Options{Quota: func(*catalog.Source) router.Quota { return tight(limit.Load()) }})
		w.catalog.set("a", time.Second)
		defer w.join("a")()
		after(10 * time.Second)
		f := w.failure("a")
		if f == nil || f.Fatal || f.Kind != freshet.DocumentLimit || !strings.Contains(f.Msg, "quota document_bytes") {
			t.Fatalf("told %+v", f)
		}
		if got := w.document("a"); got != `{"n":1}` {
			t.Errorf("the document is %s", got)
		}
		limit.Store(100)
		w.notify(grid.ScopeApp, "app")
		after(2 * time.Minute)
		if f := w.failure("a"); f != nil {
			t.Errorf("with a higher quota: %+v", f)
		}
		if got := w.document("a"); got != `{"n":"much longer"}` {
			t.Errorf("the document is %s", got)
		}
	})
}

func TestRefusedCredentialsEndStreamsOfAutoProvisionedTopicsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newScript(func(n int, _ *request) (*response, error) {
			if n == 1 {
				return counting(n, nil)
			}
			return failing(freshet.SourceUnauthorized)
		}), Options{})
		w.catalog.set("a", time.Second, auto)
		w.catalog.set("b", time.Second)
		defer w.join("a")()
		defer w.join("b")()
		after(1100 * time.Millisecond)
		if f := w.failure("a"); f == nil || !f.Fatal || f.Kind != freshet.SourceUnauthorized {
			t.Errorf("auto-provisioned: %+v", f)
		}
		if f := w.failure("b"); f != nil {
			t.Errorf("made by hand, after one failure: %+v", f)
		}
		after(5 * time.Second)
		if f := w.failure("b"); f == nil || f.Fatal {
			t.Errorf("made by hand, after three failures: %+v", f)
		}
	})
}

func TestRetryAfterIsHonouredEvenIfSubscribersComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newScript(func(n int, _ *request) (*response, error) {
			if n == 1 {
				return nil, &freshet.Error{Kind: freshet.SourceFailed, Msg: "Slow down", RetryAfter: 5 * time.Minute}
			}
			return counting(n, nil)
		}), Options{})
		for range 4 {
			w.catalog.set("a", time.Second, auto)
			leave := w.join("a")
			synctest.Wait()
			if f := w.failure("a"); f == nil || f.Msg != "Slow down" {
				t.Fatalf("the subscriber is not told: %+v", f)
			}
			leave()
			after(time.Minute)
			if len(w.catalog.topics) != 0 {
				t.Fatal("the topic stays without subscribers")
			}
			w.notify(grid.ScopeTopic, "a") // as the catalog does after deleting it
			synctest.Wait()
		}
		w.catalog.set("a", time.Second, auto)
		defer w.join("a")()
		after(2 * time.Minute)
		got := w.target.times("a")
		if len(got) < 2 || got[1] < 5*time.Minute || got[1] > 5*time.Minute+2*time.Second {
			t.Errorf("polled at %v", got[:min(3, len(got))])
		}
	})
}

func TestTheLastSubscriberTakesTheFailureAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newScript(func(int, *request) (*response, error) { return failing(freshet.SourceFailed) }), Options{})
		w.catalog.set("a", time.Second)
		leave := w.join("a")
		synctest.Wait()
		leave()
		after(15 * time.Second)
		if f := w.failure("a"); f != nil {
			t.Errorf("the next subscriber would be told %+v before anybody polled", f)
		}
	})
}

func TestADocumentThatDoesNotFitIsTheSourcesFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newScript(func(int, *request) (*response, error) {
			return &response{body: []byte(`<html>secret</html>`), etag: `"e"`}, nil
		}), Options{})
		w.catalog.set("a", time.Second)
		defer w.join("a")()
		after(3 * time.Second)
		if f := w.failure("a"); f == nil || f.Kind != freshet.SourceUnreadable || strings.Contains(f.Msg, "html") {
			t.Errorf("told %+v", f)
		}
		for _, q := range w.target.asked {
			if q.etag != "" {
				t.Error("a document that was not taken was asked for by its tag")
			}
		}
	})
}

func TestOneRequestAtATimeForATopicAndABudgetForItsHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(counting)
		s.takes = 3 * time.Second
		w := newWorld(t, s, Options{HostConcurrency: 2})
		w.catalog.set("slow", 100*time.Millisecond)
		leave := w.join("slow")
		after(10 * time.Second)
		if s.most != 1 || len(w.target.times("slow")) > 4 {
			t.Errorf("%d at a time, polls at %v", s.most, w.target.times("slow"))
		}
		leave()
		after(20 * time.Second)
		for i := range 10 {
			id := fmt.Sprintf("topic%d", i)
			w.catalog.set(id, 10*time.Second, at("http://one.example.com/"+id))
			defer w.join(id)()
		}
		after(16 * time.Second)
		if got := w.target.times("one"); s.most != 2 || len(got) < 10 {
			t.Errorf("%d at a time, %d polls", s.most, len(got))
		}
		asked := map[string]bool{}
		for _, q := range w.target.asked {
			asked[q.endpoint.url.Opaque] = true
		}
		if len(asked) != 11 {
			t.Errorf("%d of 11 topics had their turn", len(asked))
		}
	})
}

func TestACatalogThatIsDownDelaysOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newScript(counting), Options{})
		w.catalog.set("a", time.Second)
		w.catalog.down = freshet.Errorf(freshet.Unavailable, "down")
		defer w.join("a")()
		after(5 * time.Second)
		w.catalog.mu.Lock()
		w.catalog.down = nil
		w.catalog.mu.Unlock()
		after(3 * time.Second)
		if w.document("a") == "" {
			t.Error("it was forgotten")
		}
	})
}

func TestNodesShareTopicsAndSucceedEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newScript(counting), Options{})
		const topics = 200
		for i := range topics {
			id := fmt.Sprintf("topic%d", i)
			w.catalog.set(id, time.Second)
			defer w.join(id)()
		}
		after(3 * time.Second)
		second := w.node(Options{})
		after(5 * time.Second)
		a, b := w.poller.Stats(), second.Stats()
		if a.Sources+b.Sources != topics || a.Shards+b.Shards != numShards || b.Shards < numShards/4 || a.Shards < numShards/4 {
			t.Errorf("the nodes have %d and %d topics, %d and %d shards", a.Sources, b.Sources, a.Shards, b.Shards)
		}
		before := w.target.total()
		after(10 * time.Second)
		if n := w.target.total() - before; n < topics*9 || n > topics*11 {
			t.Errorf("%d polls in ten seconds of %d topics", n, topics)
		}
		second.kill()
		after(5 * time.Second)
		if a := w.poller.Stats(); a.Sources != topics || a.Shards != numShards {
			t.Errorf("five seconds after the other died: %+v", a)
		}
		third := w.node(Options{})
		after(3 * time.Second)
		_ = third.Close()
		after(2 * leaseRound)
		if a := w.poller.Stats(); a.Shards != numShards {
			t.Errorf("after the third said good-bye: %d shards", a.Shards)
		}
		second.closeQuietly()
	})
}

func (s *script) total() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, times := range s.polls {
		n += len(times)
	}
	return n
}

// kill ends a node without a word: its claims stay until they run out.
func (p *Poller) kill() {
	p.closed.Store(true)
	for _, stop := range p.stops {
		stop()
	}
	p.cancel()
	p.working.Wait()
	for i := range p.shards {
		p.shards[i].endLease()
	}
}

func (p *Poller) closeQuietly() {
	for i := range p.shards {
		p.dropShard(i)
	}
}

func TestANodeThatWasAsleepPublishesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(counting)
		s.takes = time.Second
		w := newWorld(t, s, Options{})
		w.catalog.set("a", time.Hour)
		defer w.join("a")()
		after(500 * time.Millisecond)
		for i := range w.poller.shards {
			w.poller.shards[i].until.Store(new(time.Time)) // as if its leases had run out meanwhile
			_, _ = w.grid.Swap(t.Context(), shardValue(i), w.poller.leases.me, "another node", time.Minute)
		}
		after(time.Second)
		if got := w.document("a"); got != "" {
			t.Errorf("published %s", got)
		}
	})
}

func TestHintsThatGotLostAreMadeGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newScript(counting), Options{})
		w.catalog.set("b", time.Second, auto, func(t *freshet.Topic) { t.CreatedAt = time.Now() })
		defer w.join("a")() // before there is such a topic
		synctest.Wait()
		w.catalog.set("a", time.Second)
		after(2*sweepEvery + time.Second)
		if len(w.target.times("a")) == 0 {
			t.Error("a topic with a subscriber is not polled")
		}
		if !slices.Equal(w.catalog.retired, []string{"b"}) {
			t.Errorf("retired %v; what a killed node left behind stays", w.catalog.retired)
		}
	})
}

func TestCrowdsAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newScript(counting), Options{})
		const topics = 500
		for i := range topics {
			id := fmt.Sprintf("topic%d", i)
			w.catalog.set(id, 2*time.Second)
			defer w.join(id)()
		}
		synctest.Wait()
		_ = w.poller.Close()
		w.target.mu.Lock()
		clear(w.target.polls)
		w.target.start = time.Now()
		w.target.mu.Unlock()
		w.poller = w.node(Options{}) // finds them all at once
		after(3 * time.Second)
		w.wantApart(topics, 0)
	})
}

func TestACrowdThatComesTogetherIsPolledAtOnceAndThenApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newScript(counting), Options{})
		const topics = 2000
		for i := range topics {
			id := fmt.Sprintf("topic%d", i)
			w.catalog.set(id, 2*time.Second)
			defer w.join(id)()
		}
		after(6 * time.Second)
		for i := range topics {
			at := w.target.times(fmt.Sprintf("topic%d", i))
			if at[0] != 0 {
				t.Fatalf("topic %d waited %v for its first poll", i, at[0])
			}
			if gap := at[1]; gap < 900*time.Millisecond || gap > 3100*time.Millisecond {
				t.Errorf("topic %d was polled again after %v", i, gap)
			}
			if gap := at[2] - at[1]; !near(gap, 2*time.Second) {
				t.Errorf("topic %d was polled for the third time after %v", i, gap)
			}
		}
		w.wantApart(topics, 1)
	})
}

// wantApart wants the nth polls of topic0, topic1 and so on spread over time.
func (w *world) wantApart(topics, nth int) {
	w.t.Helper()
	buckets := map[time.Duration]int{}
	for i := range topics {
		buckets[w.target.times(fmt.Sprintf("topic%d", i))[nth]/(100*time.Millisecond)]++
	}
	for at, n := range buckets {
		if n > topics/5 {
			w.t.Errorf("%d of %d polls were within the same tenth of a second, %d", n, topics, at)
		}
	}
}

func TestAFailureSurvivesItsJourney(t *testing.T) {
	f := &freshet.SourceFailure{Kind: freshet.SourceExpired, Msg: `It "says" so`, Since: time.UnixMilli(1794700000123), Fatal: true}
	got, ok := freshet.ParseSourceFailure(f.Text())
	if !ok || *got != *f {
		t.Errorf("%+v became %+v", f, got)
	}
	var form map[string]any
	if err := json.Unmarshal([]byte(f.Text()), &form); err != nil || form["kind"] != "expired" {
		t.Errorf("it travels as %s", f.Text())
	}
	if _, ok := freshet.ParseSourceFailure("nonsense"); ok {
		t.Error("nonsense is a failure")
	}
}
