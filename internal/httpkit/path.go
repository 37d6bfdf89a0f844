package httpkit

import (
	"strings"

	"github.com/freshet-io/freshet"
)

// longestWord is the longest segment of a path that can be no key: a key has more characters.
const longestWord = 15

// SafePath is a path for logs. Queries carry keys and are never logged; segments carry them where a client takes one thing for
// another, where it means the subscriber interface, and where the API behind the gateway likes them there. So whatever is
// neither a short word nor an identifier of ours is left out.
func SafePath(path string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		if !isWord(s) && !freshet.IsID(s) {
			segments[i] = "…"
		}
	}
	return strings.Join(segments, "/")
}

func isWord(s string) bool {
	if len(s) > longestWord {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return true
}
