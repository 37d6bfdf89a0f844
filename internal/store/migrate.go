package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/freshet-io/freshet"
)

//go:embed migrations/*.sql
var embedded embed.FS

// migrations are those of the engine.
func (s *Store) migrations() (fs.FS, error) {
	all, err := fs.Sub(embedded, "migrations")
	if err != nil || !s.embedded() {
		return all, err
	}
	return withoutPostgres{all}, nil
}

// withoutPostgres leaves out what only PostgreSQL needs. Numbers are not given twice, so SQLite has a gap there.
type withoutPostgres struct{ fs.FS }

// Glob is how migrations are found.
func (m withoutPostgres) Glob(pattern string) ([]string, error) {
	names, err := fs.Glob(m.FS, pattern)
	return slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, ".postgres.sql") }), err
}

// versionTable records which migrations have run.
const versionTable = "schema_version"

// migrate brings the schema to the newest version this binary knows, and refuses a newer one: an older binary would
// drop what it does not know.
func (s *Store) migrate(ctx context.Context) error {
	migrations, err := s.migrations()
	if err != nil {
		return err
	}
	if err := s.migrateTo(ctx, migrations); err != nil {
		if _, ok := errors.AsType[*freshet.Error](err); ok {
			return err
		}
		if fault := s.engine.health.startFault(err, s.engine.sort(err).class); fault != nil {
			return fault
		}
		return freshet.Wrap(freshet.Unavailable, err, "The database schema cannot be brought up to date")
	}
	return nil
}

func (s *Store) migrateTo(ctx context.Context, migrations fs.FS) error {
	newest, err := newestVersion(migrations)
	if err != nil {
		return err
	}
	// Almost every start ends here, without waiting for a lock and without reading migrations.
	current, err := s.schemaVersion(ctx)
	if err != nil || current == newest {
		return err
	}
	if current < newest {
		if err := s.runMigrations(ctx, migrations); err != nil {
			return err
		}
		// A newer binary may have been faster.
		if current, err = s.schemaVersion(ctx); err != nil {
			return err
		}
	}
	if current > newest {
		return tooNew(current, newest)
	}
	return nil
}

// schemaLook is how often a reader looks whether the schema is there.
const schemaLook = 250 * time.Millisecond

// awaitSchema waits until somebody else has brought the schema to the version that this binary knows.
func (s *Store) awaitSchema(ctx context.Context) error {
	migrations, err := s.migrations()
	if err != nil {
		return err
	}
	newest, err := newestVersion(migrations)
	if err != nil {
		return err
	}
	for {
		current, err := s.schemaVersion(ctx)
		switch {
		case err != nil:
			return freshet.Wrap(freshet.Unavailable, err, "The schema of the database cannot be read")
		case current == newest:
			return nil
		case current > newest:
			return tooNew(current, newest)
		}
		select {
		case <-ctx.Done():
			return freshet.Errorf(freshet.Unavailable, "The database has schema version %d, not %d: start a process with the role manage, which brings it up to date", current, newest)
		case <-time.After(schemaLook):
		}
	}
}

// checkSchema accepts only what this binary would have made.
func (s *Store) checkSchema(ctx context.Context) error {
	migrations, err := s.migrations()
	if err != nil {
		return err
	}
	newest, err := newestVersion(migrations)
	if err != nil {
		return err
	}
	current, err := s.schemaVersion(ctx)
	switch {
	case err != nil:
		return freshet.Wrap(freshet.Unavailable, err, "The schema of the database cannot be read")
	case current > newest:
		return tooNew(current, newest)
	case current < newest:
		return freshet.Errorf(freshet.Conflict, "The database has schema version %d, not %d: start this version of the server first, which brings it up to date", current, newest)
	}
	return nil
}

func tooNew(current, newest int64) error {
	return freshet.Errorf(freshet.Conflict, "The database has schema version %d, but this freshet knows versions up to %d: "+
		"start the newer freshet that wrote it, or restore a backup from before the upgrade", current, newest)
}

func (s *Store) runMigrations(ctx context.Context, migrations fs.FS) error {
	options := []goose.ProviderOption{
		goose.WithTableName(versionTable),
		goose.WithDisableGlobalRegistry(true),
		goose.WithLogger(goose.NopLogger()),
	}
	dialect := goose.DialectSQLite3 // where the lock on the data directory keeps others away
	if s.engine.name == postgresEngine.name {
		dialect = goose.DialectPostgres
		options = append(options, goose.WithSessionLocker(advisoryLock{}))
	}
	provider, err := goose.NewProvider(dialect, s.write, migrations, options...)
	if err != nil {
		return err
	}
	_, err = provider.Up(ctx)
	return err
}

// newestVersion reads the number at the beginning of the last file's name.
func newestVersion(migrations fs.FS) (int64, error) {
	names, err := fs.Glob(migrations, "*.sql")
	if err != nil || len(names) == 0 {
		return 0, fmt.Errorf("no migrations: %w", err)
	}
	return goose.NumericComponent(path.Base(names[len(names)-1]))
}

// schemaVersion is 0 for an empty database.
func (s *Store) schemaVersion(ctx context.Context) (int64, error) {
	db := conn{ctx: ctx, engine: &s.engine, db: s.write}
	var tables, version int64
	if err := db.row(s.engine.countTables, []any{versionTable}, &tables); err != nil || tables == 0 {
		return 0, err
	}
	err := db.row("SELECT max(version_id) FROM "+versionTable, nil, &version)
	return version, err
}

// advisoryLock lets one node migrate at a time. Unlike goose's own, it waits inside PostgreSQL, so that the nodes
// that come second go on at once and not at the next of a row of attempts.
type advisoryLock struct{}

// advisoryLockID is arbitrary, but must never change.
const advisoryLockID = 0x66726573686574 // "freshet"

func (advisoryLock) SessionLock(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock($1)", int64(advisoryLockID))
	return err
}

func (advisoryLock) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "SELECT pg_advisory_unlock($1)", int64(advisoryLockID))
	return err
}
