package freshet

import "github.com/google/uuid"

// NewID returns an identifier for a resource: UUIDv7 text, so that identifiers sort by creation time.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }

// IsID reports whether s has the form of an identifier. What fails here exists nowhere, so callers can
// answer "not found" without asking the store.
func IsID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return false
			}
		case '0' <= c && c <= '9', 'a' <= c && c <= 'f':
		default:
			return false
		}
	}
	return true
}
