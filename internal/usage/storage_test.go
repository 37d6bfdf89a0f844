package usage_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/grid/jetstream"
	gridmemory "github.com/freshet-io/freshet/internal/grid/memory"
	"github.com/freshet-io/freshet/internal/grid/natsserver"
	"github.com/freshet-io/freshet/internal/router"
	"github.com/freshet-io/freshet/internal/store"
	"github.com/freshet-io/freshet/internal/usage"
)

// depot is the nodes of a service, their routers and what they know of an account with two apps.
type depot struct {
	t     *testing.T
	store *store.Store
	user  string
	apps  []string
	nodes []*depotNode
}

type depotNode struct {
	grid    grid.Grid
	router  *router.Router
	storage *usage.Storage
}

func newDepot(t *testing.T, ttl time.Duration, grids ...grid.Grid) *depot {
	t.Helper()
	d := &depot{t: t, store: openStore(t, t.TempDir()), user: freshet.NewID()}
	d.update(func(tx *store.Tx) error {
		err := tx.CreateUser(&store.Account{User: freshet.User{ID: d.user, Email: "ada@example.com", Role: freshet.RoleUser, Status: freshet.StatusActive}})
		for i := range 2 {
			app := freshet.App{ID: freshet.NewID(), UserID: d.user, Name: fmt.Sprint(i)}
			d.apps = append(d.apps, app.ID)
			err = errors.Join(err, tx.CreateApp(&app))
		}
		return err
	})
	for _, g := range grids {
		n := &depotNode{grid: g, router: router.New(g, router.Options{MessageTTL: ttl})}
		n.restart(d, len(grids) == 1)
		d.nodes = append(d.nodes, n)
	}
	return d
}

// restart makes a node forget what it counted.
func (n *depotNode) restart(d *depot, alone bool) {
	n.storage = usage.NewStorage(usage.StorageOptions{Documents: n.grid, Topics: d.store, Alone: alone})
}

func (d *depot) close() {
	for _, n := range d.nodes {
		_ = n.router.Close()
		_ = n.grid.Close()
	}
	if err := d.store.Close(); err != nil {
		d.t.Error(err)
	}
}

func (d *depot) update(act func(*store.Tx) error) {
	d.t.Helper()
	if err := d.store.Update(d.t.Context(), act); err != nil {
		d.t.Fatal(err)
	}
}

func (d *depot) topic(app int, change ...func(*freshet.Topic)) *freshet.Topic {
	d.t.Helper()
	topic := &freshet.Topic{ID: freshet.NewID(), AppID: d.apps[app], Name: "x", Publisher: freshet.Publisher{
		Type: freshet.HTTPPost, Payload: freshet.Payload{Type: freshet.PayloadSnapshot},
	}}
	for _, c := range change {
		c(topic)
	}
	d.update(func(tx *store.Tx) error { return tx.CreateTopic(topic) })
	return topic
}

func (d *depot) remove(topic *freshet.Topic) {
	d.t.Helper()
	d.update(func(tx *store.Tx) error { return tx.DeleteTopic(topic.ID) })
	if err := d.nodes[0].router.Forget(d.t.Context(), topic.ID); err != nil {
		d.t.Fatal(err)
	}
}

// publish publishes within quotas of the account and the app.
func (d *depot) publish(node int, topic *freshet.Topic, p router.Publication, account, app int64) error {
	n := d.nodes[node]
	q := usage.Quotas{AppID: topic.AppID, UserID: d.user, AppBytes: app, UserBytes: account}
	if q.Limits() {
		p.Quota = n.storage.Room(q)
	}
	_, err := n.router.Publish(d.t.Context(), topic, p)
	return err
}

// post publishes a document that is so many bytes long.
func (d *depot) post(node int, topic *freshet.Topic, length int, account, app int64) error {
	return d.publish(node, topic, router.Publication{Body: text(length)}, account, app)
}

func text(length int) []byte { return []byte(`"` + strings.Repeat("x", length-2) + `"`) }

