package grid

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/freshet-io/freshet"
)

const (
	// onceFor is how long a document remembers the names of publications. They may come again within a day; clocks differ.
	onceFor = 25 * time.Hour

	// maxOnces bounds how many. Nearly all are dropped by the next publication, because their outcome is noted elsewhere. What stays
	// are those whose node died first.
	maxOnces = 64
)

// once is a named publication that a document remembers: it led to the document, or to one before it.
type once struct {
	name string // its digest
	at   time.Time
	pos  freshet.Position
}

// onces are what a document remembers, oldest first. They are part of it, so that a publication and its name are stored by one write.
type onces []once

// find returns where the publication of a name went.
func (o onces) find(name string) (freshet.Position, bool) {
	if name == "" || len(o) == 0 {
		return freshet.Position{}, false
	}
	i := slices.IndexFunc(o, func(one once) bool { return one.name == digest(name) })
	if i < 0 {
		return freshet.Position{}, false
	}
	return o[i].pos, true
}

// with returns what a document remembers that comes after the owner of o. It leaves o as it is.
func (o onces) with(doc *Document, pos freshet.Position) onces {
	if len(o) == 0 && doc.Once == "" {
		return nil
	}
	noted := make(map[string]bool, len(doc.Noted))
	for _, name := range doc.Noted {
		noted[digest(name)] = true
	}
	next := slices.DeleteFunc(slices.Clone(o), func(one once) bool { return noted[one.name] || time.Since(one.at) > onceFor })
	if doc.Once != "" {
		next = append(next, once{digest(doc.Once), time.Now(), pos})
	}
	return next[max(0, len(next)-maxOnces):]
}

// String is what stands in the header of a message.
func (o onces) String() string {
	var out strings.Builder
	for i, one := range o {
		if i > 0 {
			out.WriteByte(' ')
		}
		out.WriteString(one.name + "@" + strconv.FormatInt(one.at.Unix(), 10) + "=" + one.pos.String())
	}
	return out.String()
}

// parseOnces leaves out what it does not understand.
func parseOnces(text string) (o onces) {
	for _, field := range strings.Fields(text) {
		name, rest, _ := strings.Cut(field, "@")
		at, where, _ := strings.Cut(rest, "=")
		seconds, err := strconv.ParseInt(at, 10, 64)
		if pos, ok := freshet.ParsePosition(where); ok && err == nil {
			o = append(o, once{name, time.Unix(seconds, 0), pos})
		}
	}
	return o
}
