package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/driver"

	"github.com/freshet-io/freshet"
)

func TestADataDirectoryBelongsToOneProcess(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	s := open(t, Location{Dir: dir})
	_, err := Open(t.Context(), Location{Dir: dir})
	wantSentence(t, err, freshet.Conflict, dir, "in use by another freshet")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, Location{Dir: dir})
}

func TestOnlyTheOwnerCanReadTheData(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "made", "by us")
	s := open(t, Location{Dir: dir})
	household(t, s, "ada@example.com")
	if err := s.Ping(t.Context()); err != nil { // opens a reader
		t.Fatal(err)
	}
	if mode := modeOf(t, dir); mode != 0o700 {
		t.Errorf("the directory has mode %o", mode)
	}
	files := []string{databaseFile, databaseFile + "-wal", databaseFile + "-shm", lockFile}
	for _, name := range files {
		if mode := modeOf(t, filepath.Join(dir, name)); mode != 0o600 {
			t.Errorf("%s has mode %o", name, mode)
		}
	}
}

func TestFilesThatEverybodyCanReadAreTightened(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := []string{databaseFile, databaseFile + "-wal", databaseFile + "-shm", lockFile}
	for _, name := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, nil, 0o666), os.Chmod(path, 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	household(t, open(t, Location{Dir: dir}), "ada@example.com")
	for _, name := range files {
		if mode := modeOf(t, filepath.Join(dir, name)); mode != 0o600 {
			t.Errorf("%s has mode %o", name, mode)
		}
	}
}

func modeOf(t *testing.T, path string) os.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Perm()
}

func TestTheDirectoryMayHaveAnyName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"with space", "question?mark=1&x", "100%25", "#hash", "été ☃", "a:b"} {
		dir := filepath.Join(t.TempDir(), name)
		s := open(t, Location{Dir: dir})
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(filepath.Join(dir, databaseFile)); err != nil || info.Size() == 0 {
			t.Errorf("%s: the database is somewhere else: %v", name, err)
		}
	}
}

func TestADirectoryThatCannotBeUsedIsOneSentence(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "below")} {
		_, err := Open(t.Context(), Location{Dir: dir})
		wantSentence(t, err, freshet.Unavailable, dir, "not a directory", "writable")
	}
	// The database's own place may be taken, too.
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, databaseFile), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), Location{Dir: dir})
	wantSentence(t, err, freshet.Unavailable, dir, "is a directory")
	_, err = Open(t.Context(), Location{})
	wantSentence(t, err, freshet.Invalid, "No data directory")
}

func TestADamagedDatabaseIsOneSentenceAndStaysAsItIs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, databaseFile)
	garbage := bytes.Repeat([]byte("this is no database. "), 1000)
	if err := os.WriteFile(path, garbage, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // and the directory is let go of
		_, err := Open(t.Context(), Location{Dir: dir})
		wantSentence(t, err, freshet.Unavailable, path, "damaged", "backup")
	}
	if left, err := os.ReadFile(path); err != nil || !bytes.Equal(left, garbage) {
		t.Errorf("the file was touched: %v", err)
	}
}

func TestHalfADatabaseIsDamaged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, databaseFile)
	s := open(t, Location{Dir: dir})
	household(t, s, "ada@example.com")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, info.Size()/2); err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), Location{Dir: dir})
	wantSentence(t, err, freshet.Unavailable, path, "damaged", "backup")
}

// wantSentence checks what a person at a terminal would see.
func wantSentence(t *testing.T, err error, kind freshet.Kind, parts ...string) {
	t.Helper()
	e, ok := errors.AsType[*freshet.Error](err)
	if !ok || e.Kind != kind {
		t.Errorf("got %v, want an error of kind %d", err, kind)
		return
	}
	for _, part := range parts {
		if !strings.Contains(e.Msg, part) {
			t.Errorf("%q does not say %q", e.Msg, part)
		}
	}
	if strings.Contains(e.Msg, "\n") {
		t.Errorf("%q is more than one line", e.Msg)
	}
}

func TestAcknowledgedWritesAreSyncedAndReadersCannotWrite(t *testing.T) {
	t.Parallel()
	s := open(t, Location{Dir: t.TempDir()})
	for pragma, want := range map[string]string{
		"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "busy_timeout": "5000",
	} {
		var got string
		if err := s.write.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %s, %v; want %s", pragma, got, err, want)
		}
	}
	if _, err := s.read.ExecContext(t.Context(), "DELETE FROM users"); !errors.Is(err, sqlite3.READONLY) {
		t.Errorf("a reader could write: %v", err)
	}
}

func TestAStrangersLockIsWaitedForThenReported(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, Location{Dir: dir})
	if _, err := s.write.ExecContext(t.Context(), "PRAGMA busy_timeout = 1"); err != nil {
		t.Fatal(err)
	}
	stranger, err := driver.Open(sqliteName(filepath.Join(dir, databaseFile)))
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	held, err := stranger.BeginTx(t.Context(), &sql.TxOptions{})
	if err != nil {
		t.Fatal(err)
	}
	write := func(tx *Tx) error { return tx.CreateUser(newAccount("ada@example.com")) }
	err = s.Update(t.Context(), write)
	wantKind(t, err, freshet.Unavailable)
	if !errors.Is(err, sqlite3.BUSY) {
		t.Errorf("the cause is lost: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Update(ctx, write); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled update: %v", err)
	}
	if err := held.Rollback(); err != nil {
		t.Fatal(err)
	}
	update(t, s, write)
}

func TestAFullDiskRefusesWritesAndLosesNothing(t *testing.T) {
	t.Parallel()
	s := open(t, Location{Dir: t.TempDir()})
	user, app, _ := household(t, s, "ada@example.com")
	limit := func(pages string) {
		t.Helper()
		var n int64
		if err := s.write.QueryRowContext(t.Context(), "PRAGMA max_page_count = "+pages).Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
	limit("1") // which means: as many as there are
	large := newTopic(app.ID, strings.Repeat("x", 100_000))
	err := s.Update(t.Context(), func(tx *Tx) error { return tx.CreateTopic(large) })
	wantKind(t, err, freshet.Unavailable)
	if !errors.Is(err, sqlite3.FULL) || !freshet.IsLogged(err) {
		t.Errorf("the cause is lost: %v", err)
	}
	wantSentence(t, err, freshet.Unavailable, "The disk is full")
	if list := must(s.Topics(t.Context(), app.ID, Page{Limit: 10}))(t); list.Total != 1 || len(list.Items) != 1 {
		t.Errorf("there are %d topics of %d", len(list.Items), list.Total)
	}
	must(s.User(t.Context(), user.ID))(t)
	limit("1000000")
	update(t, s, func(tx *Tx) error { return tx.CreateTopic(large) })
}
