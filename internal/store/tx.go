package store

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/freshet-io/freshet"
)

// Tx is a transaction in the making. Its Lock methods keep others from changing a row until the transaction ends, so
// that read-modify-write is atomic on every engine. Locks go top down, user, app, topic: whoever takes them in
// another order risks a deadlock, which Update resolves by trying again.
//
// Once a write has failed the transaction is over, whatever the function returns. PostgreSQL would refuse to go on and
// SQLite would not; this way both behave alike.
type Tx struct {
	conn
	failed error
	wrote  bool // something that is on disk once it commits

	changes map[Subject]struct{} // what others may remember of it
}

// How often and how long Update tries an act that loses against others, and how long it waits in between at most.
const (
	maxAttempts = 10
	maxTrying   = 10 * time.Second
	maxPause    = 100 * time.Millisecond
)

// Update runs act in one transaction and commits it unless act fails. It may run act several times, when the database
// asks for it, so act must not leave anything behind but through its Tx. It must not call Update: on SQLite it would wait
// for itself.
//
// After Unavailable the outcome may be unknown, if the connection broke during the commit: all of act happened, or
// nothing.
func (s *Store) Update(ctx context.Context, act func(tx *Tx) error) error {
	start, pause := time.Now(), time.Millisecond
	for attempt := 1; ; attempt++ {
		err := s.try(ctx, act)
		if _, lost := errors.AsType[contention](err); !lost || attempt == maxAttempts || time.Since(start) > maxTrying {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(jitter(pause)):
		}
		pause = min(2*pause, maxPause)
	}
}

func (s *Store) try(ctx context.Context, act func(tx *Tx) error) error {
	sqlTx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return s.engine.classify(ctx, err)
	}
	defer func() { _ = sqlTx.Rollback() }() // does nothing after Commit; also for an act that panics
	tx := &Tx{conn: conn{ctx: ctx, engine: &s.engine, db: sqlTx}}
	if err := act(tx); err != nil {
		return err
	}
	if tx.failed != nil {
		return tx.failed
	}
	if err := tx.logChanges(); err != nil {
		return err
	}
	if err := sqlTx.Commit(); err != nil {
		return s.engine.classify(ctx, err)
	}
	if tx.wrote {
		s.engine.health.wrote()
		s.checkpoints.noteWrite()
	}
	return nil
}

// write executes a statement that must touch a row; what names the thing that is missing otherwise.
func (tx *Tx) write(what, query string, args ...any) error {
	n, err := tx.writeAny(query, args...)
	if err == nil && n == 0 {
		tx.failed = notFound(what)
		return tx.failed
	}
	return err
}

// writeAny executes a statement that may touch any number of rows.
func (tx *Tx) writeAny(query string, args ...any) (int64, error) {
	if tx.failed != nil {
		return 0, tx.failed
	}
	n, err := tx.exec(query, args...)
	tx.failed = err
	tx.wrote = tx.wrote || (err == nil && n > 0)
	return n, err
}

// lock touches a row without changing it, which is how one text locks it on both engines. Not to find it is no
// failed write: the transaction may go on.
func (tx *Tx) lock(what, query, id string) error {
	if tx.failed == nil && !isText(id) {
		return notFound(what)
	}
	n, err := tx.writeAny(query, id)
	if err == nil && n == 0 {
		return notFound(what)
	}
	return err
}

// readLocked reads what was just locked. It takes a statement of its own, so that PostgreSQL sees what others
// committed while we waited for the lock.
func readLocked[T any](tx *Tx, read func() (*T, error)) (*T, error) {
	found, err := read()
	if err != nil && freshet.KindOf(err) != freshet.NotFound {
		tx.failed = err
	}
	return found, err
}

// jitter keeps transactions that lost together from meeting again.
func jitter(pause time.Duration) time.Duration { return rand.N(pause) + 1 }
