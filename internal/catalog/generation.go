package catalog

import "github.com/freshet-io/freshet/internal/grid"

// generation is a part of a cache that is forgotten at once. It belongs to whoever holds the lock of the cache.
type generation[K comparable, V any] struct {
	about   func(V) []grid.Notice // nil: values are about nothing but their key
	entries map[K]*entry[V]
	index   map[grid.Notice]map[K]struct{} // by what entries are about
}

func newGeneration[K comparable, V any](about func(V) []grid.Notice) *generation[K, V] {
	return &generation[K, V]{about: about, entries: map[K]*entry[V]{}, index: map[grid.Notice]map[K]struct{}{}}
}

// put adds an entry whose key is new.
func (g *generation[K, V]) put(key K, e *entry[V]) {
	g.entries[key] = e
	if g.about == nil {
		return
	}
	for _, n := range g.about(e.value) {
		if g.index[n] == nil {
			g.index[n] = map[K]struct{}{}
		}
		g.index[n][key] = struct{}{}
	}
}

// remove returns what it removed, or nil.
func (g *generation[K, V]) remove(key K) *entry[V] {
	e := g.entries[key]
	if e == nil {
		return nil
	}
	delete(g.entries, key)
	if g.about == nil {
		return e
	}
	for _, n := range g.about(e.value) {
		delete(g.index[n], key)
		if len(g.index[n]) == 0 {
			delete(g.index, n)
		}
	}
	return e
}

// drop removes an entry that was read before the revision.
func (g *generation[K, V]) drop(key K, revision int64) known {
	e := g.entries[key]
	if e == nil {
		return known{}
	}
	if e.asOf >= revision {
		return known{any: true}
	}
	g.remove(key)
	return known{any: true, stale: true}
}