// stored is how many bytes the documents have that can be read.
func (d *depot) stored() (sum int64) {
	d.t.Helper()
	ids, err := d.store.TopicIDs(d.t.Context(), d.user, "")
	if err != nil {
		d.t.Fatal(err)
	}
	for _, id := range ids {
		doc, err := d.nodes[0].grid.Document(d.t.Context(), id)
		if err != nil {
			d.t.Fatal(err)
		}
		if !doc.IsZero() {
			sum += int64(len(doc.Content.Bytes()))
		}
	}
	return sum
}

func wantLimit(t *testing.T, what string, err error, says string) {
	t.Helper()
	if freshet.KindOf(err) != freshet.DocumentLimit || !strings.Contains(err.Error(), says) {
		t.Errorf("%s: %v", what, err)
	}
}

func wantNone(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

func memory(ttl time.Duration) grid.Grid { return gridmemory.New(gridmemory.Options{MessageTTL: ttl}) }

func TestAPublicationOverTheQuotaIsRefusedUnlessItMakesTheSumSmaller(t *testing.T) {
	d := newDepot(t, 0, memory(0))
	defer d.close()
	a, b, other := d.topic(0), d.topic(0), d.topic(1)
	wantNone(t, "within both", d.post(0, a, 60, 100, 70))
	wantLimit(t, "over the app's", d.post(0, b, 11, 100, 70), "The documents of the app would be 71 bytes together, and its quota document_bytes is 70")
	wantNone(t, "as many as the app's", d.post(0, b, 10, 100, 70))
	wantLimit(t, "over the account's", d.post(0, other, 31, 100, 0), "The documents of the account would be 101 bytes together, and its quota document_bytes is 100")
	wantNone(t, "as many as the account's", d.post(0, other, 30, 100, 0))
	wantNone(t, "the same again", d.post(0, other, 30, 100, 0))
	wantNone(t, "of another account", d.publish(0, other, router.Publication{Body: text(30)}, 0, 0))
	if n := d.stored(); n != 100 {
		t.Errorf("%d bytes are stored", n)
	}

	// A quota that is lowered takes nothing away.
	wantLimit(t, "over a lower one", d.post(0, a, 61, 50, 0), "quota document_bytes is 50")
	other60 := []byte(`"` + strings.Repeat("y", 58) + `"`)
	wantLimit(t, "no shorter", d.publish(0, a, router.Publication{Body: other60}, 50, 0), "would be 100 bytes")
	wantNone(t, "the same", d.post(0, a, 60, 50, 0))
	wantNone(t, "shorter, and still over it", d.post(0, a, 59, 50, 0))
	wantNone(t, "shorter", d.post(0, a, 2, 50, 0))
	wantNone(t, "room again", d.post(0, a, 10, 50, 0))
	wantLimit(t, "full again", d.post(0, b, 11, 50, 0), "would be 51 bytes")
	if n := d.stored(); n != 50 {
		t.Errorf("%d bytes are stored", n)
	}
}

func TestPatchesAndItemsAreHeldAgainstTheQuota(t *testing.T) {
	d := newDepot(t, 0, memory(0))
	defer d.close()
	patched := d.topic(0)
	path, err := freshet.ParseItemPath(".id")
	if err != nil {
		t.Fatal(err)
	}
	items := d.topic(0, func(t *freshet.Topic) {
		t.Publisher.Payload = freshet.Payload{Type: freshet.PayloadItem, ItemIDPath: path}
	})
	form := func(f router.Form, body string) router.Publication {
		return router.Publication{Form: f, Body: []byte(body)}
	}
	const limit = 50
	wantNone(t, "a document", d.publish(0, patched, form(router.Whole, ` { "a" : 1 } `), limit, 0))                         // 7 bytes
	wantNone(t, "an item", d.publish(0, items, form(router.Whole, `[{"id":"one","n":1}]`), limit, 0))                       // 20
	wantNone(t, "another", d.publish(0, items, form(router.Whole, `[{"id":"two","n":2}]`), limit, 0))                       // 39
	wantLimit(t, "a third", d.publish(0, items, form(router.Whole, `[{"id":"x"}]`), limit, 0), "would be 57 bytes")         // 50
	wantNone(t, "a shorter item", d.publish(0, items, form(router.Whole, `[{"id":"one"}]`), limit, 0))                      // 33
	wantNone(t, "a patch", d.publish(0, patched, form(router.JSONPatch, `[{"op":"add","path":"/b","value":2}]`), limit, 0)) // 13
	wantLimit(t, "a patch over it", d.publish(0, patched, form(router.MergePatch, `{"c":3}`), limit, 0), "would be 52 bytes")
	wantNone(t, "one that removes", d.publish(0, patched, form(router.MergePatch, `{"a":null,"b":null}`), limit, 0)) // 2
	doc, _, err := d.nodes[0].router.Document(t.Context(), *items)
	if want := `[{"id":"one"},{"id":"two","n":2}]`; err != nil || string(doc) != want {
		t.Errorf("the items are %s, %v", doc, err)
	}
}

func TestADroppedPublicationTakesNoRoom(t *testing.T) {
	d := newDepot(t, 0, memory(0))
	defer d.close()
	dropping := d.topic(0, func(t *freshet.Topic) { t.Publisher.ForcePublishing = new(false) })
	wantNone(t, "nobody listens", d.post(0, dropping, 90, 100, 0))
	wantNone(t, "another", d.post(0, d.topic(0), 100, 100, 0))
	wantNone(t, "over it, and still nobody listens", d.post(0, dropping, 90, 100, 0))
}

func TestWhatDisappearsMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = time.Hour
		d := newDepot(t, ttl, memory(ttl))
		defer d.close()
		deleted, expiring, last := d.topic(0), d.topic(0), d.topic(1)
		wantNone(t, "one", d.post(0, deleted, 40, 100, 0))
		wantNone(t, "two", d.post(0, expiring, 60, 100, 0))
		wantLimit(t, "full", d.post(0, last, 10, 100, 0), "110")
		d.remove(deleted)
		wantNone(t, "after a deletion", d.post(0, last, 40, 100, 0))
		wantLimit(t, "full again", d.post(0, last, 41, 100, 0), "101")
		time.Sleep(ttl - time.Minute)
		wantNone(t, "published again", d.post(0, last, 40, 100, 0))
		time.Sleep(2 * time.Minute)
		wantNone(t, "after a document expired", d.post(0, expiring, 60, 100, 0))
		d.update(func(tx *store.Tx) error { return tx.DeleteApp(d.apps[0]) })
		wantNone(t, "after an app was deleted", d.post(0, last, 100, 100, 0))
	})
}

func TestItemsThatExpireMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = time.Hour
		d := newDepot(t, ttl, memory(ttl))
		defer d.close()
		path, err := freshet.ParseItemPath(".id")
		if err != nil {
			t.Fatal(err)
		}
		items := d.topic(0, func(t *freshet.Topic) {
			t.Publisher.Payload = freshet.Payload{Type: freshet.PayloadItem, ItemIDPath: path}
		})
		item := func(id string) router.Publication {
			return router.Publication{Body: fmt.Appendf(nil, `[{"id":%q}]`, id)}
		}
		writer, err := d.nodes[0].router.OpenWriter(t.Context(), items) // as somebody who is subscribed does
		if err != nil {
			t.Fatal(err)
		}
		defer writer.Close()
		wantNone(t, "first", d.publish(0, items, item("a"), 22, 0)) // 12 bytes
		time.Sleep(ttl / 2)
		wantNone(t, "second", d.publish(0, items, item("b"), 23, 0)) // 23
		wantLimit(t, "third", d.publish(0, items, item("c"), 23, 0), "would be 34 bytes")
		time.Sleep(ttl/2 + time.Minute)
		wantNone(t, "after the first expired", d.publish(0, items, item("c"), 23, 0))
	})
}

func TestTheQuotaOfDocumentsIsExactUnderConcurrentPublications(t *testing.T) {
	d := newDepot(t, 0, memory(0))
	defer d.close()
	const publishers, length, fit = 24, 50, 10
	var topics []*freshet.Topic
	for i := range publishers {
		topics = append(topics, d.topic(i%2))
	}
	for round, room := range []int64{fit, publishers} {
		var stored atomic.Int64
		var all sync.WaitGroup
		for _, topic := range topics {
			all.Go(func() {
				err := d.post(0, topic, length, room*length, publishers*length)
				if err == nil {
					stored.Add(1)
				} else if freshet.KindOf(err) != freshet.DocumentLimit {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if stored.Load() != room || d.stored() != room*length {
			t.Errorf("round %d: %d of %d publications fit, %d bytes are stored", round, stored.Load(), room, d.stored())
		}
	}
}

func TestWhatIsUnderWayIsNeitherMissedNorCountedTwice(t *testing.T) {
	for name, stored := range map[string]bool{"stored": true, "not stored": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDepot(t, 0, memory(0))
				defer d.close()
				a, b := d.topic(0), d.topic(1)
				room := d.nodes[0].storage.Room(usage.Quotas{AppID: d.apps[0], UserID: d.user, UserBytes: 100})
				settle, err := room.Reserve(t.Context(), 0, 60)
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second) // so that nobody has to wait until it may count
				decided := make(chan error, 1)
				go func() { decided <- d.post(0, b, 50, 100, 0) }()
				synctest.Wait()
				if len(decided) > 0 {
					t.Error("it was decided while another publication was under way")
				}
				if stored {
					wantNone(t, "the one under way", d.post(0, a, 60, 0, 0))
					settle(nil)
					wantLimit(t, "beside it", <-decided, "would be 110 bytes")
				} else {
					settle(grid.ErrConflict)
					wantNone(t, "in its place", <-decided)
				}
			})
		})
	}
}

