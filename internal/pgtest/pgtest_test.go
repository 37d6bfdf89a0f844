package pgtest

import (
	"database/sql"
	"testing"
)

func TestEveryCallGivesAnEmptyDatabaseOfItsOwn(t *testing.T) {
	for range 2 {
		db, err := sql.Open("pgx", URL(t))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.Exec("CREATE TABLE mine (id TEXT)"); err != nil {
			t.Error(err)
		}
	}
}
