package router_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/fanout"
	gridmemory "github.com/freshet-io/freshet/internal/grid/memory"
	"github.com/freshet-io/freshet/internal/memory"
	"github.com/freshet-io/freshet/internal/router"
)

// A counted router holds its documents against an account.
type counted struct {
	*router.Router
	t *testing.T
}

func newCounted(t *testing.T, most int64, opts router.Options) counted {
	t.Helper()
	account := memory.NewAccount(most)
	g := gridmemory.New(gridmemory.Options{Account: account.Add})
	opts.Memory, opts.GridCounts = account, true
	r := router.New(g, opts)
	t.Cleanup(func() { _ = r.Close(); _ = g.Close() })
	return counted{r, t}
}

func (c counted) publish(topic *freshet.Topic, body string) error {
	_, err := c.Publish(context.Background(), topic, router.Publication{Body: []byte(body)})
	return err
}

func (c counted) mustPublish(topic *freshet.Topic, body string) {
	c.t.Helper()
	if err := c.publish(topic, body); err != nil {
		c.t.Fatal(err)
	}
}

func (c counted) follow(topic *freshet.Topic) *router.Feed {
	c.t.Helper()
	f, err := c.Subscribe(context.Background(), topic, router.Variant{Event: "snapshot"})
	if err != nil {
		c.t.Fatal(err)
	}
	return f
}

func zeros(bytes int) string { return "[0" + strings.Repeat(",0", bytes/2) + "]" }

// lastID returns the id of the last event in a batch.
func lastID(b fanout.Batch) string {
	_, id, _ := strings.Cut(string(b.Bytes[bytes.LastIndex(b.Bytes, []byte("id: ")):]), "id: ")
	return strings.TrimSpace(strings.SplitN(id, "\n", 2)[0])
}

func TestADocumentThatNobodyFollowsIsItsTextAlone(t *testing.T) {
	r := newCounted(t, 0, router.Options{CacheBytes: 1 << 20})
	topic := newTopic(t, "snapshot")
	text := zeros(1 << 20)
	for i := range 3 {
		r.mustPublish(&topic, fmt.Sprintf("[%d,%s", i, text[1:]))
		if held, most := r.Stats().Memory, int64(len(text)+8<<10); held > most {
			t.Fatalf("a document of %d bytes takes %d, more than %d", len(text), held, most)
		}
	}
	f := r.follow(&topic)
	r.mustPublish(&topic, text)
	if held := r.Stats().Memory; held < 5<<20 {
		t.Errorf("a document that is followed is read again at every publication: it takes %d bytes", held)
	}
	f.Close()
	if held := r.Stats().Memory; held > int64(len(text)+8<<10) {
		t.Errorf("its last reader left, and it takes %d bytes", held)
	}
	if body, _, err := r.Document(t.Context(), topic); err != nil || string(body) != text {
		t.Errorf("the document is another one, or %v", err)
	}
	if err := r.Forget(t.Context(), topic.ID); err != nil || r.Stats().Memory != 0 {
		t.Errorf("a deleted document takes %d bytes, %v", r.Stats().Memory, err)
	}
}

func TestWhatCanBeMadeAgainIsBoundedOverAllTopics(t *testing.T) {
	const kept = 1 << 20
	r := newCounted(t, 0, router.Options{CacheBytes: kept})
	text := zeros(10 << 10)
	for i := range 40 {
		topic := newTopic(t, "snapshot")
		for version := range 3 {
			r.mustPublish(&topic, fmt.Sprintf("[%d,%s", i+version, text[1:]))
		}
		st := r.Stats()
		if texts := int64(i+1) * int64(len(text)+2<<10); st.Cached > kept || st.Memory > texts+kept {
			t.Fatalf("after %d topics: %d bytes are held, %d of them can be made again", i+1, st.Memory, st.Cached)
		}
	}
	if st := r.Stats(); st.Cached < kept/2 {
		t.Errorf("only %d bytes are kept for publications that come again", st.Cached)
	}
}