func TestANodeThatRestartsCountsWhatIsThere(t *testing.T) {
	d := newDepot(t, 0, memory(0))
	defer d.close()
	a, b := d.topic(0), d.topic(1)
	wantNone(t, "without a quota", d.post(0, a, 90, 0, 0)) // which nobody counts
	wantLimit(t, "the first with one", d.post(0, b, 20, 100, 0), "would be 110 bytes")
	d.nodes[0].restart(d, true)
	wantLimit(t, "after a restart", d.post(0, b, 20, 100, 0), "would be 110 bytes")
	wantNone(t, "what fits", d.post(0, b, 10, 100, 0))
}

func TestWhatWasStoredWithoutAQuotaCountsOnceThereIsOne(t *testing.T) {
	d := newDepot(t, 0, memory(0))
	defer d.close()
	a, b := d.topic(0), d.topic(0)
	wantNone(t, "with a quota", d.post(0, a, 10, 100, 0))
	wantNone(t, "without", d.post(0, a, 90, 0, 0))
	d.nodes[0].storage.Review(grid.Notice{Scope: grid.ScopeUser, ID: d.user}) // as a change of the quota brings about
	wantLimit(t, "with one again", d.post(0, b, 20, 100, 0), "would be 110 bytes")
	wantNone(t, "without", d.post(0, a, 95, 0, 0))
	d.nodes[0].storage.Review(grid.Notice{Scope: grid.ScopeCatalog}) // nobody knows which quotas changed
	wantLimit(t, "with one again", d.post(0, b, 20, 100, 0), "would be 115 bytes")
}

// brokenTopics is a store that panics when it is asked for the n-th time.
type brokenTopics struct {
	usage.Topics
	n     int64
	asked atomic.Int64
}

func (b *brokenTopics) TopicIDs(ctx context.Context, userID, appID string) ([]string, error) {
	if b.asked.Add(1) == b.n {
		panic("in the store")
	}
	return b.Topics.TopicIDs(ctx, userID, appID)
}

