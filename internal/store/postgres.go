package store

import (
	"context"
	"crypto/tls"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/freshet-io/freshet"
)

const (
	// connectTimeout applies unless the URL has its own connect_timeout.
	connectTimeout = 5 * time.Second
	// postgresConns is per node; PostgreSQL allows 100 in all by default.
	postgresConns = 16
)

// connectLook is how often a PostgreSQL that does not answer is tried at start.
const connectLook = 250 * time.Millisecond

// awaitPostgres opens a PostgreSQL as soon as it answers: nodes and their database may be started in any order.
func awaitPostgres(ctx context.Context, where *Location) (*Store, error) {
	log := where.Log
	patience := time.NewTimer(where.Patience)
	defer patience.Stop()
	for try := 0; ; try++ {
		s, err := openPostgres(ctx, where.URL, log)
		if err == nil && try > 0 {
			log.Info("PostgreSQL answers")
		}
		if err == nil || where.Patience <= 0 || isLasting(err) {
			return s, err
		}
		if try == 0 {
			log.Warn("waiting for PostgreSQL", "timeout", where.Patience, "err", err)
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-patience.C:
			return nil, err
		case <-time.After(connectLook):
		}
	}
}

// isLasting reports whether no waiting helps: the URL, the account, the name of the database or a certificate is wrong.
func isLasting(err error) bool {
	if freshet.KindOf(err) != freshet.Unavailable {
		return true
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (strings.HasPrefix(e.Code, "28") || e.Code == "3D000") // no such account or password; no such database
}

func openPostgres(ctx context.Context, url string, log *slog.Logger) (*Store, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		// Not the cause itself: it repeats the URL, and hides the password only when it can find it.
		return nil, freshet.Errorf(freshet.Invalid, "The database URL cannot be read: "+
			"it must look like postgres://user:password@host:5432/name")
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "freshet"
	}
	db := stdlib.OpenDB(*config, stdlib.OptionAfterConnect(beDurable))
	db.SetMaxOpenConns(postgresConns)
	db.SetMaxIdleConns(postgresConns)
	db.SetConnMaxIdleTime(5 * time.Minute)
	if err := db.PingContext(ctx); err != nil {
		_ = db.Close()
		return nil, freshet.Wrap(freshet.Unavailable, err, fmt.Sprintf(
			"The database %s on %s cannot be reached: check that it runs and that the URL is right",
			config.Database, config.Host))
	}
	if err := checkEncoding(ctx, db, config.Database); err != nil {
		_ = db.Close()
		return nil, err
	}
	s := &Store{engine: postgresEngine, read: db, write: db}
	s.engine.health, s.engine.statements = &health{log: log}, new(atomic.Uint64)
	if err := s.ReadClock(ctx); err != nil {
		_ = db.Close()
		return nil, err
	}
	return s, nil
}

// beDurable has commits of this connection wait for the disk where the database would not: what was acknowledged must be there.
// Stricter settings stay.
func beDurable(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'")
	return err
}

// checkEncoding refuses a database that cannot hold every name. SQL_ASCII holds whatever bytes it gets.
func checkEncoding(ctx context.Context, db *sql.DB, name string) error {
	var encoding string
	if err := db.QueryRowContext(ctx, "SELECT current_setting('server_encoding')").Scan(&encoding); err != nil {
		return freshet.Wrap(freshet.Unavailable, err, "The settings of the database cannot be read")
	}
	if encoding != "UTF8" && encoding != "SQL_ASCII" {
		return freshet.Errorf(freshet.Invalid, "The database %s has the encoding %s; make one with ENCODING 'UTF8' TEMPLATE template0", name, encoding)
	}
	return nil
}

var postgresEngine = engine{
	name:        "postgres",
	rewrite:     func(query string) string { return query },
	fault:       postgresFault,
	countTables: "SELECT count(*) FROM pg_class WHERE oid = to_regclass($1)",
	clock:       "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)",
}

func postgresFault(err error) fault {
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return fault{class: away} // whatever the server said: we are not in
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return fault{class: postgresClass(e.Code), index: e.ConstraintName}
	}
	_, network := errors.AsType[net.Error](err)
	if network || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, driver.ErrBadConn) {
		return fault{class: away}
	}
	return fault{}
}

// postgresClass reads an SQLSTATE; its first two characters are the class.
func postgresClass(code string) faultClass {
	switch code {
	case "23505": // unique_violation
		return clash
	case "23503": // foreign_key_violation
		return orphan
	case "40001", "40P01": // serialization_failure, deadlock_detected
		return contend
	case "25006": // read_only_sql_transaction: we are connected to a standby
		return readOnly
	case "53100": // disk_full
		return full
	case "58030": // io_error
		return broken
	case "55P03", // lock_not_available
		"57P01", "57P02", "57P03": // shutting down, crashed, starting up
		return away
	}
	if len(code) == 5 {
		switch code[:2] {
		case "08", "53", "58": // connection, resources (too many connections), system
			return away
		}
	}
	return unknown
}
