package catalog

import (
	"context"
	"sync"
	"time"

	"github.com/freshet-io/freshet"
)

// The hot questions, whose key is this and what topic is that, are answered from memory. An entry is fresh until
// a notice drops it or freshFor passes, whichever comes first: notices can get lost, so nothing is believed for
// long. While the store is away, or hangs, what was known goes on being true for staleFor, and nobody waits for the
// store: streams and publishing outlive a restart of the database. So a revoked key whose notice got lost is good for
// staleFor at most, and for freshFor while the store answers. What a notice dropped is never answered from memory.
const (
	freshFor    = 5 * time.Second
	refreshAt   = 3 * time.Second // what is in use is loaded again before it is stale, so that nobody waits for the store
	staleFor    = 5 * time.Minute
	loadTimeout = 10 * time.Second // a store that takes longer is away
	patience    = time.Second      // with a load, from its beginning, for whoever has an older answer
	maxEntries  = 200_000
)

type cache[K comparable, V any] struct {
	now func() time.Time

	background sync.WaitGroup  // of loads that nobody waits for
	ctx        context.Context // of these
	cancel     context.CancelFunc

	mu      sync.Mutex
	closed  bool              // Guarded by mu.
	entries map[K]entry[V]    // Guarded by mu.
	loading map[K]*loading[V] // Guarded by mu. One load at a time for each key; the others wait for it.
	slow    bool              // Guarded by mu. The store was away, or took longer than patience, and has not answered since.
}

type entry[V any] struct {
	value  V
	loaded time.Time
	asked  time.Time // when somebody last wanted it, give or take freshFor
}

// loading is a load under way. The rest is written before done is closed.
type loading[V any] struct {
	began time.Time
	done  chan struct{}
	value V
	err   error
}