func TestACountThatPanicsKeepsNobodyWaiting(t *testing.T) {
	for n, whose := range []string{"the account's", "the app's"} {
		t.Run(whose, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDepot(t, 0, memory(0))
				defer d.close()
				topics := &brokenTopics{Topics: d.store, n: int64(n + 1)}
				d.nodes[0].storage = usage.NewStorage(usage.StorageOptions{Documents: d.nodes[0].grid, Topics: topics, Alone: true})
				topic := d.topic(0)
				func() {
					defer func() { _ = recover() }() // as the HTTP library does
					_ = d.post(0, topic, 10, 50, 50)
				}()
				wantNone(t, "the next one", d.post(0, topic, 20, 50, 50))
				time.Sleep(time.Hour)
				wantLimit(t, "counted again", d.post(0, topic, 60, 50, 50), "would be 60 bytes")
			})
		})
	}
}

// lostTopics is a store that is away.
type lostTopics struct{ asked atomic.Int64 }

func (l *lostTopics) TopicIDs(context.Context, string, string) ([]string, error) {
	l.asked.Add(1)
	return nil, freshet.Errorf(freshet.Unavailable, "away")
}

func TestWhomNobodyCanCountMayPublish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDepot(t, 0, memory(0))
		defer d.close()
		lost := &lostTopics{}
		d.nodes[0].storage = usage.NewStorage(usage.StorageOptions{Documents: d.nodes[0].grid, Topics: lost, Alone: true})
		topic := d.topic(0)
		for i := range 100 {
			wantNone(t, "while the store is away", d.post(0, topic, 10+i, 5, 0))
		}
		if n := lost.asked.Load(); n != 1 {
			t.Errorf("the store was asked %d times", n)
		}
	})
}

func cluster(t *testing.T, nodes int) (all []grid.Grid) {
	t.Helper()
	server, err := natsserver.Start(t.Context(), natsserver.Options{Name: "test", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	prefix := "t" + strings.ToLower(freshet.NewID())
	for range nodes {
		g, err := jetstream.Open(t.Context(), jetstream.Options{InProcess: server, Prefix: prefix, Memory: true})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, g)
	}
	return all
}

func TestAQuotaOfDocumentsHoldsOverACluster(t *testing.T) {
	d := newDepot(t, 0, cluster(t, 2)...)
	defer d.close()
	a, b := d.topic(0), d.topic(1)
	wantNone(t, "on the one node", d.post(0, a, 60, 100, 0))
	wantLimit(t, "on the other", d.post(1, b, 50, 100, 0), "would be 110 bytes")
	wantNone(t, "what fits", d.post(1, b, 40, 100, 0))
	wantLimit(t, "on the one node", d.post(0, a, 61, 100, 0), "would be 101 bytes")
	wantNone(t, "shorter there", d.post(0, a, 30, 100, 0))
	wantNone(t, "longer here", d.post(1, b, 70, 100, 0))
	d.remove(b)
	d.nodes[0].restart(d, false)
	wantNone(t, "after a deletion", d.post(0, a, 100, 100, 0))
	wantLimit(t, "full", d.post(1, d.topic(0), 2, 100, 0), "would be 102 bytes")
}

func TestNodesExceedAQuotaOfDocumentsByLittle(t *testing.T) {
	d := newDepot(t, 0, cluster(t, 2)...)
	defer d.close()
	const length, limit = 50, 10 * 50
	var all sync.WaitGroup
	for i := range 24 {
		topic := d.topic(i % 2)
		all.Go(func() {
			if err := d.post(i%2, topic, length, limit, 0); err != nil && freshet.KindOf(err) != freshet.DocumentLimit {
				t.Error(err)
			}
		})
	}
	all.Wait()
	// The other node may have been as sure as this one, for one publication.
	if n := d.stored(); n < limit || n > limit+length {
		t.Errorf("%d bytes are stored", n)
	}
}
