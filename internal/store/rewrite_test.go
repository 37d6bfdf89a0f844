package store

import (
	"strings"
	"testing"
)

func TestPlaceholdersAreRewrittenOutsideOfTextAndComments(t *testing.T) {
	for query, want := range map[string]string{
		"":                            "",
		"SELECT 1":                    "SELECT 1",
		"a = $1 AND b = $22":          "a = ?1 AND b = ?22",
		"$2,$1,$2":                    "?2,?1,?2",
		"'$1' || $1":                  "'$1' || ?1",
		"'it''s $1' = $1":             "'it''s $1' = ?1",
		"'' = $1":                     "'' = ?1",
		`"$1" = $1`:                   `"$1" = ?1`,
		`'"' = $1 OR "'" = $2`:        `'"' = ?1 OR "'" = ?2`,
		`LIKE $3 ESCAPE '\'`:          `LIKE ?3 ESCAPE '\'`,
		`x ESCAPE '\' AND y = $1`:     `x ESCAPE '\' AND y = ?1`,
		"-- costs $1\n$1":             "-- costs $1\n?1",
		"$1 -- it's $2":               "?1 -- it's $2",
		"/* $1 ' */ $1 /* $2":         "/* $1 ' */ ?1 /* $2",
		"a - -$1 / $2 * $3":           "a - -?1 / ?2 * ?3",
		"'never closed $1":            "'never closed $1",
		"$ $x a$1 é$1 $$1":            "$ $x a$1 é$1 $?1",
		"'☃ $1' = $1":                 "'☃ $1' = ?1",
		"CAST($1 AS BIGINT)+($2)":     "CAST(?1 AS BIGINT)+(?2)",
		"LIMIT $1 OFFSET $2;":         "LIMIT ?1 OFFSET ?2;",
		strings.Repeat("$1 '$1' ", 3): strings.Repeat("?1 '$1' ", 3),
	} {
		if got := questionMarks(query); got != want {
			t.Errorf("%q became %q, want %q", query, got, want)
		}
	}
}

// SQLite numbers $2 and $1 by appearance; this is what the rewriting is there for.
func TestArgumentsAreBoundByNumberOnEveryEngine(t *testing.T) {
	forEachStore(t, func(t *testing.T, s *Store) {
		var a, b, c string
		err := s.reader(t.Context()).row(`SELECT CAST($2 AS TEXT), CAST($1 AS TEXT), CAST($2 AS TEXT)`,
			[]any{"one", "two"}, &a, &b, &c)
		if err != nil || a+b+c != "twoonetwo" {
			t.Errorf("got %q %q %q, %v", a, b, c, err)
		}
	})
}
