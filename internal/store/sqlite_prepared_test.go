package store

import (
	"database/sql"
	"fmt"
	"testing"
)

// kept is how many statements the one connection of the pool has prepared and not closed.
func kept(t *testing.T, db *sql.DB) int {
	t.Helper()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	n := 0
	if err := conn.Raw(func(c any) error { n = c.(*preparedConn).kept; return nil }); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestSQLiteParsesEachStatementOnce(t *testing.T) {
	t.Parallel()
	s := open(t, Location{Dir: t.TempDir()})
	read := func(text string) {
		t.Helper()
		update(t, s, func(tx *Tx) error {
			var n int64
			return tx.row(text, nil, &n)
		})
	}
	read("SELECT 1")
	before := kept(t, s.write)
	for range 3 {
		read("SELECT 1")
	}
	if n := kept(t, s.write); n != before {
		t.Errorf("%d statements are prepared after the same one ran again, %d before", n, before)
	}
	for i := range maxPrepared + 10 {
		read(fmt.Sprintf("SELECT %d", i))
	}
	if n := kept(t, s.write); n != maxPrepared {
		t.Errorf("%d statements are kept, at most %d should be", n, maxPrepared)
	}
}

// A statement that runs cannot be begun again: it would start over and its first reader would see rows twice.
func TestAStatementMayRunWhileItRuns(t *testing.T) {
	t.Parallel()
	s := open(t, Location{Dir: t.TempDir()})
	const text = "SELECT value FROM (SELECT 1 AS value UNION ALL SELECT 2 UNION ALL SELECT 3) WHERE value >= $1 ORDER BY value"
	var seen []int64
	update(t, s, func(tx *Tx) error {
		return tx.rows(text, []any{1}, func(scan scanner) error {
			var outer, inner int64
			if err := scan(&outer); err != nil {
				return err
			}
			if err := tx.row(text, []any{outer}, &inner); err != nil {
				return err
			}
			seen = append(seen, outer, inner)
			return nil
		})
	})
	if want := "[1 1 2 2 3 3]"; fmt.Sprint(seen) != want {
		t.Errorf("saw %v, want %s", seen, want)
	}
}
