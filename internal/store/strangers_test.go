package store

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/freshet-io/freshet/internal/pgtest"
)

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
