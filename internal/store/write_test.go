package store

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/freshet-io/freshet"
)

func TestDeletingAUserTakesEverythingBelowAlong(t *testing.T) {
	forEachStore(t, func(t *testing.T, s *Store) {
		user, app, _ := household(t, s, "ada@example.com")
		before := countRows(t, s)
		other, _, _ := household(t, s, "other@example.com")
		update(t, s, func(tx *Tx) error {
			if err := tx.ReplaceKey(app.ID, freshet.SubscriberKey, freshet.NewKey(freshet.SubscriberKey), now, now); err != nil {
				return err
			}
			return tx.CreateSession(Session{ID: "s", UserID: user.ID, CreatedAt: now, ExpiresAt: now.Add(time.Hour)})
		})
		update(t, s, func(tx *Tx) error { return tx.DeleteUser(user.ID) })
		if after := countRows(t, s); after != before {
			t.Errorf("left are %s, want those of the other user: %s", after, before)
		}
		must(s.User(t.Context(), other.ID))(t)
	})
}

func TestDeletingAnAppTakesItsTopicsAndKeysAlong(t *testing.T) {
	forEachStore(t, func(t *testing.T, s *Store) {
		user, _, _ := household(t, s, "ada@example.com")
		before := countRows(t, s)
		app := newApp(user.ID, "short-lived")
		update(t, s, func(tx *Tx) error { return tx.CreateApp(app) })
		fill(t, s, app.ID, 3)
		update(t, s, func(tx *Tx) error {
			return tx.ReplaceKey(app.ID, freshet.PublisherKey, freshet.NewKey(freshet.PublisherKey), now, now)
		})
		update(t, s, func(tx *Tx) error { return tx.DeleteApp(app.ID) })
		if after := countRows(t, s); after != before {
			t.Errorf("left are %s, want %s", after, before)
		}
		// Also its revoked keys: they can be brought along to another app.
		again := newApp(user.ID, "short-lived")
		again.PublisherKey = app.PublisherKey
		update(t, s, func(tx *Tx) error { return tx.CreateApp(again) })
	})
}

// countRows shows how many rows each table has.
func countRows(t *testing.T, s *Store) string {
	t.Helper()
	var counts []string
	for _, table := range []string{"users", "sessions", "apps", "keys", "topics"} {
		var n int64
		if err := s.reader(t.Context()).row("SELECT count(*) FROM "+table, nil, &n); err != nil {
			t.Fatal(err)
		}
		counts = append(counts, fmt.Sprint(table, " ", n))
	}
	return strings.Join(counts, ", ")
}

func TestAClashSaysWhatIsTaken(t *testing.T) {
	forEachStore(t, func(t *testing.T, s *Store) {
		user, app, _ := household(t, s, "Ada@example.com")
		other, otherApp, _ := household(t, s, "other@example.com")
		second := newApp(user.ID, "second")
		update(t, s, func(tx *Tx) error { return tx.CreateApp(second) })

		sameKey := newApp(user.ID, "third")
		sameKey.SubscriberKey = otherApp.SubscriberKey
		renamed := *second
		renamed.Name = app.Name
		moved := *other
		moved.Email = "ADA@example.com"
		for name, c := range map[string]struct {
			write func(tx *Tx) error
			want  error
		}{
			"sign up":     {func(tx *Tx) error { return tx.CreateUser(newAccount("aDA@example.com")) }, ErrEmailTaken},
			"move":        {func(tx *Tx) error { return tx.SaveUser(&moved) }, ErrEmailTaken},
			"create app":  {func(tx *Tx) error { return tx.CreateApp(newApp(user.ID, app.Name)) }, ErrAppNameTaken},
			"rename app":  {func(tx *Tx) error { return tx.SaveApp(&renamed) }, ErrAppNameTaken},
			"bring a key": {func(tx *Tx) error { return tx.CreateApp(sameKey) }, ErrKeyTaken},
			"replace key": {func(tx *Tx) error {
				return tx.ReplaceKey(app.ID, freshet.SubscriberKey, otherApp.SubscriberKey, now, now)
			}, ErrKeyTaken},
		} {
			err := s.Update(t.Context(), c.write)
			if freshet.KindOf(err) != freshet.Conflict || !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", name, err, c.want)
			} else if strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), otherApp.SubscriberKey.Reveal()) {
				t.Errorf("%s: the error shows the key", name)
			}
		}
		// Neither another user's app names nor another kind's keys clash.
		update(t, s, func(tx *Tx) error {
			return tx.ReplaceKey(app.ID, freshet.PublisherKey, otherApp.SubscriberKey, now, now)
		})
		twin := newAccount("twin@example.com")
		twin.ID = user.ID
		wantKind(t, s.Update(t.Context(), func(tx *Tx) error { return tx.CreateUser(twin) }), freshet.Conflict)
	})
}

