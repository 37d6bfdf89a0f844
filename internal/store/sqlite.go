package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/freshet-io/freshet"
)

const (
	databaseFile = "freshet.db"
	lockFile     = "freshet.lock"

	// busyTimeout is for the rare stranger, such as somebody's sqlite3 shell: our own writers queue for one connection.
	busyTimeout = 5 * time.Second
	// readers is how many reads run at once. More only queue for the processor; each holds a few MB.
	readers = 4
)

// openSQLite opens the database in dir, for this process alone.
func openSQLite(ctx context.Context, dir string, log *slog.Logger) (*Store, error) {
	if dir == "" {
		return nil, freshet.Errorf(freshet.Invalid, "No data directory is given, and no database URL")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, unusable(dir, err)
	}
	h := &health{disk: &disk{dir: dir, space: spaceOf}, log: log}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, unusable(dir, err)
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, databaseFile)
	missing, frames := missingFrames(path)
	s := &Store{
		engine: sqliteEngine,
		read:   sqlitePool(path, readerPragmas, readers),
		write:  sqlitePool(path, writerPragmas, 1),
		lock:   lock,
	}
	s.engine.health, s.engine.statements = h, new(atomic.Uint64)
	// Before SQLite creates the file, which would let everybody read it.
	if err = makePrivate(path); err == nil {
		// Reading the schema finds a file that is no database, or not all of one.
		_, err = s.write.ExecContext(ctx, "SELECT count(*) FROM sqlite_master")
	}
	if err != nil {
		_ = s.Close()
		if fault := h.startFault(err, s.engine.sort(err).class); fault != nil {
			return nil, fault
		}
		return nil, sqliteOpenError(path, err)
	}
	if missing > 0 {
		log.Error("acknowledged changes are missing: the write-ahead log of the database was cut, removed or replaced. Put a backup in its place, or go on with what is left",
			"file", path+"-wal", "pages", frames, "missing", missing)
		if err := s.quickCheck(ctx); err != nil {
			_ = s.Close()
			return nil, sqliteOpenError(path, err)
		}
	}
	return s, nil
}

// quickCheck looks whether the pages of the database fit together.
func (s *Store) quickCheck(ctx context.Context) error {
	var verdict string
	if err := s.write.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict); err != nil {
		return err
	}
	if verdict != "ok" {
		return fmt.Errorf("%w: %s", sqlite3.CORRUPT, verdict)
	}
	return nil
}

// Order matters: the busy timeout first. Pragmas of the file, such as WAL, are the writer's to set.
var (
	busyPragma    = fmt.Sprintf("PRAGMA busy_timeout = %d;", busyTimeout.Milliseconds())
	writerPragmas = busyPragma + "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON"
	readerPragmas = busyPragma + "PRAGMA query_only = ON"
)

// sqlitePool opens connections when they are needed and keeps them: they cost more to open than to hold.
func sqlitePool(path, pragmas string, size int) *sql.DB {
	connector, err := newPreparing(sqliteName(path),
		// Here, since it comes and goes with the first and the last connection, and modeof does not reach it.
		func() error { return makePrivate(path + "-shm") },
		func(c *sqlite3.Conn) error { return c.Exec(pragmas) })
	if err != nil {
		panic(err) // the name is well formed, and nothing has been opened yet
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	return db
}

// sqliteName says that a transaction waits for the writer's lock where it begins, not in the middle, where it would fail;
// and that the log gets the permissions of the database, since it holds the same secrets.
func sqliteName(path string) string {
	path = filepath.ToSlash(path)
	modeOf := strings.ReplaceAll(url.QueryEscape(path), "+", "%20") // SQLite reads + as itself
	name := url.URL{Scheme: "file", Path: path, RawQuery: "_txlock=immediate&modeof=" + modeOf}
	return name.String()
}

func makePrivate(path string) error {
	f, err := openPrivate(path)
	if err != nil {
		return err
	}
	return f.Close()
}

// openPrivate opens a file that nobody but its owner can read, and creates it if need be.
func openPrivate(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		err = f.Chmod(0o600)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

var sqliteEngine = engine{
	name:        "sqlite",
	rewrite:     forSQLite,
	fault:       sqliteFault,
	countTables: "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = $1",
}

func sqliteFault(err error) fault {
	var code sqlite3.ErrorCode
	var extended sqlite3.ExtendedErrorCode
	if !errors.As(err, &code) || !errors.As(err, &extended) {
		return fault{}
	}
	switch extended {
	case sqlite3.CONSTRAINT_UNIQUE, sqlite3.CONSTRAINT_PRIMARYKEY:
		_, columns, _ := strings.Cut(err.Error(), "UNIQUE constraint failed: ")
		return fault{class: clash, index: columns}
	case sqlite3.CONSTRAINT_FOREIGNKEY:
		return fault{class: orphan}
	}
	switch code {
	case sqlite3.BUSY, sqlite3.LOCKED:
		return fault{class: contend}
	case sqlite3.FULL:
		return fault{class: full}
	case sqlite3.READONLY:
		if extended != sqlite3.READONLY_DBMOVED {
			return fault{class: readOnly}
		}
		return fault{class: away}
	case sqlite3.IOERR, sqlite3.CANTOPEN:
		return fault{class: broken}
	case sqlite3.NOMEM, sqlite3.PROTOCOL:
		return fault{class: away}
	}
	return fault{}
}

// sqliteOpenError says in one sentence what to do about a database that does not open.
func sqliteOpenError(path string, err error) error {
	switch {
	case errors.Is(err, sqlite3.NOTADB), errors.Is(err, sqlite3.CORRUPT):
		return freshet.Wrap(freshet.Unavailable, err, fmt.Sprintf(
			"The database %s is damaged: move it away to start afresh, or put a backup in its place", path))
	case errors.Is(err, sqlite3.BUSY):
		return freshet.Wrap(freshet.Unavailable, err, fmt.Sprintf(
			"The database %s is locked by another program: close that first", path))
	}
	return unusable(filepath.Dir(path), err)
}

// unusable names the directory and the reason the operating system gave.
func unusable(dir string, err error) error {
	if class, known := errnoClass(err); known {
		return (&health{disk: &disk{dir: dir}}).startFault(err, class)
	}
	reason := err
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		reason = p.Err
	}
	return freshet.Wrap(freshet.Unavailable, err, fmt.Sprintf(
		"The data directory %s cannot be used (%v): make it writable, or choose another", dir, reason))
}
