package store

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// checkpointAfter is how long a change stays in the write-ahead log alone. SQLite itself would leave a young database there for
// hours: until the log has a thousand pages.
const checkpointAfter = 2 * time.Second

// checkpointTimeout is for a disk that hangs.
const checkpointTimeout = 10 * time.Second

// checkpointer moves changes from the write-ahead log into the database file soon after they were made, and empties the log: what
// is not there cannot get lost with it.
type checkpointer struct {
	// Static after start.
	store *Store
	after time.Duration
	wrote chan struct{} // holds one: there is something to move
	done  chan struct{}

	stop    sync.Once
	running sync.WaitGroup
}

func startCheckpointer(s *Store, after time.Duration) *checkpointer {
	c := &checkpointer{store: s, after: after, wrote: make(chan struct{}, 1), done: make(chan struct{})}
	c.running.Go(c.run)
	return c
}

// noteWrite never waits. Nil is the checkpointer of a database that has none.
func (c *checkpointer) noteWrite() {
	if c == nil {
		return
	}
	select {
	case c.wrote <- struct{}{}:
	default:
	}
}

func (c *checkpointer) close() {
	if c == nil {
		return
	}
	c.stop.Do(func() { close(c.done) })
	c.running.Wait()
}

func (c *checkpointer) run() {
	for {
		select {
		case <-c.done:
			return
		case <-c.wrote:
		}
		select {
		case <-c.done: // closing the database does it
			return
		case <-time.After(c.after):
		}
		ctx, cancel := context.WithTimeout(context.Background(), checkpointTimeout)
		all, err := c.store.checkpoint(ctx)
		cancel()
		if err == nil && !all {
			c.noteWrite()
		}
	}
}

// checkpoint empties the write-ahead log, unless somebody reads what is in it: then it moves what it can, and waits for nobody,
// since changes wait for it.
func (s *Store) checkpoint(ctx context.Context) (all bool, err error) {
	own, err := s.write.Conn(ctx)
	if err != nil {
		return false, s.engine.classify(ctx, err)
	}
	defer func() { _ = own.Close() }() // gives it back
	db := conn{ctx: ctx, engine: &s.engine, db: own}
	if err := db.rows("PRAGMA busy_timeout = 0", nil, ignore); err != nil {
		return false, err
	}
	var busy, pages, moved int64
	err = db.row("PRAGMA wal_checkpoint(TRUNCATE)", nil, &busy, &pages, &moved)
	if _, failed := db.exec(busyPragma); err == nil {
		err = failed
	}
	if err != nil {
		return false, fmt.Errorf("checkpoint: %w", err)
	}
	return busy == 0, nil
}

func ignore(scanner) error { return nil }
