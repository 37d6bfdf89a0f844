// Package pgtest gives tests a real PostgreSQL.
//
// It starts one server per test process, from the binaries that Debian installs, and makes one empty database per
// call. FRESHET_TEST_POSTGRES=postgres://… uses a server that runs already. It never skips: where there is no
// PostgreSQL, the test fails and says what to install. It is not for production, and trades durability for speed.
//
// Safe for concurrent use by parallel tests.
package pgtest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
)

var server = sync.OnceValues(func() (string, error) {
	if given := os.Getenv("FRESHET_TEST_POSTGRES"); given != "" {
		return given, nil
	}
	return start()
})

// URL returns the address of an empty database, which is dropped when the test ends.
func URL(t testing.TB) string {
	t.Helper()
	base, err := server()
	if err != nil {
		t.Fatalf("no PostgreSQL to test with: %v", err)
	}
	where, err := url.Parse(base)
	if err != nil {
		t.Fatal("FRESHET_TEST_POSTGRES is not a URL like postgres://user:password@host:5432/postgres")
	}
	name := "freshet_test_" + strings.ToLower(rand.Text())
	run(t, base, "CREATE DATABASE "+name)
	t.Cleanup(func() { run(t, base, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)") })
	where.Path = "/" + name
	return where.String()
}

func run(t testing.TB, base, statement string) {
	t.Helper()
	db, err := sql.Open("pgx", base)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(context.Background(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}
