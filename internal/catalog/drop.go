package catalog

import (
	"math"

	"github.com/freshet-io/freshet/internal/grid"
)

// everyRevision is after all that an entry can have been read at.
const everyRevision = math.MaxInt64

// known is what a cache had about something that changed.
type known struct {
	any   bool // it had something
	stale bool // and not all of it was read since
}

func (k known) or(other known) known { return known{k.any || other.any, k.stale || other.stale} }

// drop forgets an entry that was read before the revision. A load under way may have read before it as well: whoever asks from
// now on does not wait for it.
func (c *cache[K, V]) drop(key K, revision int64) known {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.loading, key)
	return c.young.drop(key, revision).or(c.old.drop(key, revision))
}

// dropAbout forgets every entry about the subject of a notice that was read before the revision. It takes as long as there are
// such entries.
func (c *cache[K, V]) dropAbout(n grid.Notice, revision int64) (had known) {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.loading) // nobody knows yet what they are about
	for _, g := range []*generation[K, V]{c.young, c.old} {
		for key := range g.index[n] {
			had = had.or(g.drop(key, revision))
		}
	}
	return had
}

// dropAll forgets everything.
func (c *cache[K, V]) dropAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.loading)
	c.young, c.old = newGeneration[K](c.about), newGeneration[K](c.about)
}
