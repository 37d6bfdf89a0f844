package store

import (
	"database/sql"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/pgtest"
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

func TestAStrangerThatWritesToTheFileMayHaveChangedEverything(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, Location{Dir: dir})
	user, _, topic := household(t, s, "ada@example.com")
	at := cursorOf(t, s)
	update(t, s, func(tx *Tx) error { return tx.SaveTopic(topic) })
	must(s.checkpoint(t.Context()))(t)
	wantChanges(t, s, &at, Subject{SubjectTopic, topic.ID})

	stranger, err := sql.Open("sqlite3", sqliteName(filepath.Join(dir, databaseFile)))
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	if _, err := stranger.ExecContext(t.Context(), `SELECT count(*) FROM users`); err != nil {
		t.Fatal(err)
	}
	wantChanges(t, s, &at) // reading is nothing
	if _, err := stranger.ExecContext(t.Context(), `UPDATE users SET status = 'disabled' WHERE id = ?`, user.ID); err != nil {
		t.Fatal(err)
	}
	found := must(s.ChangesSince(t.Context(), at))(t)
	if !found.All {
		t.Error("nobody noticed")
	}
	wantChanges(t, s, &found.Next)
}

// stranger is somebody at a prompt of PostgreSQL.
type stranger struct {
	t  *testing.T
	db *sql.DB
}

func newStranger(t *testing.T, url string) stranger {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return stranger{t, db}
}

func (p stranger) run(statement string, args ...any) {
	p.t.Helper()
	if _, err := p.db.ExecContext(p.t.Context(), statement, args...); err != nil {
		p.t.Fatalf("%s: %v", statement, err)
	}
}

// mayHaveChangedEverything reads on.
func mayHaveChangedEverything(t *testing.T, s *Store, at *ChangeCursor, what string) {
	t.Helper()
	found := must(s.ChangesSince(t.Context(), *at))(t)
	if !found.All || found.List != nil {
		t.Errorf("%s: nobody noticed, but %v", what, found.List)
	}
	*at = found.Next
	wantChanges(t, s, at) // once is enough
}

func TestAStrangerThatWritesToPostgresMayHaveChangedEverything(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, p := open(t, Location{URL: url}), newStranger(t, url)
	_, _, topic := household(t, s, "ada@example.com")
	at := cursorOf(t, s)

	p.run(`SELECT * FROM users`)
	p.run(`UPDATE users SET status = status`)
	p.run(`UPDATE users SET status = 'disabled' WHERE id = 'nobody'`)
	p.run(`INSERT INTO topics SELECT 'another', app_id, name, publisher_type, config, payload_type, item_id_path, created_at, updated_at FROM topics`)
	wantChanges(t, s, &at)

	for _, statement := range []string{
		`UPDATE users SET status = 'disabled'`,
		`UPDATE keys SET revoked_at = 1 WHERE kind = 'publisher'`,
		`INSERT INTO users SELECT * FROM users ON CONFLICT (id) DO UPDATE SET status = 'active'`,
		`DELETE FROM topics WHERE id = 'another'`,
		`DELETE FROM keys WHERE kind = 'publisher'`,
	} {
		p.run(statement)
		mayHaveChangedEverything(t, s, &at, statement)
	}
	update(t, s, func(tx *Tx) error { return tx.SaveTopic(topic) })
	wantChanges(t, s, &at, Subject{SubjectTopic, topic.ID})
	for _, statement := range []string{`TRUNCATE topics`, `DELETE FROM apps`, `TRUNCATE users CASCADE`} {
		p.run(statement)
		mayHaveChangedEverything(t, s, &at, statement)
	}
}

