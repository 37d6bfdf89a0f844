package store

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/freshet-io/freshet"
)

// health knows how the database is. It is safe for concurrent use.
type health struct {
	// Static after Open.
	disk *disk // nil where the database is elsewhere
	log  *slog.Logger

	failures [numFaults]atomic.Uint64

	// Guarded by mu.
	mu      sync.Mutex
	trouble faultClass // why nothing can be written; unknown while everything can
	logged  time.Time  // when that was said last
}

// saidAgainAfter keeps a disk that is full for large writes and not for small ones from filling the log as well.
const saidAgainAfter = time.Minute

// sentences are for everybody; where the disk is belongs to the operator.
var sentences = map[faultClass]string{
	full:     "The disk is full: nothing can be changed until there is room again",
	readOnly: "The disk is read-only: nothing can be changed now",
	broken:   "The disk fails: the database cannot be used now",
}

// details are for the operator.
func (h *health) detail(class faultClass) string {
	where := "the database"
	if h.disk != nil {
		where = h.disk.dir
	}
	switch class {
	case full:
		return "the disk of " + where + " is full"
	case readOnly:
		return "the disk of " + where + " is read-only"
	default:
		return "the disk of " + where + " fails"
	}
}

// note remembers that the disk failed, and logs it the first time: requests that fail because of it need not.
func (h *health) note(class faultClass, cause error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	again := h.trouble == class || time.Since(h.logged) < saidAgainAfter
	h.trouble = class
	if !again {
		h.logged = time.Now()
		h.log.Error("the database cannot be written: "+h.detail(class), "err", cause)
	}
}

// wrote remembers that a write is on disk.
func (h *health) wrote() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.trouble != unknown {
		h.log.Info("the database can be written again")
		h.trouble = unknown
	}
}

func (h *health) troubled() faultClass {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.trouble
}

// unhealthy is why the database cannot be used, in words for the operator.
type unhealthy string

func (u unhealthy) Error() string { return string(u) }

// Health reports whether the database can be read and written. The note is what an operator should see to while it still can.
func (s *Store) Health(ctx context.Context) (note string, err error) {
	if err := s.Ping(ctx); err != nil {
		return "", err
	}
	h := s.engine.health
	space, known := s.Space()
	switch {
	case known && space.ReadOnly:
		return "", unhealthy(h.detail(readOnly))
	case known && space.full():
		return "", unhealthy(h.detail(full))
	}
	if h.troubled() != unknown {
		if err := s.tryWriting(ctx); err != nil {
			if class := h.troubled(); class != unknown {
				return "", unhealthy(h.detail(class))
			}
			return "", err
		}
	}
	if known && space.low() {
		note = fmt.Sprintf("the disk of %s is almost full: %d MB are left", h.disk.dir, space.Free>>20)
	}
	return note, nil
}

// Space is what is left on the disk of the embedded database; known is false for any other, and where the system does not say.
func (s *Store) Space() (space Space, known bool) {
	d := s.engine.health.disk
	if d == nil {
		return Space{}, false
	}
	space, err := d.space(d.dir)
	return space, err == nil
}

// tryWriting changes something that nobody reads, to find out whether that works again.
func (s *Store) tryWriting(ctx context.Context) error {
	return s.Update(ctx, func(tx *Tx) error {
		_, err := tx.writeAny(`INSERT INTO secrets (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
			"written-at", time.Now().UTC().Format(time.RFC3339Nano))
		return err
	})
}

// startFault is what to tell whoever starts a server on a disk that takes nothing; nil if it is something else.
func (h *health) startFault(err error, class faultClass) error {
	if h.disk == nil {
		return nil
	}
	switch class {
	case full:
		return freshet.Wrap(freshet.Unavailable, err, fmt.Sprintf("The disk of the data directory %s is full: make room there, then start again", h.disk.dir))
	case readOnly:
		return freshet.Wrap(freshet.Unavailable, err, fmt.Sprintf("The disk of the data directory %s is read-only: make it writable, or choose another directory", h.disk.dir))
	}
	return nil
}