func TestARenewedKeyStaysBehindAsRevoked(t *testing.T) {
	forEachStore(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		user, app, _ := household(t, s, "ada@example.com")
		old, fresh := app.SubscriberKey, freshet.NewKey(freshet.SubscriberKey)
		later, overlap := now.Add(time.Hour), now.Add(2*time.Hour)
		update(t, s, func(tx *Tx) error { return tx.ReplaceKey(app.ID, freshet.SubscriberKey, fresh, later, overlap) })

		app.SubscriberKey, app.UpdatedAt = fresh, later
		wantSame(t, must(s.App(ctx, app.ID))(t), app)
		owner := KeyRecord{UserID: user.ID, Revision: 1}
		owner.KeyRecord = freshet.KeyRecord{AppID: app.ID, Kind: freshet.SubscriberKey, Key: fresh, CreatedAt: later}
		wantSame(t, *must(s.KeyRecord(ctx, freshet.SubscriberKey, fresh))(t), owner)
		owner.KeyRecord = freshet.KeyRecord{AppID: app.ID, Kind: freshet.SubscriberKey, Key: old, CreatedAt: now, RevokedAt: overlap}
		wantSame(t, *must(s.KeyRecord(ctx, freshet.SubscriberKey, old))(t), owner)

		_, err := s.KeyRecord(ctx, freshet.PublisherKey, fresh)
		wantKind(t, err, freshet.NotFound)
		// A key that was renewed cannot come back: its bearers have been told that it is void.
		err = s.Update(ctx, func(tx *Tx) error { return tx.ReplaceKey(app.ID, freshet.SubscriberKey, old, later, later) })
		if !errors.Is(err, ErrKeyTaken) {
			t.Errorf("bringing back a revoked key: %v", err)
		}
		// Whoever forgets the time must not end up with two current keys.
		update(t, s, func(tx *Tx) error {
			return tx.ReplaceKey(app.ID, freshet.SubscriberKey, freshet.NewKey(freshet.SubscriberKey), later, time.Time{})
		})
		if r := must(s.KeyRecord(ctx, freshet.SubscriberKey, fresh))(t); !r.Revoked(now) {
			t.Error("the key before is still current")
		}
	})
}

func TestSessionsEndOnTimeAndTogether(t *testing.T) {
	forEachStore(t, func(t *testing.T, s *Store) {
		user, _, _ := household(t, s, "ada@example.com")
		other, _, _ := household(t, s, "other@example.com")
		start := func(id, userID string, expires time.Time) {
			update(t, s, func(tx *Tx) error {
				return tx.CreateSession(Session{ID: id, UserID: userID, CreatedAt: now, ExpiresAt: expires})
			})
		}
		want := func(open ...string) {
			t.Helper()
			for _, id := range []string{"a", "b", "c", "old", "theirs"} {
				_, err := s.SessionUser(t.Context(), id, now)
				if isOpen := err == nil; isOpen != strings.Contains(strings.Join(open, " "), id) {
					t.Errorf("session %s: %v; open should be %v", id, err, open)
				}
			}
		}
		for _, id := range []string{"a", "b", "c"} {
			start(id, user.ID, now.Add(time.Millisecond))
		}
		start("old", user.ID, now)
		start("theirs", other.ID, now.Add(time.Hour))
		want("a", "b", "c", "theirs")
		wantSame(t, must(s.SessionUser(t.Context(), "a", now))(t), &user.User)

		update(t, s, func(tx *Tx) error { return tx.DropExpiredSessions(user.ID, now) })
		if rows := countRows(t, s); !strings.Contains(rows, "sessions 4") {
			t.Errorf("after dropping the expired one: %s", rows)
		}
		update(t, s, func(tx *Tx) error { return tx.EndSession("a") })
		update(t, s, func(tx *Tx) error { return tx.EndSession("a") })
		want("b", "c", "theirs")
		update(t, s, func(tx *Tx) error { return tx.EndSessions(user.ID, "b") })
		want("b", "theirs")
		update(t, s, func(tx *Tx) error { return tx.EndSessions(user.ID, "") })
		want("theirs")
	})
}

func TestAFailedActLeavesNothingBehind(t *testing.T) {
	forEachStore(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		household(t, s, "ada@example.com")
		before := countRows(t, s)
		changed := errors.New("changed my mind")
		if err := s.Update(ctx, func(tx *Tx) error {
			return errors.Join(tx.CreateUser(newAccount("b@example.com")), changed)
		}); !errors.Is(err, changed) {
			t.Errorf("got %v", err)
		}
		func() {
			defer func() { _ = recover() }()
			_ = s.Update(ctx, func(tx *Tx) error {
				_ = tx.CreateUser(newAccount("b@example.com"))
				panic("no")
			})
		}()
		// A write that failed ends the transaction even for a function that looks away.
		for name, fail := range map[string]func(tx *Tx) error{
			"clash":   func(tx *Tx) error { return tx.CreateUser(newAccount("ada@example.com")) },
			"orphan":  func(tx *Tx) error { return tx.CreateApp(newApp(freshet.NewID(), "x")) },
			"missing": func(tx *Tx) error { return tx.DeleteTopic(freshet.NewID()) },
		} {
			err := s.Update(ctx, func(tx *Tx) error {
				_ = tx.CreateUser(newAccount("b@example.com"))
				first := fail(tx)
				if again := tx.CreateUser(newAccount("c@example.com")); first == nil || !errors.Is(again, first) {
					t.Errorf("%s: after %v the next write gave %v", name, first, again)
				}
				return nil
			})
			if err == nil {
				t.Errorf("%s: the act succeeded", name)
			}
		}
		if after := countRows(t, s); after != before {
			t.Errorf("there are %s, want %s", after, before)
		}
		// Not to find what one wants to lock is an answer, not a failure.
		update(t, s, func(tx *Tx) error {
			if _, err := tx.LockUser(freshet.NewID()); freshet.KindOf(err) != freshet.NotFound {
				return fmt.Errorf("locking nobody: %v", err)
			}
			return tx.CreateUser(newAccount("b@example.com"))
		})
	})
}
