package store

import (
	"strings"
	"sync"
)

// rewritten remembers what the texts of the package are for SQLite, of which there are so many. Some are long, and run often.
var rewritten sync.Map

// forSQLite is questionMarks, done once for each text.
func forSQLite(query string) string {
	if known, ok := rewritten.Load(query); ok {
		return known.(string) //nolint:errcheck // nothing else is stored
	}
	made := questionMarks(query)
	rewritten.Store(query, made)
	return made
}

// questionMarks turns the placeholders $1, $2, … into SQLite's ?1, ?2, …. SQLite reads $1 as a *name* and numbers names
// by first appearance, so that "$2, $1" would silently bind the wrong way round. Text in quotes and comments stays.
func questionMarks(query string) string {
	if strings.IndexByte(query, '$') < 0 {
		return query
	}
	out := []byte(query)
	for i := 0; i < len(out); i++ {
		switch c := out[i]; {
		case c == '\'' || c == '"':
			// A doubled quote ends one quoted text and begins the next, which comes to the same.
			i = skipPast(query, i+1, string(c))
		case strings.HasPrefix(query[i:], "--"):
			i = skipPast(query, i, "\n")
		case strings.HasPrefix(query[i:], "/*"):
			i = skipPast(query, i+2, "*/")
		case c == '$' && i+1 < len(out) && isDigit(out[i+1]) && (i == 0 || !isWord(out[i-1])):
			out[i] = '?'
		}
	}
	return string(out)
}

// skipPast returns the index of the last byte of the first end at or after from, or of the last byte of all.
func skipPast(query string, from int, end string) int {
	if i := strings.Index(query[from:], end); i >= 0 {
		return from + i + len(end) - 1
	}
	return len(query) - 1
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isWord(c byte) bool {
	return isDigit(c) || c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80
}
