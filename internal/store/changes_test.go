package store

import (
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/freshet-io/freshet"
)

// cursorOf begins to read the log.
func cursorOf(t *testing.T, s *Store) ChangeCursor {
	t.Helper()
	found := must(s.ChangesSince(t.Context(), ChangeCursor{}))(t)
	if !found.All || found.List != nil {
		t.Errorf("whoever begins to read is told %+v", found)
	}
	return found.Next
}

// wantChanges reads on.
func wantChanges(t *testing.T, s *Store, at *ChangeCursor, want ...Subject) {
	t.Helper()
	found := must(s.ChangesSince(t.Context(), *at))(t)
	var got []Subject
	for _, c := range found.List {
		got = append(got, c.Subject)
	}
	if found.All || !slices.Equal(got, want) {
		t.Errorf("got %v, all: %v; want %v", got, found.All, want)
	}
	at.mustRise(t, found.Next, len(want))
	*at = found.Next
}

func (at *ChangeCursor) mustRise(t *testing.T, next ChangeCursor, by int) {
	t.Helper()
	if next.revision != at.revision+int64(by) {
		t.Errorf("revision %d after %d, and %d changes", next.revision, at.revision, by)
	}
}

func TestEveryChangeOfWhatMayBeRememberedIsInTheLog(t *testing.T) {
	forEachStore(t, func(t *testing.T, s *Store) {
		at := cursorOf(t, s)
		user, app, topic := household(t, s, "ada@example.com")
		wantChanges(t, s, &at) // nobody remembers what did not exist

		ofUser, ofApp, ofTopic := Subject{SubjectUser, user.ID}, Subject{SubjectApp, app.ID}, Subject{SubjectTopic, topic.ID}
		for _, change := range []struct {
			name string
			act  func(*Tx) error
			want Subject
		}{
			{"SaveUser", func(tx *Tx) error { return tx.SaveUser(user) }, ofUser},
			{"SaveApp", func(tx *Tx) error { return tx.SaveApp(app) }, ofApp},
			{"ReplaceKey", func(tx *Tx) error {
				fresh := freshet.NewKey(freshet.PublisherKey)
				return errors.Join(tx.ReplaceKey(app.ID, freshet.PublisherKey, fresh, now, now), tx.SaveApp(app))
			}, ofApp},
			{"SaveTopic", func(tx *Tx) error { return tx.SaveTopic(topic) }, ofTopic},
			{"DeleteTopic", func(tx *Tx) error { return tx.DeleteTopic(topic.ID) }, ofTopic},
			{"DeleteApp", func(tx *Tx) error { return tx.DeleteApp(app.ID) }, ofApp},
			{"DeleteUser", func(tx *Tx) error { return tx.DeleteUser(user.ID) }, ofUser},
		} {
			t.Log(change.name)
			refused := errors.New("no")
			if err := s.Update(t.Context(), func(tx *Tx) error { return errors.Join(change.act(tx), refused) }); !errors.Is(err, refused) {
				t.Error(err)
			}
			wantChanges(t, s, &at)
			update(t, s, change.act)
			wantChanges(t, s, &at, change.want)
			wantChanges(t, s, &at)
		}
	})
}

func TestWhatOnlyLocksIsNoChange(t *testing.T) {
	forEachStore(t, func(t *testing.T, s *Store) {
		user, app, topic := household(t, s, "ada@example.com")
		at := cursorOf(t, s)
		update(t, s, func(tx *Tx) error {
			_, err := tx.LockUser(user.ID)
			_, err2 := tx.LockApp(app.ID)
			_, err3 := tx.LockTopic(topic.ID)
			return errors.Join(err, err2, err3, tx.AddUsage(&UsageBatch{Writer: "w", Number: 1}))
		})
		wantChanges(t, s, &at)
	})
}