func TestATopicThatNobodyFollowsKeepsNextToNoHistory(t *testing.T) {
	r := newCounted(t, 0, router.Options{})
	for name, topic := range map[string]freshet.Topic{"snapshots": newTopic(t, "snapshot"), "items": newTopic(t, "item .id")} {
		for i := range 400 {
			r.mustPublish(&topic, fmt.Sprintf(`[{"id":1,"n":%d,"pad":"%s"}]`, i, strings.Repeat("x", 4<<10)))
		}
		if held := r.Stats().Memory; held > 64<<10 {
			t.Errorf("%s: a topic of 4 KiB takes %d bytes", name, held)
		}
		if err := r.Forget(t.Context(), topic.ID); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAReaderWhoComesBackWithinAMinuteGetsAPatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newCounted(t, 0, router.Options{})
		topic := newTopic(t, "snapshot")
		pad := strings.Repeat("x", 4<<10)
		publish := func(i int) { r.mustPublish(&topic, fmt.Sprintf(`{"n":%d,"pad":"%s"}`, i, pad)) }
		publish(0)
		f := r.follow(&topic)
		seen := lastID(f.Begin(""))
		f.Close()
		for i := range 59 {
			publish(i + 1)
			time.Sleep(time.Second)
		}
		f = r.follow(&topic)
		if b := f.Begin(seen); len(b.Bytes) > 200 || b.Events != 1 {
			t.Errorf("after 59 seconds: %d events, %.80s", b.Events, b.Bytes)
		}
		f.Close()
		time.Sleep(2 * time.Minute)
		publish(1000)
		if held := r.Stats().Memory; held > 32<<10 {
			t.Errorf("two minutes after the last reader left the topic takes %d bytes", held)
		}
	})
}

func TestAPublicationThatDoesNotFitIsRefusedAndOthersPass(t *testing.T) {
	const most = 4 << 20
	r := newCounted(t, most, router.Options{CacheBytes: 1 << 20})
	small := newTopic(t, "snapshot")
	r.mustPublish(&small, `{"n":9}`)
	var large []freshet.Topic
	var refused error
	for refused == nil {
		topic := newTopic(t, "snapshot")
		if refused = r.publish(&topic, zeros(1<<20)); refused == nil {
			large = append(large, topic)
		}
		if held := r.Stats().Memory; held > most {
			t.Fatalf("%d bytes are held, of %d", held, most)
		}
	}
	if freshet.KindOf(refused) != freshet.Unavailable || !strings.Contains(refused.Error(), "memory for documents is used up") || len(large) != 3 {
		t.Errorf("the document after %d was refused with %v", len(large), refused)
	}
	if r.Stats().Full != 1 {
		t.Errorf("%d refusals were counted", r.Stats().Full)
	}
	items := newTopic(t, "item .id")
	if err := r.publish(&items, "["+strings.Repeat(`{"id":1},`, 200000)+`{"id":2}]`); err != nil {
		t.Errorf("two items, said often, were refused: %v", err)
	}
	r.mustPublish(&small, `{"n":10,"more":"`+strings.Repeat("x", 1000)+`"}`)
	r.mustPublish(&large[0], strings.Replace(zeros(1<<20), "0", "1", 1))
	r.mustPublish(&large[1], "[]")
	another := newTopic(t, "snapshot")
	r.mustPublish(&another, zeros(900<<10))
	if err := r.Forget(t.Context(), large[2].ID); err != nil {
		t.Fatal(err)
	}
	last := newTopic(t, "snapshot")
	r.mustPublish(&last, zeros(900<<10))
}

func TestItemsDoNotGrowBeyondTheBound(t *testing.T) {
	const most = 4 << 20
	r := newCounted(t, most, router.Options{})
	topic := newTopic(t, "item .id")
	var err error
	for i := 0; err == nil && i < 1000; i++ {
		var b strings.Builder
		for k := range 1000 {
			fmt.Fprintf(&b, `,{"id":%d}`, 1000*i+k)
		}
		err = r.publish(&topic, "["+b.String()[1:]+"]")
		if held := r.Stats().Memory; held > most+most/8 {
			t.Fatalf("%d bytes are held, of %d", held, most)
		}
	}
	if freshet.KindOf(err) != freshet.Unavailable {
		t.Errorf("items went on until %v", err)
	}
	r.mustPublish(&topic, `[{"id":1,"changed":true}]`)
}

func TestFollowedDocumentsGiveUpTheirTapesWhereThereIsNoRoom(t *testing.T) {
	const most = 8 << 20
	r := newCounted(t, most, router.Options{})
	text := zeros(512 << 10)
	for range 6 {
		topic := newTopic(t, "snapshot")
		r.mustPublish(&topic, text)
		f := r.follow(&topic)
		defer f.Close()
		f.Begin("")
		for i := range 3 {
			r.mustPublish(&topic, fmt.Sprintf("[%d%s", i, text[2:]))
		}
	}
	if held := r.Stats().Memory; held > most+6<<20 {
		t.Errorf("six followed documents of 512 KiB take %d bytes, of %d", held, most)
	}
}

