package usage

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/freshet-io/freshet/internal/grid"
)

// Documents knows how long documents are. The grid is one.
type Documents interface {
	Measure(ctx context.Context, topics []string, known *grid.Lengths) (int64, error)
}

// Topics knows which topics an app has, or all apps of a user if no app is named. The store is one.
type Topics interface {
	TopicIDs(ctx context.Context, userID, appID string) ([]string, error)
}

// StorageOptions are the settings of a Storage.
type StorageOptions struct {
	Documents Documents
	Topics    Topics
	Alone     bool // no other process stores documents
	Log       *slog.Logger
}

// Storage holds the newest documents of accounts and apps against their quotas of bytes. It is safe for concurrent use.
//
// It keeps no books that could differ from what is stored: the sum of an owner is counted from the documents themselves, when the
// owner is first met and before anything of it is refused. In between it adds what this process stores, and takes off what it
// makes shorter. So whatever else makes documents disappear (their time, the deletion of a topic, items that expire, a restart)
// needs nobody to tell. Only owners with a quota are counted.
//
// While one is counted, publications of its topics wait: on a single node a sum is exact. In a cluster others store meanwhile: a
// node counts again before it uses more than an eighth of what was left, or for every publication that is longer than that. So each
// of the others can exceed a quota by an eighth of what is left, or by one publication.
type Storage struct {
	// Static after NewStorage.
	opts StorageOptions

	// Guarded by mu.
	mu      sync.Mutex
	shelves map[string]*shelf // by the owner's identifier
	tidyAt  int               // number of shelves at which the next tidying is worth its cost
}

// NewStorage returns a Storage that has counted nothing yet.
func NewStorage(opts StorageOptions) *Storage {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	return &Storage{opts: opts, shelves: make(map[string]*shelf)}
}

// Quotas are the bytes that documents of an app and of all apps of its account may have together. 0 is any number.
type Quotas struct {
	AppID, UserID       string
	AppBytes, UserBytes int64
}

// Limits reports whether there is a limit at all.
func (q *Quotas) Limits() bool { return q.AppBytes > 0 || q.UserBytes > 0 }

// Room is what topics of an app may take of its quotas.
type Room struct {
	storage *Storage
	bounds  []bound
}

// bound is one limit.
type bound struct {
	of    Owner
	bytes int64
}

// Room returns who is asked for room within the quotas.
func (s *Storage) Room(q Quotas) *Room {
	r := &Room{storage: s}
	// The account comes first wherever both are taken, so that nobody waits for whoever waits for it.
	if q.UserBytes > 0 {
		r.bounds = append(r.bounds, bound{User(q.UserID), q.UserBytes})
	}
	if q.AppBytes > 0 {
		r.bounds = append(r.bounds, bound{App(q.AppID, q.UserID), q.AppBytes})
	}
	return r
}

// Reserve makes room for a document of length after in place of one of length before, unless that is more than a quota allows and
// does not make the sum smaller. settle must be called with what became of it: nil once it is stored, otherwise why it is not,
// where freshet.Unavailable means that it may be.
func (r *Room) Reserve(ctx context.Context, before, after int) (settle func(error), err error) {
	grow := int64(after) - int64(before)
	var taken []*shelf
	settleAll := func(err error) {
		for _, t := range taken {
			t.settle(grow, err)
		}
	}
	err = errAborted // stays if a count panics
	defer func() {
		if err != nil {
			settleAll(errAborted) // nothing is stored, whatever kind of error it is
		}
	}()
	for _, b := range r.bounds {
		t := r.storage.shelf(b.of)
		if err := t.reserve(ctx, grow, b.bytes); err != nil {
			return nil, err
		}
		taken = append(taken, t)
	}
	return settleAll, nil
}

// Review has an owner counted anew that a notice is about: it may have been without a quota for a while, and nobody counted what
// was stored then.
func (s *Storage) Review(n grid.Notice) {
	for _, found := range s.shelvesAbout(n) {
		found.mu.Lock()
		found.stale = true
		found.mu.Unlock()
	}
}

func (s *Storage) shelvesAbout(n grid.Notice) []*shelf {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch n.Scope {
	case grid.ScopeCatalog:
		return slices.Collect(maps.Values(s.shelves))
	case grid.ScopeUser, grid.ScopeApp:
		if found := s.shelves[n.ID]; found != nil {
			return []*shelf{found}
		}
	}
	return nil
}

// How long an owner is remembered that nothing is published for, and from how many on that is looked at.
const (
	idleShelf  = 10 * time.Minute
	minShelves = 1024
)

func (s *Storage) shelf(of Owner) *shelf {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.shelves[of.ID()]
	if found == nil {
		found = &shelf{of: of, opts: &s.opts}
		found.changed.L = &found.mu
		s.tidy()
		s.shelves[of.ID()] = found
	}
	found.used = time.Now()
	return found
}

// tidy forgets owners that nothing was published for lately, once their number doubled. The caller holds mu.
func (s *Storage) tidy() {
	if len(s.shelves) < max(s.tidyAt, minShelves) {
		return
	}
	for id, t := range s.shelves {
		if time.Since(t.used) > idleShelf {
			delete(s.shelves, id)
		}
	}
	s.tidyAt = 2 * len(s.shelves)
}
