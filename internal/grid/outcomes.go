package grid

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/freshet-io/freshet"
)

const (
	// outcomeTTL is how long a document remembers the names of publications. They may come again within a day; clocks differ.
	outcomeTTL = 25 * time.Hour

	// maxOutcomes bounds how many. Nearly all are dropped by the next publication, because their outcome is noted elsewhere. What
	// stays are those whose node died first.
	maxOutcomes = 64
)

// outcome is a named publication that a document remembers: it led to the document, or to one before it.
type outcome struct {
	name string // its digest
	at   time.Time
	pos  freshet.Position
}

// Outcomes are the named publications that a document remembers, oldest first: what makes Put idempotent. They are part of the
// document, so that one write stores a publication and its name. An engine keeps them with the document, as they are or as text.
type Outcomes []outcome

// Find returns where the publication of a name went.
func (o Outcomes) Find(name string) (freshet.Position, bool) {
	if name == "" || len(o) == 0 {
		return freshet.Position{}, false
	}
	i := slices.IndexFunc(o, func(one outcome) bool { return one.name == Digest(name) })
	if i < 0 {
		return freshet.Position{}, false
	}
	return o[i].pos, true
}

// With returns what a document at pos remembers that replaces the owner of o. It leaves o as it is.
func (o Outcomes) With(doc *Document, pos freshet.Position) Outcomes {
	if len(o) == 0 && doc.Once == "" {
		return nil
	}
	noted := make(map[string]bool, len(doc.Noted))
	for _, name := range doc.Noted {
		noted[Digest(name)] = true
	}
	next := slices.DeleteFunc(slices.Clone(o), func(one outcome) bool { return noted[one.name] || time.Since(one.at) > outcomeTTL })
	if doc.Once != "" {
		next = append(next, outcome{Digest(doc.Once), time.Now(), pos})
	}
	return next[max(0, len(next)-maxOutcomes):]
}

// String is the form that ParseOutcomes reads: one line without anything that a header could not hold.
func (o Outcomes) String() string {
	var out strings.Builder
	for i, one := range o {
		if i > 0 {
			out.WriteByte(' ')
		}
		out.WriteString(one.name + "@" + strconv.FormatInt(one.at.Unix(), 10) + "=" + one.pos.String())
	}
	return out.String()
}

// ParseOutcomes leaves out what it does not understand.
func ParseOutcomes(text string) (o Outcomes) {
	for _, field := range strings.Fields(text) {
		name, rest, _ := strings.Cut(field, "@")
		at, where, _ := strings.Cut(rest, "=")
		seconds, err := strconv.ParseInt(at, 10, 64)
		if pos, ok := freshet.ParsePosition(where); ok && err == nil {
			o = append(o, outcome{name, time.Unix(seconds, 0), pos})
		}
	}
	return o
}

// Digest returns a short name for any text, of hexadecimal digits.
func Digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}
