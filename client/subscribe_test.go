package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/client"
	"github.com/freshet-io/freshet/internal/subscribe"
)

// receive ranges over a subscription until it has n events.
func receive(t *testing.T, c *client.Client, topic string, o client.SubscribeOptions, n int, each func(i int, e client.Event)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	i := 0
	for e, err := range c.Subscribe(ctx, topic, o) {
		if err != nil {
			t.Fatal(err)
		}
		each(i, e)
		if i++; i == n {
			return
		}
	}
}

func TestASubscriptionHoldsTheWholeDocument(t *testing.T) {
	f := newFixture(t, connect(t, serve(t, t.TempDir(), nil)), nil)
	const exact = `{"big":12345678901234567890.10,"z":1e400,"a":"\u00e9","list":[1,2]}`
	for name, o := range map[string]client.SubscribeOptions{
		"plain":                {},
		"with the key":         {Key: f.app.SubscriberKey},
		"compressed":           {Compress: true},
		"snapshots":            {Mode: client.Snapshots},
		"snapshots compressed": {Mode: client.Snapshots, Compress: true},
	} {
		t.Run(name, func(t *testing.T) {
			f.publish(exact)
			receive(t, f.c, f.topic.ID, o, 2, func(i int, e client.Event) {
				want, kind := exact, client.Snapshot
				if i == 1 {
					want = strings.Replace(exact, "[1,2]", "[0,1,2]", 1)
					if kind = client.Patch; o.Mode == client.Snapshots {
						kind = client.Snapshot
					}
				} else {
					f.publish(strings.Replace(exact, "[1,2]", "[0,1,2]", 1))
				}
				if string(e.Document) != want || e.Kind != kind || e.ID == "" || e.Err != nil {
					t.Errorf("event %d: %s %s, %s", i, e.Kind, e.ID, e.Document)
				}
			})
		})
	}
}

func TestAFilterShowsItsItemsOnly(t *testing.T) {
	f := newFixture(t, connect(t, serve(t, t.TempDir(), nil)), &client.Payload{Type: freshet.PayloadItem, ItemIDPath: ".id"})
	f.publish(`[{"id":"a","v":1},{"id":"b","v":1},{"id":"c","v":1}]`)
	receive(t, f.c, f.topic.ID, client.SubscribeOptions{Filter: []string{"c", "a"}}, 2, func(i int, e client.Event) {
		want := []string{`[{"id":"a","v":1},{"id":"c","v":1}]`, `[{"id":"a","v":1},{"id":"c","v":2}]`}[i]
		if string(e.Document) != want {
			t.Errorf("event %d: %s, want %s", i, e.Document, want)
		}
		f.publish(`[{"id":"b","v":2},{"id":"c","v":2}]`)
	})
}

func TestAStreamGoesOnWhereItStopped(t *testing.T) {
	f := newFixture(t, connect(t, serve(t, t.TempDir(), nil)), nil)
	f.publish(`{"n":1}`)
	s := f.c.Stream(f.topic.ID, client.SubscribeOptions{})
	if s.Document() != nil || s.LastEventID() != "" {
		t.Error("it has a document before it has connected")
	}
	next := func(want string, kind client.EventKind) {
		t.Helper()
		for e, err := range s.Events(t.Context()) {
			if err != nil || e.Kind != kind || string(s.Document()) != want || s.LastEventID() != e.ID {
				t.Errorf("got %s %s %v, want %s", e.Kind, s.Document(), err, want)
			}
			return
		}
	}
	next(`{"n":1}`, client.Snapshot)
	f.publish(`{"n":2}`)
	next(`{"n":2}`, client.Patch)
	f.publish(`{"n":3}`)
	o := client.SubscribeOptions{LastEventID: s.LastEventID(), Document: s.Document()}
	receive(t, f.c, f.topic.ID, o, 1, func(_ int, e client.Event) {
		if e.Kind != client.Patch || string(e.Document) != `{"n":3}` {
			t.Errorf("resumed elsewhere: %s %s", e.Kind, e.Document)
		}
	})
	for _, err := range f.c.Subscribe(t.Context(), f.topic.ID, client.SubscribeOptions{LastEventID: "a-1"}) {
		if err == nil {
			t.Error("an id without its document was accepted")
		}
		break
	}
}

