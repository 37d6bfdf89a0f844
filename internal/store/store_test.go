package store

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/pgtest"
)

// forEachStore runs the contract on every engine: what holds on one holds on all.
func forEachStore(t *testing.T, test func(t *testing.T, s *Store)) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, open(t, Location{Dir: t.TempDir()}))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, open(t, Location{URL: pgtest.URL(t)}))
	})
}

func open(t testing.TB, where Location) *Store {
	t.Helper()
	s, err := Open(t.Context(), where)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// now is a moment with exactly the precision that is kept.
var now = time.Date(2026, 3, 1, 12, 0, 0, 123_000_000, time.UTC)

func newAccount(email string) *Account {
	return &Account{
		User: freshet.User{
			ID: freshet.NewID(), Email: email, FirstName: "Ada", LastName: "Lovelace", Language: "en_GB",
			Role: freshet.RoleUser, Status: freshet.StatusActive, Quotas: freshet.Quotas{Connections: 10, RequestsPerMinute: -1},
			CreatedAt: now, UpdatedAt: now.Add(time.Second),
		},
		PasswordHash: "$argon2id$…",
	}
}

func newApp(userID, name string) *freshet.App {
	return &freshet.App{
		ID: freshet.NewID(), UserID: userID, Name: name, AutoProvisioningAllowed: true,
		Defaults:      freshet.Defaults{PollEvery: ptr(1500 * time.Millisecond), ForcePublishing: ptr(false)},
		SubscriberKey: freshet.NewKey(freshet.SubscriberKey),
		PublisherKey:  freshet.NewKey(freshet.PublisherKey),
		SignatureKey:  freshet.NewKey(freshet.SignatureKey),
		CreatedAt:     now, UpdatedAt: now.Add(time.Minute),
	}
}

func newTopic(appID, name string) *freshet.Topic {
	return &freshet.Topic{
		ID: freshet.NewID(), AppID: appID, Name: name,
		Publisher: freshet.Publisher{
			Type: freshet.HTTPPoller, URL: "https://example.com/prices?a=1&b=<2>", PollEvery: ptr(3 * time.Second),
			Payload: freshet.Payload{Type: freshet.PayloadSnapshot},
		},
		CreatedAt: now, UpdatedAt: now.Add(time.Hour),
	}
}

func ptr[T any](v T) *T { return &v }

// update fails the test unless the act succeeds.
func update(t testing.TB, s *Store, act func(tx *Tx) error) {
	t.Helper()
	if err := s.Update(t.Context(), act); err != nil {
		t.Fatal(err)
	}
}

// household is one user with one app and one topic, all stored.
func household(t testing.TB, s *Store, email string) (*Account, *freshet.App, *freshet.Topic) {
	t.Helper()
	user := newAccount(email)
	app := newApp(user.ID, "prices")
	topic := newTopic(app.ID, "eurusd")
	update(t, s, func(tx *Tx) error {
		if err := tx.CreateUser(user); err != nil {
			return err
		}
		if err := tx.CreateApp(app); err != nil {
			return err
		}
		return tx.CreateTopic(topic)
	})
	return user, app, topic
}

func wantKind(t testing.TB, err error, want freshet.Kind) {
	t.Helper()
	if err == nil || freshet.KindOf(err) != want {
		t.Errorf("got error %v, want one of kind %d", err, want)
	}
}

func wantSame[T any](t testing.TB, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.Comparer(freshet.ItemPath.Equal),
		cmp.Comparer(func(a, b freshet.Key) bool { return a == b })); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func must[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// withoutKeys is the app as it comes along with topics and keys.
func withoutKeys(a *freshet.App) freshet.App {
	bare := *a
	bare.SubscriberKey, bare.PublisherKey, bare.SignatureKey = "", "", ""
	return bare
}

func TestWhatIsWrittenComesBackTheSame(t *testing.T) {
	forEachStore(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		user, app, topic := household(t, s, "Ada@Example.com")
		post := newTopic(app.ID, "orders ' \" % \\ ☃")
		path, err := freshet.ParseItemPath("|Order|Id.x")
		if err != nil {
			t.Fatal(err)
		}
		post.Publisher = freshet.Publisher{Type: freshet.HTTPPost, ForcePublishing: ptr(true),
			Payload: freshet.Payload{Type: freshet.PayloadItem, ItemIDPath: path}}
		entry := AuditEntry{ID: freshet.NewID(), At: now, ActorID: user.ID, Action: "user.create", Subject: user.ID,
			Detail: `{"a":"\u0000"}`}
		update(t, s, func(tx *Tx) error {
			if err := tx.CreateTopic(post); err != nil {
				return err
			}
			return tx.AppendAudit(entry)
		})

		wantSame(t, must(s.User(ctx, user.ID))(t), &user.User)
		wantSame(t, must(s.AccountByEmail(ctx, "ada@example.com"))(t), user)
		wantSame(t, must(s.App(ctx, app.ID))(t), app)
		wantSame(t, must(s.Apps(ctx, user.ID, Page{Limit: 10}))(t), Listing[freshet.App]{Items: []freshet.App{*app}, Total: 1})
		wantSame(t, must(s.Topic(ctx, topic.ID))(t), &TopicInApp{Topic: *topic, App: withoutKeys(app)})
		wantSame(t, must(s.Topics(ctx, app.ID, Page{Limit: 10}))(t), TopicListing{App: withoutKeys(app),
			Listing: Listing[freshet.Topic]{Items: []freshet.Topic{*topic, *post}, Total: 2}})
		wantSame(t, must(s.Audit(ctx, Page{Limit: 10}))(t), Listing[AuditEntry]{Items: []AuditEntry{entry}, Total: 1})
		if got := must(s.Topic(ctx, post.ID))(t).Topic.Publisher.Payload.ItemIDPath.String(); got != "|Order|Id.x" {
			t.Errorf("the path came back as %q", got)
		}
		wantSame(t, must(s.TopicAccess(ctx, topic.ID))(t),
			&TopicAccess{TopicInApp: TopicInApp{Topic: *topic, App: *app}, UserStatus: freshet.StatusActive, Quotas: user.Quotas})
	})
}

func TestSavingReplacesEverythingButIdentityAndCreation(t *testing.T) {
	forEachStore(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		user, app, topic := household(t, s, "ada@example.com")
		later := now.Add(24 * time.Hour)

		user.Email, user.FirstName, user.LastName, user.Language = "Countess@Example.com", "Augusta", "King", "fr_FR"
		user.Role, user.Status = freshet.RoleAdmin, freshet.StatusDisabled
		user.Quotas = freshet.Quotas{Connections: 1, MessagesPerMonth: 2, RequestsPerMinute: 3, Topics: 4, DocumentBytes: 5}
		user.PasswordHash, user.UpdatedAt = "other", later
		app.Name, app.AutoProvisioningAllowed, app.SignatureRequired = "rates", false, true
		app.Defaults, app.UpdatedAt = freshet.Defaults{}, later
		app.Quotas = freshet.Quotas{Connections: 6, MessagesPerMonth: 7, RequestsPerMinute: 8, Topics: 9, DocumentBytes: 10}
		topic.Name, topic.UpdatedAt = "usdeur", later
		topic.Publisher = freshet.Publisher{Type: freshet.HTTPPost, Payload: freshet.Payload{Type: freshet.PayloadSnapshot}}

		savedUser, savedApp, savedTopic := *user, *app, *topic
		savedUser.CreatedAt, savedApp.CreatedAt, savedTopic.CreatedAt = later, later, later // must have no effect
		update(t, s, func(tx *Tx) error {
			if err := tx.SaveUser(&savedUser); err != nil {
				return err
			}
			if err := tx.SaveApp(&savedApp); err != nil {
				return err
			}
			return tx.SaveTopic(&savedTopic)
		})

		wantSame(t, must(s.AccountByEmail(ctx, "countess@example.com"))(t), user)
		wantSame(t, must(s.App(ctx, app.ID))(t), app)
		wantSame(t, must(s.Topic(ctx, topic.ID))(t).Topic, *topic)
		wantSame(t, must(s.Admins(ctx))(t), []Account{*user})
		_, err := s.AccountByEmail(ctx, "ada@example.com")
		wantKind(t, err, freshet.NotFound)
		wantSame(t, must(s.Users(ctx, "king", Page{Limit: 1}))(t).Total, 1)
	})
}