func TestWhoeverMissedTooMuchTakesEverythingAsChanged(t *testing.T) {
	forEachStore(t, func(t *testing.T, s *Store) {
		_, _, topic := household(t, s, "ada@example.com")
		save := func() { update(t, s, func(tx *Tx) error { return tx.SaveTopic(topic) }) }
		first := cursorOf(t, s)
		save()
		last := cursorOf(t, s)
		update(t, s, func(tx *Tx) error {
			for i := range keptChanges {
				tx.changed(SubjectTopic, strconv.Itoa(i))
			}
			return nil
		})
		if found := must(s.ChangesSince(t.Context(), first))(t); !found.All {
			t.Errorf("%d changes are all", len(found.List))
		}
		var rows int64
		if err := s.reader(t.Context()).row(`SELECT count(*) FROM catalog_changes`, nil, &rows); err != nil || rows != keptChanges {
			t.Errorf("%d rows are kept, %v", rows, err)
		}
		save()
		if found := must(s.ChangesSince(t.Context(), last))(t); !found.All {
			t.Error("the change that was read last is gone, and nobody says so")
		}
	})
}

func TestADatabaseThatWasRestoredHasChangedAltogether(t *testing.T) {
	forEachStore(t, func(t *testing.T, s *Store) {
		_, _, topic := household(t, s, "ada@example.com")
		save := func() { update(t, s, func(tx *Tx) error { return tx.SaveTopic(topic) }) }
		save()
		at := cursorOf(t, s)
		back := func() { // to before that change
			update(t, s, func(tx *Tx) error {
				_, err := tx.writeAny(`DELETE FROM catalog_changes`)
				_, err2 := tx.writeAny(`UPDATE catalog_revision SET revision = 0`)
				return errors.Join(err, err2)
			})
		}
		back()
		if !must(s.ChangesSince(t.Context(), at))(t).All {
			t.Error("a revision that is lower")
		}
		save()
		if !must(s.ChangesSince(t.Context(), at))(t).All {
			t.Error("another change of the same revision")
		}
		save()
		if !must(s.ChangesSince(t.Context(), at))(t).All {
			t.Error("another change of the same revision, and one more")
		}
		at = cursorOf(t, s)
		save()
		wantChanges(t, s, &at, Subject{SubjectTopic, topic.ID})
	})
}

// A revision that can be read must have none before it that is committed later: whoever reads on would never see that.
func TestRevisionsAreCommittedInTheirOrder(t *testing.T) {
	forEachStore(t, func(t *testing.T, s *Store) {
		const writers, each = 8, 25
		at := cursorOf(t, s)
		households := make([]*freshet.Topic, writers)
		for i := range households {
			_, _, households[i] = household(t, s, strconv.Itoa(i)+"@example.com")
		}
		var wg sync.WaitGroup
		for _, topic := range households {
			wg.Go(func() {
				for range each {
					if err := s.Update(t.Context(), func(tx *Tx) error { return tx.SaveTopic(topic) }); err != nil {
						t.Error(err)
					}
				}
			})
		}
		written := make(chan struct{})
		go func() { wg.Wait(); close(written) }()
		seen := 0
		for done := false; !done; {
			select {
			case <-written:
				done = true // after one more look
			default:
			}
			found := must(s.ChangesSince(t.Context(), at))(t)
			if found.All {
				t.Fatal("the log has a gap")
			}
			at.mustRise(t, found.Next, len(found.List))
			seen += len(found.List)
			at = found.Next
		}
		if seen != writers*each {
			t.Errorf("%d changes were seen of %d", seen, writers*each)
		}
	})
}

func TestRecordsKnowTheirRevision(t *testing.T) {
	forEachStore(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		user, app, topic := household(t, s, "ada@example.com")
		update(t, s, func(tx *Tx) error { return tx.SaveTopic(topic) })
		revision := cursorOf(t, s).revision
		wantSame(t, must(s.TopicRecord(ctx, topic.ID))(t), &TopicRecord{Topic: *topic, AppCreatedAt: app.CreatedAt, Revision: revision})
		wantSame(t, must(s.AppRecord(ctx, app.ID))(t),
			&AppRecord{App: *app, UserStatus: user.Status, Quotas: user.Quotas, Revision: revision})
		key := must(s.KeyRecord(ctx, freshet.PublisherKey, app.PublisherKey))(t)
		if key.AppID != app.ID || key.UserID != user.ID || key.Revision != revision {
			t.Errorf("the key came back as %+v", key)
		}
	})
}