// Triggers name columns: one that a later migration adds must not be forgotten.
func TestAStrangerIsNoticedWhicheverColumnItChanges(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, p := open(t, Location{URL: url}), newStranger(t, url)
	_, app, _ := household(t, s, "ada@example.com")
	p.run(`INSERT INTO users SELECT 'another', '', '', search, first_name, last_name, language, role, status, 0, 0, 0, '', 0, 0, 0, 0 FROM users`)
	at := cursorOf(t, s)
	var columns [][3]string
	if err := s.reader(t.Context()).rows(`SELECT table_name, column_name, data_type FROM information_schema.columns
		WHERE table_name IN ('users', 'apps', 'keys', 'topics') AND column_name NOT IN ('id', 'app_id')`, nil, func(scan scanner) error {
		var c [3]string
		columns = append(columns, c)
		return scan(&columns[len(columns)-1][0], &columns[len(columns)-1][1], &columns[len(columns)-1][2])
	}); err != nil || len(columns) < 40 {
		t.Fatalf("%d columns, %v", len(columns), err)
	}
	for _, c := range columns {
		table, column := c[0], c[1]
		to := map[string]string{"text": column + " || 'x'", "bigint": column + " + 1", "boolean": "NOT " + column}[c[2]]
		if column == "user_id" {
			to = "'another'"
		}
		one := map[string]string{"users": "id <> 'another'", "keys": "kind LIKE 'publisher%'"}[table]
		if one == "" {
			one = "TRUE"
		}
		p.run(`UPDATE ` + table + ` SET ` + column + ` = ` + to + ` WHERE ` + one)
		if column == "topic_count" {
			wantChanges(t, s, &at) // which nobody remembers
			continue
		}
		mayHaveChangedEverything(t, s, &at, table+"."+column)
	}
	p.run(`UPDATE topics SET id = 'renamed' WHERE app_id = $1`, app.ID)
	mayHaveChangedEverything(t, s, &at, "topics.id")
}

func TestAStrangerHoldsNobodyUpBeforeItCommits(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, p := open(t, Location{URL: url}), newStranger(t, url)
	household(t, s, "ada@example.com")
	_, _, topic := household(t, s, "eve@example.com")
	at := cursorOf(t, s)
	tx, err := p.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := tx.ExecContext(t.Context(), `UPDATE users SET status = status || 'x' WHERE email_key = 'ada@example.com'`); err != nil {
			t.Fatal(err)
		}
	}
	update(t, s, func(tx *Tx) error { return tx.SaveTopic(topic) })
	wantChanges(t, s, &at, Subject{SubjectTopic, topic.ID})
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	before := at.revision
	mayHaveChangedEverything(t, s, &at, "a transaction")
	if at.revision != before+1 {
		t.Errorf("one transaction made %d revisions", at.revision-before)
	}

	if tx, err = p.db.BeginTx(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), `DELETE FROM users`); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	wantChanges(t, s, &at)
}

// Somebody else may have a right to write to one table, and another search path.
func TestAStrangerNeedsNoRightToTheLog(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, p := open(t, Location{URL: url}), newStranger(t, url)
	household(t, s, "ada@example.com")
	at := cursorOf(t, s)
	name, _ := adminOf(t, url)
	role := name + "_writer"
	p.run(`CREATE ROLE ` + role)
	defer func() { p.run(`DROP OWNED BY ` + role + `; DROP ROLE ` + role) }()
	p.run(`GRANT SELECT, UPDATE ON users TO ` + role)
	p.db.SetMaxOpenConns(1) // the role is that of a connection
	p.run(`SET ROLE ` + role)
	p.run(`SET search_path = pg_catalog`)
	p.run(`UPDATE public.users SET status = 'disabled'`)
	p.run(`RESET ROLE`)
	mayHaveChangedEverything(t, s, &at, "a role without rights")
}

func TestTheLogOfStrangersHasAnEnd(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, p := open(t, Location{URL: url}), newStranger(t, url)
	household(t, s, "ada@example.com")
	p.run(`UPDATE catalog_revision SET revision = $1`, keptChanges)
	p.run(`INSERT INTO catalog_changes SELECT n, n, 'topic', '' FROM generate_series(1, $1) n`, keptChanges)
	p.run(`UPDATE users SET status = 'disabled'`)
	var rows, first int64
	if err := s.reader(t.Context()).row(`SELECT count(*), min(revision) FROM catalog_changes`, nil, &rows, &first); err != nil || rows != keptChanges || first != 2 {
		t.Errorf("%d rows are kept, from %d on, %v", rows, first, err)
	}
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