func newCache[K comparable, V any](now func() time.Time) *cache[K, V] {
	c := &cache[K, V]{now: now, entries: map[K]entry[V]{}, loading: map[K]*loading[V]{}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// get returns what is known about key, loading it if need be. Only what exists is remembered. The context given to
// load is not the caller's: a client that hangs up must not fail the others who wait for the same answer.
func (c *cache[K, V]) get(ctx context.Context, key K, load func(context.Context) (V, error)) (V, error) {
	c.mu.Lock()
	now := c.now()
	e, known := c.entries[key]
	age := now.Sub(e.loaded)
	l := c.loading[key]
	switch {
	case known && age < staleFor:
		if now.Sub(e.asked) >= freshFor {
			e.asked = now
			c.entries[key] = e
		}
		if l == nil && age >= refreshAt && c.mayLoadBeside() {
			l = c.begin(key)
			c.loadBeside(key, l, load)
		}
		c.slow = c.slow || l != nil && now.Sub(l.began) >= patience
		wait := age >= freshFor && !c.slow && l != nil
		c.mu.Unlock()
		if wait {
			return c.newer(ctx, key, l, load)
		}
		return e.value, nil
	case l != nil:
		c.mu.Unlock()
		return l.wait(ctx)
	}
	l = c.begin(key)
	c.mu.Unlock()
	return c.load(context.WithoutCancel(ctx), key, l, load)
}

// newer waits a moment for a load that would do better than what is known.
func (c *cache[K, V]) newer(ctx context.Context, key K, l *loading[V], load func(context.Context) (V, error)) (V, error) {
	timer := time.NewTimer(patience - c.now().Sub(l.began))
	defer timer.Stop()
	select {
	case <-l.done:
		return l.value, l.err
	case <-ctx.Done():
		var none V
		return none, ctx.Err()
	case <-timer.C:
	}
	c.mu.Lock()
	c.slow = c.slow || c.loading[key] == l
	c.mu.Unlock()
	return c.get(ctx, key, load) // and not what was known before: a notice may have dropped it meanwhile
}

// mayLoadBeside reports whether a load may begin that nobody waits for. A store that hangs is tried by one at a time: loads
// for everything that is in use would pile up. The caller holds mu.
func (c *cache[K, V]) mayLoadBeside() bool {
	return !c.closed && !(c.slow && len(c.loading) > 0)
}

// loadBeside loads in the background. The caller holds mu.
func (c *cache[K, V]) loadBeside(key K, l *loading[V], load func(context.Context) (V, error)) {
	c.background.Go(func() {
		defer func() { _ = recover() }() // whoever has to wait for the next load meets it, and can tell
		_, _ = c.load(c.ctx, key, l, load)
	})
}

// peek returns what is known about key if get would return the same and had nothing else to do.
func (c *cache[K, V]) peek(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, known := c.entries[key]
	now := c.now()
	age := now.Sub(e.loaded)
	if !known || age >= freshFor || now.Sub(e.asked) >= freshFor || age >= refreshAt && c.loading[key] == nil {
		return value, false
	}
	return e.value, true
}

// begin notes that a load is under way. The caller holds mu.
func (c *cache[K, V]) begin(key K) *loading[V] {
	l := &loading[V]{began: c.now(), done: make(chan struct{})}
	c.loading[key] = l
	return l
}

// close ends loads in the background. There are none after it.
func (c *cache[K, V]) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	c.background.Wait()
}

func (c *cache[K, V]) load(ctx context.Context, key K, l *loading[V], load func(context.Context) (V, error)) (V, error) {
	defer close(l.done)
	defer c.finish(key, l)
	l.err = freshet.Errorf(freshet.Internal, "load did not return") // stays if load panics
	loadCtx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	l.value, l.err = load(loadCtx)
	if l.err != nil && loadCtx.Err() != nil {
		l.err = freshet.Wrap(freshet.Unavailable, l.err, "The database does not answer, please try again")
	}
	c.note(l.err)
	c.finish(key, l)
	return l.value, l.err
}

func (l *loading[V]) wait(ctx context.Context) (V, error) {
	select {
	case <-l.done:
		return l.value, l.err
	case <-ctx.Done():
		var none V
		return none, ctx.Err()
	}
}

// note remembers whether the store answers.
func (c *cache[K, V]) note(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slow = freshet.KindOf(err) == freshet.Unavailable
}

// finish ends a load: what it found is kept, and where the store is away what was known before takes its place.
// After a drop, which takes the load out of the map, neither happens: both may be from before the change that a
// notice told of. It does nothing the second time.
func (c *cache[K, V]) finish(key K, l *loading[V]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.loading[key] != l {
		return
	}
	delete(c.loading, key)
	before, known := c.entries[key]
	switch {
	case l.err == nil:
		if len(c.entries) >= maxEntries {
			c.shrink()
		}
		c.entries[key] = entry[V]{value: l.value, loaded: c.now(), asked: c.now()}
	case known && freshet.KindOf(l.err) == freshet.Unavailable && c.now().Sub(before.loaded) < staleFor:
		l.value, l.err = before.value, nil
	default:
		delete(c.entries, key)
	}
}

// used returns what somebody wanted lately.
func (c *cache[K, V]) used(lately time.Duration) map[K]V {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make(map[K]V)
	for k, e := range c.entries {
		if c.now().Sub(e.asked) < lately {
			all[k] = e.value
		}
	}
	return all
}

// confirm makes entries fresh that were compared with the store since the time, unless they changed here meanwhile.
func (c *cache[K, V]) confirm(same map[K]V, since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, v := range same {
		if e, known := c.entries[k]; known && any(e.value) == any(v) && e.loaded.Before(since) {
			e.loaded = since
			c.entries[k] = e
		}
	}
}

// shrink drops what is no longer fresh, and everything if that is not enough.
func (c *cache[K, V]) shrink() {
	for k, e := range c.entries {
		if c.now().Sub(e.loaded) >= freshFor {
			delete(c.entries, k)
		}
	}
	if len(c.entries) >= maxEntries {
		clear(c.entries)
	}
}

// drop forgets every entry that matches. Loads under way may have read before the change: whoever asks from now on
// does not wait for them.
func (c *cache[K, V]) drop(match func(V) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.loading)
	for k, e := range c.entries {
		if match(e.value) {
			delete(c.entries, k)
		}
	}
}
