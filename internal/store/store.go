package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/freshet-io/freshet"
)

// Store is an open database. Static after Open, but for its clock.
type Store struct {
	engine engine
	read   *sql.DB
	write  *sql.DB // the same as read on PostgreSQL; the one writing connection on SQLite
	lock   *dirLock

	ahead       atomic.Int64  // by how much the database's clock is ahead of ours, in nanoseconds
	checkpoints *checkpointer // nil on PostgreSQL
}

// Location says where the data is.
type Location struct {
	URL string // postgres://…, or empty for the embedded SQLite
	Dir string // data directory of SQLite; created if missing

	// Reader leaves the schema of a PostgreSQL to others and waits until it is there. It then takes no more than the right to
	// read.
	Reader bool

	// Existing refuses a database that no server of this version has prepared, and leaves it as it is.
	Existing bool

	// Patience is how long to wait for a PostgreSQL that does not answer yet; 0: not at all. What no waiting helps, such as a wrong
	// password, is told at once.
	Patience time.Duration

	Log *slog.Logger // is told what is waited for, and once when the disk fails and when it is well again; nil: nobody

	checkpointAfter time.Duration // for tests; 0 is the usual
}

// Open opens the database and brings its schema up to date. Its errors are *freshet.Error with one sentence for the
// person who starts the server.
func Open(ctx context.Context, where Location) (*Store, error) {
	if where.Existing && where.URL == "" {
		if _, err := os.Stat(filepath.Join(where.Dir, databaseFile)); err != nil {
			return nil, freshet.Wrap(freshet.NotFound, err, fmt.Sprintf("There is no database in %s: name the data directory of the server", where.Dir))
		}
	}
	if where.Log == nil {
		where.Log = slog.New(slog.DiscardHandler)
	}
	open := func() (*Store, error) { return openSQLite(ctx, where.Dir, where.Log) }
	if where.URL != "" {
		open = func() (*Store, error) { return awaitPostgres(ctx, &where) }
	}
	s, err := open()
	if err != nil {
		return nil, err
	}
	prepare := s.migrate
	switch {
	case where.Existing:
		prepare = s.checkSchema
	case where.Reader && where.URL != "":
		prepare = s.awaitSchema
	}
	if err := prepare(ctx); err != nil {
		_ = s.Close() // the first error is the one to tell
		return nil, err
	}
	if s.embedded() {
		s.checkpoints = startCheckpointer(s, cmp.Or(where.checkpointAfter, checkpointAfter))
		s.checkpoints.noteWrite() // what the process before left, and the schema
	}
	return s, nil
}

// Close waits for running statements. On SQLite it also folds the write-ahead log into the database and lets go of
// the data directory.
func (s *Store) Close() error {
	s.checkpoints.close()
	err := s.read.Close()
	if s.write != s.read {
		err = errors.Join(err, s.write.Close())
	}
	// Last, so that nobody opens the database while we still write to it.
	return errors.Join(err, s.lock.release())
}

// Ping asks the database for a sign of life.
func (s *Store) Ping(ctx context.Context) error {
	var one int64
	return s.reader(ctx).row("SELECT 1", nil, &one)
}

// Statements is how many statements were run so far.
func (s *Store) Statements() uint64 { return s.engine.statements.Load() }

// Page is a part of a listing. Numbers out of range mean an empty page, never an error.
type Page struct {
	Offset int64
	Limit  int64
}

// Listing is one page, and how many items there are in all.
type Listing[T any] struct {
	Items []T
	Total int64
}

// maxPage keeps sums of an offset and a limit far from overflowing.
const maxPage = 1 << 61

func (p Page) args() (offset, limit int64) {
	return min(max(p.Offset, 0), maxPage), min(max(p.Limit, 0), maxPage)
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

func notFound(what string) error {
	return freshet.Errorf(freshet.NotFound, "There is no such %s", what)
}

// isText reports whether both engines could hold s at all. PostgreSQL refuses a statement with any other argument,
// so a search for it must end before.
func isText(s string) bool {
	return strings.IndexByte(s, 0) < 0 && strings.ToValidUTF8(s, "") == s
}
