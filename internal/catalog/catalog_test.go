package catalog

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid/memory"
	"github.com/freshet-io/freshet/internal/store"
)

// world is a catalog on the shipped embedded engines, with a clock that stands still.
type world struct {
	*Catalog
	t     *testing.T
	store *store.Store
	grid  *memory.Grid
	mu    sync.Mutex
	at    time.Time
}

var cheap = Hashing{MemoryKiB: 8, Passes: 1}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

func (w *world) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = w.at.Add(d)
}

func (w *world) options() Options {
	return Options{
		OpenSignUp: true, TokenLifetime: time.Hour, AdminEmail: freshet.FixedAdminEmail, AdminPassword: freshet.FixedAdminPassword,
		Hashing: cheap, Now: w.clock, Log: slog.New(slog.DiscardHandler), lookEvery: time.Hour,
	}
}

func openWorld(t *testing.T, change func(*Options)) *world {
	t.Helper()
	return openWorldAt(t, store.Location{Dir: t.TempDir()}, change)
}

func openWorldAt(t *testing.T, where store.Location, change func(*Options)) *world {
	t.Helper()
	w := &world{t: t, at: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)}
	var err error
	if w.store, err = store.Open(t.Context(), where); err != nil {
		t.Fatal(err)
	}
	w.grid = memory.New(memory.Options{})
	if err := w.reopen(change); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.Close()
		_ = w.grid.Close()
		if err := w.store.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// reopen starts another catalog on the same store, as a restart does.
func (w *world) reopen(change func(*Options)) error {
	opts := w.options()
	if change != nil {
		change(&opts)
	}
	c, err := New(w.t.Context(), w.store, w.grid, opts)
	if err != nil {
		return err
	}
	if w.Catalog != nil {
		w.Close()
	}
	w.Catalog = c
	return nil
}

// owner is a user with an app and a topic for posting.
type owner struct {
	actor *Actor
	app   *freshet.App
	topic *freshet.Topic
}

func (w *world) owner() owner {
	w.t.Helper()
	u, err := w.SignUp(w.t.Context(), nil, freshet.User{
		Email: freshet.NewID() + "@example.com", FirstName: "Ada", LastName: "Lovelace", Language: "en_GB",
	}, "correct horse", "home")
	w.check(err)
	o := owner{actor: &Actor{User: *u}}
	o.app, err = w.CreateApp(w.t.Context(), o.actor, freshet.App{Name: "Quotes"})
	w.check(err)
	o.topic, err = w.CreateTopic(w.t.Context(), o.actor, o.app.ID, posted)
	w.check(err)
	return o
}

func posted(t *freshet.Topic) error {
	t.Name, t.Publisher.Type, t.Publisher.Payload.Type = "Topic", freshet.HTTPPost, freshet.PayloadSnapshot
	return nil
}

func (w *world) admin() *Actor {
	w.t.Helper()
	admins, err := w.store.Admins(w.t.Context())
	w.check(err)
	return &Actor{User: admins[0].User}
}

func (w *world) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func wantKind(t *testing.T, what string, err error, want freshet.Kind) {
	t.Helper()
	if err == nil || freshet.KindOf(err) != want {
		t.Errorf("%s: %v, want kind %d", what, err, want)
	}
}

func (w *world) renew(o owner, kind freshet.KeyKind, overlap time.Duration) freshet.Key {
	w.t.Helper()
	app, err := w.RenewKey(w.t.Context(), o.actor, o.app.ID, kind, Renewal{Overlap: overlap})
	w.check(err)
	return app.Key(kind)
}

// escape percent-encodes every byte.
func escape(text string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(text) {
		b.WriteString("%" + string(hex[text[i]>>4]) + string(hex[text[i]&15]))
	}
	return b.String()
}

func (w *world) publishWith(topic string, key freshet.Key) error {
	_, err := w.MayPublish(context.Background(), topic, key.Reveal())
	return err
}