func TestOnlyOneLoopAtATime(t *testing.T) {
	f := newFixture(t, connect(t, serve(t, t.TempDir(), nil)), nil)
	f.publish(`1`)
	s := f.c.Stream(f.topic.ID, client.SubscribeOptions{})
	for range s.Events(t.Context()) {
		for _, err := range s.Events(t.Context()) {
			if err == nil {
				t.Error("a second loop got an event")
			}
		}
		break
	}
}

func last(t *testing.T, c *client.Client, target string, o client.SubscribeOptions) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var end error
	for _, err := range c.Subscribe(ctx, target, o) {
		end = err
	}
	return end
}

func TestWhatTheClientGotWrongEndsTheSubscription(t *testing.T) {
	c := connect(t, serve(t, t.TempDir(), map[string]string{"environment": "development"}))
	f := newFixture(t, c, nil)
	unknown := freshet.NewKey(freshet.SubscriberKey).Reveal()
	for _, x := range []struct {
		name, topic string
		o           client.SubscribeOptions
		code        int
	}{
		{"an unknown topic", freshet.NewID(), client.SubscribeOptions{}, 40401},
		{"an unknown key", f.topic.ID, client.SubscribeOptions{Key: unknown}, 40110},
		{"no key", f.topic.ID, client.SubscribeOptions{Key: "$$$"}, 40001},
		{"a filter on snapshots", f.topic.ID, client.SubscribeOptions{Filter: []string{"a"}}, 40000},
	} {
		err := last(t, c, x.topic, x.o)
		e, ok := errors.AsType[*client.StreamError](err)
		if !ok || e.Code != x.code || e.Category != client.ClientException || e.Message == "" || e.SessionID == "" || e.Time.IsZero() {
			t.Errorf("%s: %+v", x.name, err)
		}
	}
	if err := last(t, c, "../apps", client.SubscribeOptions{}); err == nil || !strings.Contains(err.Error(), "topic's id") {
		t.Errorf("a path: %v", err)
	}
}