func TestLongDocumentsWaitForEachOtherAndShortOnesForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		work := memory.NewSemaphore(memory.Limits{Bytes: 1 << 20, Holders: 1, Wait: 5 * time.Second, Queue: 4})
		r := newCounted(t, 0, router.Options{Work: work})
		long, short := newTopic(t, "snapshot"), newTopic(t, "snapshot")
		document := func(n int) string { return fmt.Sprintf(`[%d,"%s"]`, n, strings.Repeat("x", 200<<10)) }
		r.mustPublish(&long, document(1))
		f := r.follow(&long)
		defer f.Close()
		seen := lastID(f.Begin(""))
		r.mustPublish(&long, document(2))

		if !work.TryAcquire(1 << 20) {
			t.Fatal("a publication that is done still holds its place")
		}
		began := time.Now()
		r.mustPublish(&short, `{"n":1}`)
		if !time.Now().Equal(began) {
			t.Error("a short publication waited")
		}
		if b := f.Begin(seen); !strings.Contains(string(b.Bytes), "event: snapshot") {
			t.Errorf("nobody had the time to compare, and a reader got %.80s", b.Bytes)
		}
		err := r.publish(&long, document(3))
		e, _ := err.(*freshet.Error)
		if e == nil || e.Kind != freshet.Unavailable || e.RetryAfter <= 0 || time.Since(began) != 5*time.Second || r.Stats().Busy != 1 {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		_, err = r.Publish(t.Context(), &long, router.Publication{Form: router.JSONPatch, Body: []byte(`[{"op":"replace","path":"/0","value":2}]`)})
		if freshet.KindOf(err) != freshet.Unavailable {
			t.Errorf("a short patch of a long document: %v", err)
		}
		time.AfterFunc(time.Second, func() { work.Release(1 << 20) })
		r.mustPublish(&long, document(3))
	})
}

func TestADocumentThatIsPublishedAgainIsPutAwayInTheGridToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = time.Hour
		g := gridmemory.New(gridmemory.Options{MessageTTL: ttl})
		defer g.Close()
		r := router.New(g, router.Options{MessageTTL: ttl})
		defer r.Close()
		c, topic := counted{r, t}, newTopic(t, "snapshot")
		f := c.follow(&topic)
		c.mustPublish(&topic, zeros(64<<10))
		time.Sleep(ttl / 2)
		c.mustPublish(&topic, zeros(64<<10)) // which renews it
		f.Close()
		time.Sleep(20 * time.Minute) // nobody uses it any more here
		if st := r.Stats(); st.Topics != 0 || st.Memory != 0 {
			t.Fatalf("the topic is still in use: %+v", st)
		}
		c.mustPublish(&topic, zeros(64<<10))
		if held := r.Stats().Memory; held > 80<<10 {
			t.Errorf("the document came back from the grid with its tape: it takes %d bytes", held)
		}
	})
}

func TestADocumentThatIsGoneIsNotPutAwayAnyMore(t *testing.T) {
	r := newCounted(t, 0, router.Options{})
	topic := newTopic(t, "snapshot")
	r.mustPublish(&topic, zeros(64<<10))
	if r.Stats().Cached == 0 {
		t.Fatal("nothing of it is kept")
	}
	if err := r.Forget(t.Context(), topic.ID); err != nil {
		t.Fatal(err)
	}
	if kept := r.Stats().Cached; kept != 0 {
		t.Errorf("%d bytes are kept of nothing, for which others give up what they hold", kept)
	}
}

// TestADocumentThatNeverFitsCostsNobodyHisTape: whoever publishes one again and again would have all others read their documents anew.
func TestADocumentThatNeverFitsCostsNobodyHisTape(t *testing.T) {
	r := newCounted(t, 4<<20, router.Options{CacheBytes: 2 << 20})
	for range 8 {
		topic := newTopic(t, "snapshot")
		r.mustPublish(&topic, zeros(10<<10))
	}
	cached := r.Stats().Cached
	if cached == 0 {
		t.Fatal("nothing is cached")
	}
	huge := newTopic(t, "snapshot")
	for range 3 {
		if err := r.publish(&huge, zeros(5<<20)); freshet.KindOf(err) != freshet.Unavailable {
			t.Fatalf("5 MiB fit in 4: %v", err)
		}
		if left := r.Stats().Cached; left != cached {
			t.Fatalf("of %d cached bytes %d are left, for nothing", cached, left)
		}
	}
	fits := newTopic(t, "snapshot")
	most := r.Stats()
	r.mustPublish(&fits, zeros(int(most.MemoryLimit-most.Memory)+cached/4))
	if left := r.Stats().Cached; left == 0 || left >= cached {
		t.Errorf("of %d cached bytes %d are left; a quarter of them was needed", cached, left)
	}
}
