package usage

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/store"
)

// sums are what was counted and not yet written down. They lie in bins, so that publishers of different topics do not wait for
// each other.
type sums struct {
	seed maphash.Seed
	bins [32]bin
}

type bin struct {
	mu   sync.Mutex
	rows map[sumKey]*store.UsageRow // Guarded by mu.
}

type sumKey struct {
	topicID string
	hour    int64
}

func (s *sums) init() {
	s.seed = maphash.MakeSeed()
	for i := range s.bins {
		s.bins[i].rows = make(map[sumKey]*store.UsageRow)
	}
}

func (s *sums) add(at Place, hour time.Time, u freshet.Usage) {
	b := &s.bins[maphash.String(s.seed, at.TopicID)%uint64(len(s.bins))]
	key := sumKey{at.TopicID, hour.UnixMilli()}
	b.mu.Lock()
	defer b.mu.Unlock()
	row := b.rows[key]
	if row == nil {
		row = &store.UsageRow{TopicID: at.TopicID, AppID: at.AppID, UserID: at.UserID}
		row.Hour = hour
		b.rows[key] = row
	}
	row.Add(u)
}

// selection is a part of what was counted. The zero selection is everything.
type selection struct {
	step, steps int             // one of so many parts; steps is 0 for all
	users       map[string]bool // nil: of all accounts
	refresh     bool            // read what other nodes wrote of those accounts as well
}

func (w *selection) hasUser(id string) bool { return w.users == nil || w.users[id] }

// take returns what is selected, and begins anew with it.
func (s *sums) take(which selection) []store.UsageRow {
	var all []store.UsageRow
	for i := range s.bins {
		if which.steps > 0 && i%which.steps != which.step {
			continue
		}
		b := &s.bins[i]
		b.mu.Lock()
		for key, row := range b.rows {
			if which.hasUser(row.UserID) {
				all = append(all, *row)
				delete(b.rows, key)
			}
		}
		b.mu.Unlock()
	}
	return all
}

// len is how many rows there are.
func (s *sums) len() (n int) {
	for i := range s.bins {
		b := &s.bins[i]
		b.mu.Lock()
		n += len(b.rows)
		b.mu.Unlock()
	}
	return n
}

// each calls fn for every row. fn must not keep it.
func (s *sums) each(fn func(*store.UsageRow)) {
	for i := range s.bins {
		b := &s.bins[i]
		b.mu.Lock()
		for _, row := range b.rows {
			fn(row)
		}
		b.mu.Unlock()
	}
}
