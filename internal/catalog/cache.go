package catalog

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
)

// The hot questions, whose key is this and what topic is that, are answered from memory. An entry stays until a notice drops it, or
// the log of changes, which is read every second (follow.go): what the log does not name has not changed. Once the log could not be
// read for freshFor, entries are loaded one by one. While the store is away, or hangs, what was known goes on being true for staleFor, and
// nobody waits for the store: streams and publishing outlive a restart of the database. What a notice dropped is never answered from
// memory.
const (
	freshFor    = 5 * time.Second
	refreshAt   = 3 * time.Second // what is in use is loaded again before it is stale, so that nobody waits for the store
	staleFor    = 5 * time.Minute
	loadTimeout = 10 * time.Second // a store that takes longer is away
	patience    = time.Second      // with a load, from its beginning, for whoever has an older answer

	// reloadAfter is when an entry is loaded again whatever the log says, in case somebody changed the database with its triggers off. It
	// is half to twice that, so that entries that were loaded together are not loaded together again.
	reloadAfter = time.Hour

	// maxEntries is how many entries a cache keeps in each of its two generations.
	maxEntries = 200_000
)

// cache remembers values. It has two generations: an entry that is used moves to the young one, and when that is full it takes the
// place of the old one. So what was not used for longest is forgotten, and no call ever has to look at all entries.
type cache[K comparable, V any] struct {
	cacheOptions[V]

	background sync.WaitGroup  // of loads that nobody waits for
	ctx        context.Context // of these
	cancel     context.CancelFunc

	// Guarded by mu.
	mu         sync.Mutex
	closed     bool
	young, old *generation[K, V]
	loading    map[K]*loading[V] // one load at a time for each key; the others wait for it
	slow       bool              // the store was away, or took longer than patience, and has not answered since
}

type cacheOptions[V any] struct {
	now func() time.Time

	// confirmed is up to when entries were compared with the log of changes; nil or empty: they were not.
	confirmed *atomic.Pointer[time.Time]

	about func(V) []grid.Notice // what a value depends on, beside what its key names; nil: nothing
	asOf  func(V) int64         // the revision that a value was read at; nil: it is not known
	most  int                   // entries of a generation; 0 is maxEntries
}

type entry[V any] struct {
	value  V
	loaded time.Time
	asOf   int64     // everybody was told of changes up to this revision, or will be
	reload time.Time // whatever the log says
}

// loading is a load under way. The rest is written before done is closed.
type loading[V any] struct {
	began time.Time
	done  chan struct{}
	value V
	err   error
}

func newCache[K comparable, V any](o cacheOptions[V]) *cache[K, V] {
	if o.most == 0 {
		o.most = maxEntries
	}
	c := &cache[K, V]{cacheOptions: o, loading: map[K]*loading[V]{}}
	c.young, c.old = newGeneration[K](o.about), newGeneration[K](o.about)
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// get returns what is known about key, loading it if need be. Only what exists is remembered. The context given to
// load is not the caller's: a client that hangs up must not fail the others who wait for the same answer.
func (c *cache[K, V]) get(ctx context.Context, key K, load func(context.Context) (V, error)) (V, error) {
	c.mu.Lock()
	now := c.now()
	e := c.find(key)
	l := c.loading[key]
	switch {
	case e != nil && c.age(e, now) < staleFor:
		age := c.age(e, now)
		if l == nil && c.isDue(e, now) && c.mayLoadBeside() {
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

// age is how long ago the entry was known to be what the store has. The caller holds mu.
func (c *cache[K, V]) age(e *entry[V], now time.Time) time.Duration {
	age := now.Sub(e.loaded)
	if c.confirmed != nil {
		if at := c.confirmed.Load(); at != nil {
			age = min(age, now.Sub(*at))
		}
	}
	return age
}

// isDue reports whether the entry should be loaded again by whoever uses it. The caller holds mu.
func (c *cache[K, V]) isDue(e *entry[V], now time.Time) bool {
	return c.age(e, now) >= refreshAt || !now.Before(e.reload)
}

// find returns the entry, which is young from now on, or nil. The caller holds mu.
func (c *cache[K, V]) find(key K) *entry[V] {
	if e := c.young.entries[key]; e != nil {
		return e
	}
	e := c.old.remove(key)
	if e != nil {
		c.putYoung(key, e)
	}
	return e
}

// putYoung adds an entry to the young generation. The caller holds mu.
func (c *cache[K, V]) putYoung(key K, e *entry[V]) {
	if len(c.young.entries) >= c.most {
		c.old, c.young = c.young, newGeneration[K](c.about)
	}
	c.young.put(key, e)
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
	e := c.find(key)
	if e == nil {
		return value, false
	}
	now := c.now()
	if c.age(e, now) >= freshFor || c.isDue(e, now) && c.loading[key] == nil {
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
	c.suspect(freshet.KindOf(l.err) == freshet.Unavailable)
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

// suspect remembers whether the store is away.
func (c *cache[K, V]) suspect(away bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slow = away
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
	before := c.find(key)
	switch {
	case l.err == nil:
		c.put(key, l.value, before)
	case before != nil && freshet.KindOf(l.err) == freshet.Unavailable && c.age(before, c.now()) < staleFor:
		l.value, l.err = before.value, nil
	default:
		c.young.remove(key)
	}
}

// put remembers a value, instead of the one before it, if there was one: nobody has been told of what changed between the two, so that
// is left to the log. The caller holds mu.
func (c *cache[K, V]) put(key K, value V, before *entry[V]) {
	now := c.now()
	e := &entry[V]{value: value, loaded: now, reload: now.Add(reloadAfter/2 + rand.N(3*reloadAfter/2))}
	if c.asOf != nil {
		e.asOf = c.asOf(value)
	}
	if before != nil {
		e.asOf = before.asOf
		c.young.remove(key)
	}
	c.putYoung(key, e)
}
