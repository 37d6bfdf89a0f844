package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// SubjectKind is the kind of thing that a change is about.
type SubjectKind string

// The kinds.
const (
	SubjectUser  SubjectKind = "user"
	SubjectApp   SubjectKind = "app"
	SubjectTopic SubjectKind = "topic"

	// everything is what the database itself writes down for those who changed something and did not say what (migration 8).
	everything SubjectKind = "everything"
)

// Subject is what a change is about. A change of a user may have taken its apps and their topics along, a change of an app
// its topics.
type Subject struct {
	Kind SubjectKind
	ID   string
}

// Change says that something was changed or deleted, and in which revision of the catalog.
type Change struct {
	Subject
	Revision int64
}

// keptChanges is how many changes stay in the log. Who has missed more must take everything as changed.
const keptChanges = 10_000

// ChangeCursor is how far somebody has read the log of changes. The zero cursor has read nothing.
type ChangeCursor struct {
	known    bool
	revision int64
	mark     int64 // of that revision; 0 for revision 0
	strangers
}

// Changes is what happened between two cursors.
type Changes struct {
	List []Change // oldest first

	// All says that the list is not all: too much happened, or the database is not the one it was, or somebody changed it who does not
	// write down what. Everything may have changed.
	All bool

	Next ChangeCursor
}

// ChangesSince returns what was changed after the cursor. What was committed before the call is among it.
func (s *Store) ChangesSince(ctx context.Context, at ChangeCursor) (Changes, error) {
	strangers, err := s.lookForStrangers(ctx, at.strangers)
	if err != nil {
		return Changes{}, err
	}
	if !at.known || strangers != at.strangers {
		return s.newestChange(ctx, strangers)
	}
	var newest int64
	var read []loggedChange
	if at.revision == 0 {
		read = append(read, loggedChange{}) // the revision before the first
	}
	err = s.reader(ctx).rows(`SELECT r.revision, c.revision, c.mark, c.kind, c.subject
		FROM catalog_revision r LEFT JOIN catalog_changes c ON c.revision >= $1 ORDER BY c.revision`,
		[]any{at.revision}, func(scan scanner) error {
			var c loggedChange
			var kind string
			if err := scan(&newest, &c.Revision, &c.mark, &kind, &c.ID); err != nil || c.Revision == 0 {
				return err
			}
			c.Kind = SubjectKind(kind)
			read = append(read, c)
			return nil
		})
	if err != nil {
		return Changes{}, err
	}
	if !at.leadsTo(read, newest) {
		return s.newestChange(ctx, strangers)
	}
	found := Changes{Next: at}
	for _, c := range read[1:] {
		found.All = found.All || c.Kind == everything
		found.List = append(found.List, c.Change)
		found.Next.revision, found.Next.mark = c.Revision, c.mark
	}
	if found.All {
		found.List = nil
	}
	return found, nil
}

// loggedChange is a row of the log.
type loggedChange struct {
	Change
	mark int64
}

// leadsTo reports whether the rows begin with the one that the cursor has read last, and end with the newest.
func (at *ChangeCursor) leadsTo(read []loggedChange, newest int64) bool {
	if len(read) == 0 || read[0].Revision != at.revision || read[0].mark != at.mark {
		return false
	}
	return newest-at.revision == int64(len(read)-1)
}

// newestChange is the answer to whoever cannot be told what changed.
func (s *Store) newestChange(ctx context.Context, seen strangers) (Changes, error) {
	next := ChangeCursor{known: true, strangers: seen}
	err := s.reader(ctx).row(`SELECT r.revision, c.mark FROM catalog_revision r LEFT JOIN catalog_changes c ON c.revision = r.revision`,
		nil, &next.revision, &next.mark)
	return Changes{All: true, Next: next}, err
}

// changed has the transaction write down what it changes.
func (tx *Tx) changed(kind SubjectKind, id string) {
	if tx.changes == nil {
		tx.changes = make(map[Subject]struct{})
	}
	tx.changes[Subject{kind, id}] = struct{}{}
}

// logChanges comes last in a transaction: from here on those that change something else wait for it.
func (tx *Tx) logChanges() error {
	if len(tx.changes) == 0 {
		return nil
	}
	if err := tx.write("revision", `UPDATE catalog_revision SET revision = revision + $1`, int64(len(tx.changes))); err != nil {
		return err
	}
	var newest int64
	if err := tx.row(`SELECT revision FROM catalog_revision`, nil, &newest); err != nil {
		return err
	}
	revision := newest - int64(len(tx.changes))
	for c := range tx.changes {
		revision++
		if revision <= newest-keptChanges {
			continue
		}
		_, err := tx.writeAny(`INSERT INTO catalog_changes (revision, mark, kind, subject) VALUES ($1, $2, $3, $4)`,
			revision, rand.Int64(), string(c.Kind), c.ID)
		if err != nil {
			return err
		}
	}
	_, err := tx.writeAny(`DELETE FROM catalog_changes WHERE revision <= $1`, newest-keptChanges)
	return err
}

// strangers tells whether another program changed the embedded database, such as somebody's sqlite3 shell, which does not write
// down what. SQLite has a number for each connection that others change, and we have one connection that writes.
type strangers struct {
	conn    any // which connection the number is of; held, so that no other one can be where it was
	version int64
}

// strangersPatience is how long to wait for the writing connection. While it is busy nobody else can write either.
const strangersPatience = 50 * time.Millisecond

func (s *Store) lookForStrangers(ctx context.Context, before strangers) (now strangers, err error) {
	if !s.embedded() {
		return strangers{}, nil
	}
	waiting, cancel := context.WithTimeout(ctx, strangersPatience)
	defer cancel()
	own, err := s.write.Conn(waiting)
	if err != nil {
		if waiting.Err() != nil && ctx.Err() == nil {
			return before, nil
		}
		return strangers{}, s.engine.classify(ctx, err)
	}
	defer func() { _ = own.Close() }() // gives it back
	db := conn{ctx: ctx, engine: &s.engine, db: own}
	if err := db.row("PRAGMA data_version", nil, &now.version); err != nil {
		return strangers{}, fmt.Errorf("look for changes by others: %w", err)
	}
	err = own.Raw(func(driverConn any) error { now.conn = driverConn; return nil })
	return now, err
}
