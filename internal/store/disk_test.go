package store

import (
	"errors"
	"log/slog"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/ncruces/go-sqlite3"
)

func TestFaultsOfTheDiskAreToldApart(t *testing.T) {
	t.Parallel()
	roomy := Space{Free: 1 << 30, Total: 1 << 31}
	for _, c := range []struct {
		name  string
		err   error
		space Space
		want  faultClass
	}{
		{"SQLite says full", sqlite3.FULL, roomy, full},
		{"an I/O error with its cause", errors.Join(sqlite3.IOERR_WRITE, syscall.ENOSPC), roomy, full},
		{"a quota", errors.Join(sqlite3.IOERR_WRITE, syscall.EDQUOT), roomy, full},
		{"an I/O error whose cause is lost", sqlite3.IOERR_WRITE, Space{Total: 1 << 30}, full},
		{"no room for the index of the log", sqlite3.IOERR_SHMSIZE, Space{Free: 4096, Total: 1 << 30}, full},
		{"SQLite says read-only", sqlite3.READONLY, roomy, readOnly},
		{"a read-only file system", errors.Join(sqlite3.CANTOPEN, syscall.EROFS), roomy, readOnly},
		{"one whose cause is lost", sqlite3.IOERR_FSYNC, Space{Free: 1 << 30, ReadOnly: true}, readOnly},
		{"the file was moved", sqlite3.READONLY_DBMOVED, roomy, away},
		{"a disk that fails", errors.Join(sqlite3.IOERR_READ, syscall.EIO), roomy, broken},
		{"one whose cause is lost, with room", sqlite3.IOERR_READ, roomy, broken},
	} {
		e := sqliteEngine
		e.health = &health{log: slog.New(slog.DiscardHandler), disk: &disk{dir: t.TempDir(), space: func(string) (Space, error) { return c.space, nil }}}
		if got := e.sort(c.err).class; got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	for code, want := range map[string]faultClass{"53100": full, "25006": readOnly, "58030": broken, "53300": away} {
		if got := postgresFault(&pgconn.PgError{Code: code}).class; got != want {
			t.Errorf("PostgreSQL's %s: %d, want %d", code, got, want)
		}
	}
}

func TestADiskIsAlmostFullBelowAHundredth(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		free, total uint64
		want        bool
	}{
		{10 << 20, 100 << 20, true}, {17 << 20, 100 << 20, false}, {90 << 20, 10 << 30, true}, {110 << 20, 10 << 30, false},
		{900 << 20, 10 << 40, true}, {2 << 30, 10 << 40, false},
	} {
		if got := (Space{Free: c.free, Total: c.total}).low(); got != c.want {
			t.Errorf("%d of %d: %t", c.free, c.total, got)
		}
	}
}