func TestDeletingTheTopicEndsItsSubscriptions(t *testing.T) {
	f := newFixture(t, connect(t, serve(t, t.TempDir(), nil)), nil)
	f.publish(`1`)
	var end error
	for e, err := range f.c.Subscribe(t.Context(), f.topic.ID, client.SubscribeOptions{}) {
		end = err
		if e.Kind == client.Snapshot {
			if err := f.c.DeleteTopic(t.Context(), f.topic.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	if e, ok := errors.AsType[*client.StreamError](end); !ok || e.Code != client.TopicGone {
		t.Errorf("it ended with %v", end)
	}
}

func TestSignedRequestsAreAccepted(t *testing.T) {
	c := connect(t, serve(t, t.TempDir(), nil))
	f := newFixture(t, c, nil)
	f.publish(`1`)
	if _, err := c.UpdateApp(t.Context(), f.app.ID, client.AppChange{ClientRequestSignatureEnabled: client.Set(true)}); err != nil {
		t.Fatal(err)
	}
	if e, ok := errors.AsType[*client.StreamError](last(t, c, f.topic.ID, client.SubscribeOptions{Key: f.app.SubscriberKey})); !ok || e.Code != 40100 {
		t.Errorf("without a signature: %v", e)
	}
	other := freshet.NewKey(freshet.SignatureKey).Reveal()
	wrong := client.SubscribeOptions{Key: f.app.SubscriberKey, SignatureKey: other}
	if e, ok := errors.AsType[*client.StreamError](last(t, c, f.topic.ID, wrong)); !ok || e.Code != 40110 {
		t.Errorf("with another's signature: %v", e)
	}
	right := client.SubscribeOptions{Key: f.app.SubscriberKey, SignatureKey: f.app.SignatureKey}
	receive(t, c, f.topic.ID, right, 1, func(_ int, e client.Event) {
		if string(e.Document) != "1" {
			t.Errorf("got %s", e.Document)
		}
	})
	if err := last(t, c, f.topic.ID, client.SubscribeOptions{SignatureKey: "banana"}); err == nil || strings.Contains(err.Error(), "banana") {
		t.Errorf("a bad key: %v", err)
	}
}

func TestTheEndOfTheContextEndsTheSubscription(t *testing.T) {
	f := newFixture(t, connect(t, serve(t, t.TempDir(), nil)), nil)
	f.publish(`1`)
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var end error
	for _, err := range f.c.Subscribe(ctx, f.topic.ID, client.SubscribeOptions{}) {
		cancel(why)
		end = err
	}
	if !errors.Is(end, why) {
		t.Errorf("it ended with %v", end)
	}
}

// TestChaosEndsWithTheSameDocument publishes at random while connections are cut and the server is replaced.
func TestChaosEndsWithTheSameDocument(t *testing.T) {
	data := t.TempDir()
	n := serve(t, data, nil)
	gateway, subscriber := newRelay(t, n.gateway), newRelay(t, n.subscriber)
	c := connect(t, &node{gateway: gateway.listener.Addr().String(), subscriber: subscriber.listener.Addr().String(), admin: n.admin})
	f := newFixture(t, c, nil)

	ctx, cancel := context.WithTimeout(t.Context(), 5*patience)
	defer cancel()
	followers := make([]*client.Stream, 4)
	var wg sync.WaitGroup
	defer wg.Wait()
	done, finish := context.WithCancel(ctx)
	defer finish()
	for i := range followers {
		o := client.SubscribeOptions{Compress: i%2 == 1}
		if i >= 2 {
			o.Mode = client.Snapshots
		}
		followers[i] = c.Stream(f.topic.ID, o)
		wg.Go(func() {
			for _, err := range followers[i].Events(done) {
				if err != nil && done.Err() == nil {
					t.Errorf("follower %d: %v", i, err)
				}
			}
		})
	}
	random := rand.New(rand.NewPCG(1, 2))
	rows := make([]int, 40)
	for i := range 300 {
		for range 1 + random.IntN(5) {
			rows[random.IntN(len(rows))] = random.IntN(1000)
		}
		key := fmt.Sprintf("chaos-%d", i) // the gateway's connections are cut too
		if _, err := c.Publish(ctx, f.topic.ID, fmt.Appendf(nil, `{"i":%d,"rows":%s}`, i, list(rows)),
			client.PublishOptions{Key: f.app.PublisherKey, IdempotencyKey: key}); err != nil {
			t.Fatal(err)
		}
		if i%40 == 20 {
			subscriber.cut()
		}
		if i%70 == 35 {
			gateway.cut()
		}
		if i == 150 {
			n.stop()
			n = serve(t, data, nil)
			gateway.move(n.gateway)
			subscriber.move(n.subscriber)
		}
	}
	want := fmt.Appendf(nil, `{"i":299,"rows":%s}`, list(rows))
	for i, s := range followers {
		for !bytes.Equal(s.Document(), want) {
			if err := pause(ctx, 10*time.Millisecond); err != nil {
				t.Fatalf("follower %d holds %s, want %s", i, s.Document(), want)
			}
		}
	}
	finish()
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func list(rows []int) string { return strings.ReplaceAll(fmt.Sprint(rows), " ", ",") }

func TestAWrongAddressIsSaidAtOnce(t *testing.T) {
	n := serve(t, t.TempDir(), nil)
	c, err := client.New(client.Options{BaseURL: "http://" + n.gateway, SubscriberURL: "http://" + n.gateway})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	if err := last(t, c, freshet.NewID(), client.SubscribeOptions{}); client.StatusOf(err) != http.StatusNotFound {
		t.Errorf("the gateway instead of the subscriber interface: %v", err)
	}
	nowhere, err := client.New(client.Options{BaseURL: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	err = last(t, nowhere, "http://example.com/?secret=x", client.SubscribeOptions{FailFast: true})
	if _, ok := errors.AsType[*client.UnreachableError](err); !ok || strings.Contains(err.Error(), "secret") {
		t.Errorf("nobody there: %v", err)
	}
}

func TestASignedURLIsSignedWithItsQuery(t *testing.T) {
	asked := make(chan string, 1)
	source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case asked <- r.RequestURI:
		default:
		}
		_, _ = io.WriteString(w, `{"n":1}`)
	}))
	defer source.Close()
	c := connect(t, serve(t, t.TempDir(), nil))
	app, err := c.CreateApp(t.Context(), client.AppChange{
		Name: client.Set("Signed"), AutoProvisioningAllowed: client.Set(true), ClientRequestSignatureEnabled: client.Set(true),
	})
	if err != nil {
		t.Fatal(err)
	}
	o := client.SubscribeOptions{Key: app.SubscriberKey, SignatureKey: app.SignatureKey}
	const query = "/doc?b=%2F&X-Foo=1&q=é&a=1"
	receive(t, c, source.URL+query, o, 1, func(_ int, e client.Event) {
		if string(e.Document) != `{"n":1}` {
			t.Errorf("%s", e.Data)
		}
	})
	if got := <-asked; got != "/doc?b=%2F&X-Foo=1&q=%C3%A9&a=1" {
		t.Errorf("the source was asked for %s", got)
	}
}

// TestWhatIsFinalEndsAndWhatPassesIsTriedAgain: an error of each code, and then a document for whoever comes back.
func TestWhatIsFinalEndsAndWhatPassesIsTriedAgain(t *testing.T) {
	for _, code := range subscribe.Codes() {
		t.Run(strconv.Itoa(code.Number), func(t *testing.T) {
			stamps := make(chan string, 10)
			source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				stamps <- r.Header.Get("X-Auth-Sd-Ts")
				w.Header().Set("Content-Type", "text/event-stream")
				if len(stamps) == 1 {
					category := map[int]string{4: client.ClientException, 5: client.ServerException, 6: client.TopicException}[code.Number/10000]
					fmt.Fprintf(w, "retry: 20\nevent: error\ndata: {\"code\":%d,\"category\":%q,\"message\":\"No\",\"sessionId\":\"s1\"}\n\n", code.Number, category)
					return
				}
				fmt.Fprint(w, "event: snapshot\ndata: 1\nid: a-1\n\n")
			}))
			defer source.Close()
			c, err := client.New(client.Options{SubscriberURL: source.URL})
			if err != nil {
				t.Fatal(err)
			}
			defer c.CloseIdleConnections()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			var told []int
			var document string
			var end error
			for e, err := range c.Subscribe(ctx, freshet.NewID(), client.SubscribeOptions{SignatureKey: freshet.NewKey(freshet.SignatureKey).Reveal()}) {
				if end = err; err != nil {
					break
				}
				if e.Kind == client.Failure {
					told = append(told, e.Err.Code)
					continue
				}
				document = string(e.Document)
				break
			}
			if code.Final {
				if e, ok := errors.AsType[*client.StreamError](end); !ok || e.Code != code.Number || e.SessionID != "s1" || len(stamps) != 1 || document != "" {
					t.Errorf("it ended with %v after %d requests, and document %q", end, len(stamps), document)
				}
				return
			}
			if end != nil || !slices.Equal(told, []int{code.Number}) || document != "1" || len(stamps) != 2 {
				t.Fatalf("told %v, then %q and %v after %d requests", told, document, end, len(stamps))
			}
			if first, second := <-stamps, <-stamps; first == "" || first == second {
				t.Errorf("signed at %s, and again at %s", first, second)
			}
		})
	}
}