func TestWhatDoesNotExistIsNotFound(t *testing.T) {
	forEachStore(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		for _, id := range []string{freshet.NewID(), "", "x'; DROP TABLE users; --", "nul\x00byte", "bad utf-8 \xff", "☃"} {
			reads := map[string]error{}
			_, reads["User"] = s.User(ctx, id)
			_, reads["AccountByEmail"] = s.AccountByEmail(ctx, id)
			_, reads["SessionUser"] = s.SessionUser(ctx, id, now)
			_, reads["App"] = s.App(ctx, id)
			_, reads["Topic"] = s.Topic(ctx, id)
			_, reads["TopicAccess"] = s.TopicAccess(ctx, id)
			_, reads["Topics"] = s.Topics(ctx, id, Page{Limit: 10})
			_, reads["AppRecord"] = s.AppRecord(ctx, id)
			_, reads["TopicRecord"] = s.TopicRecord(ctx, id)
			_, reads["KeyRecord"] = s.KeyRecord(ctx, freshet.SubscriberKey, freshet.Key(id))
			for name, err := range reads {
				if freshet.KindOf(err) != freshet.NotFound {
					t.Errorf("%s(%q): %v", name, id, err)
				}
			}
			if list, err := s.Apps(ctx, id, Page{Limit: 10}); err != nil || list.Total != 0 {
				t.Errorf("Apps(%q): %v, %v", id, list, err)
			}
		}
		missing := freshet.NewID()
		writes := map[string]func(tx *Tx) error{
			"LockUser":      func(tx *Tx) error { _, err := tx.LockUser(missing); return err },
			"LockApp":       func(tx *Tx) error { _, err := tx.LockApp(missing); return err },
			"LockTopic":     func(tx *Tx) error { _, err := tx.LockTopic(missing); return err },
			"SaveUser":      func(tx *Tx) error { return tx.SaveUser(newAccount("a@b.c")) },
			"SaveApp":       func(tx *Tx) error { return tx.SaveApp(newApp(missing, "x")) },
			"SaveTopic":     func(tx *Tx) error { return tx.SaveTopic(newTopic(missing, "x")) },
			"DeleteUser":    func(tx *Tx) error { return tx.DeleteUser(missing) },
			"DeleteApp":     func(tx *Tx) error { return tx.DeleteApp(missing) },
			"DeleteTopic":   func(tx *Tx) error { return tx.DeleteTopic(missing) },
			"CreateApp":     func(tx *Tx) error { return tx.CreateApp(newApp(missing, "x")) },
			"CreateTopic":   func(tx *Tx) error { return tx.CreateTopic(newTopic(missing, "x")) },
			"CreateSession": func(tx *Tx) error { return tx.CreateSession(Session{ID: missing, UserID: missing}) },
			"ReplaceKey": func(tx *Tx) error {
				return tx.ReplaceKey(missing, freshet.PublisherKey, freshet.NewKey(freshet.PublisherKey), now, now)
			},
		}
		for name, write := range writes {
			if err := s.Update(ctx, write); freshet.KindOf(err) != freshet.NotFound {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestPingTellsWhetherTheDatabaseAnswers(t *testing.T) {
	forEachStore(t, func(t *testing.T, s *Store) {
		if err := s.Ping(t.Context()); err != nil {
			t.Error(err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Ping(gone); err == nil {
			t.Error("a canceled ping succeeded")
		}
	})
}
