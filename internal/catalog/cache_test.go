package catalog

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
)

// newTestCache makes a cache whose values are about an app of that name.
func newTestCache[K comparable]() *cache[K, string] {
	return newCache[K](cacheOptions[string]{now: time.Now, about: func(v string) []grid.Notice { return []grid.Notice{ofApp(v)} }})
}

func ofApp(id string) grid.Notice { return grid.Notice{Scope: grid.ScopeApp, ID: id} }

// pass lets time go by. In a bubble of synctest that takes none.
func pass(d time.Duration) { <-time.After(d) }

func always(value string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return value, nil }
}

func failing(kind freshet.Kind) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return "", freshet.Errorf(kind, "no") }
}

func wantValue(t *testing.T, c *cache[string, string], load func(context.Context) (string, error), want string) {
	t.Helper()
	if got, err := c.get(t.Context(), "k", load); err != nil || got != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

func TestAnEntryIsBelievedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCache[string]()
		wantValue(t, c, always("a"), "a")
		pass(freshFor - 1)
		wantValue(t, c, always("b"), "a")
		pass(1)
		wantValue(t, c, always("b"), "b")
	})
}

func TestWhatIsInUseIsLoadedAgainBeforeItIsStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCache[string]()
		defer c.close()
		slow := func(value string) func(context.Context) (string, error) {
			return func(context.Context) (string, error) { pass(time.Second); return value, nil }
		}
		wantValue(t, c, always("a"), "a")
		pass(refreshAt)
		began := time.Now()
		wantValue(t, c, slow("b"), "a")
		if time.Since(began) > 0 {
			t.Error("it waited for the store")
		}
		pass(time.Second)
		synctest.Wait()
		wantValue(t, c, slow("c"), "b")
		pass(refreshAt)
		wantValue(t, c, func(context.Context) (string, error) { panic("broken") }, "b")
		synctest.Wait()
		wantValue(t, c, always("d"), "d") // what failed is not believed
	})
}

func TestADropMakesTheNextOneLook(t *testing.T) {
	c := newTestCache[string]()
	wantValue(t, c, always("a"), "a")
	c.dropAbout(ofApp("other"), everyRevision)
	wantValue(t, c, always("b"), "a")
	c.dropAbout(ofApp("a"), everyRevision)
	wantValue(t, c, always("b"), "b")
}

func TestOnlyWhatExistsIsRemembered(t *testing.T) {
	c := newTestCache[string]()
	for range 2 {
		if _, err := c.get(t.Context(), "k", failing(freshet.NotFound)); freshet.KindOf(err) != freshet.NotFound {
			t.Error(err)
		}
	}
	wantValue(t, c, always("a"), "a")
}

func TestOneLoadServesAllWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCache[string]()
		var loads atomic.Int64
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				wantValue(t, c, func(context.Context) (string, error) {
					loads.Add(1)
					pass(time.Second)
					return "a", nil
				}, "a")
			})
		}
		wg.Wait()
		if n := loads.Load(); n != 1 {
			t.Errorf("%d loads", n)
		}
	})
}

func TestALoadThatBeganBeforeADropIsNotKeptAndNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCache[string]()
		go wantValue(t, c, func(context.Context) (string, error) {
			pass(time.Second)
			return "before", nil
		}, "before")
		synctest.Wait()
		c.dropAbout(ofApp("before"), everyRevision) // the entry is not there yet; the load is under way
		wantValue(t, c, always("after"), "after")
		pass(2 * time.Second) // the old load comes back
		wantValue(t, c, always("unused"), "after")
	})
}

func TestWhileTheStoreIsAwayWhatWasKnownGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCache[string]()
		wantValue(t, c, always("a"), "a")
		pass(staleFor - 1)
		wantValue(t, c, failing(freshet.Unavailable), "a")
		pass(1)
		if _, err := c.get(t.Context(), "k", failing(freshet.Unavailable)); freshet.KindOf(err) != freshet.Unavailable {
			t.Errorf("for ever: %v", err)
		}
		if _, err := c.get(t.Context(), "new", failing(freshet.Unavailable)); freshet.KindOf(err) != freshet.Unavailable {
			t.Errorf("what was never known: %v", err)
		}
	})
}

func TestWhatANoticeDroppedIsNotUsedWhileTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCache[string]()
		wantValue(t, c, always("a"), "a")
		pass(freshFor)
		go func() {
			_, err := c.get(t.Context(), "k", func(context.Context) (string, error) {
				pass(time.Second)
				return "", freshet.Errorf(freshet.Unavailable, "away")
			})
			if freshet.KindOf(err) != freshet.Unavailable {
				t.Errorf("a load during the drop: %v", err)
			}
		}()
		synctest.Wait()
		c.dropAbout(ofApp("a"), everyRevision)
		if _, err := c.get(t.Context(), "k", failing(freshet.Unavailable)); freshet.KindOf(err) != freshet.Unavailable {
			t.Errorf("after the drop: %v", err)
		}
		pass(2 * time.Second)
	})
}

func TestAStoreThatHangsIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCache[string]()
		defer c.close()
		if _, err := c.get(t.Context(), "k", hanging); freshet.KindOf(err) != freshet.Unavailable {
			t.Errorf("%v", err)
		}
		wantValue(t, c, always("a"), "a")
		pass(freshFor)
		wantValue(t, c, hanging, "a")
	})
}

func hanging(ctx context.Context) (string, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

func TestNobodyWaitsForAStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCache[string]()
		defer c.close()
		wantValue(t, c, always("a"), "a")
		pass(time.Minute)
		asked := time.Now()
		wantValue(t, c, hanging, "a")
		if waited := time.Since(asked); waited > patience {
			t.Errorf("the first one waited %v", waited)
		}
		asked = time.Now()
		for range 60 {
			pass(time.Second)
			wantValue(t, c, hanging, "a")
		}
		if waited := time.Since(asked) - time.Minute; waited != 0 {
			t.Errorf("the others waited %v", waited)
		}
		pass(loadTimeout)
		wantValue(t, c, always("b"), "a") // it cannot be known that the store is back
		synctest.Wait()
		wantValue(t, c, hanging, "b")
	})
}

func TestNobodyWaitsForALoadThatHungBeforeItWasNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCache[string]()
		defer c.close()
		wantValue(t, c, always("a"), "a")
		asked := time.Now()
		for range 60 {
			pass(time.Second)
			wantValue(t, c, hanging, "a")
		}
		if waited := time.Since(asked) - time.Minute; waited != 0 {
			t.Errorf("somebody waited %v", waited)
		}
	})
}

func TestAStoreThatAnswersIsBelievedMoreThanMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCache[string]()
		defer c.close()
		wantValue(t, c, always("a"), "a")
		pass(freshFor)
		wantValue(t, c, func(context.Context) (string, error) { pass(patience / 2); return "b", nil }, "b")
		pass(freshFor)
		if _, err := c.get(t.Context(), "k", failing(freshet.NotFound)); freshet.KindOf(err) != freshet.NotFound {
			t.Errorf("what is gone: %v", err)
		}
	})
}

func TestAStoreThatHangsIsTriedByOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCache[int]()
		defer c.close()
		var loads, under atomic.Int64
		get := func(key int, load func(context.Context) (string, error)) {
			if got, err := c.get(t.Context(), key, load); got != "a" || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
		}
		for key := range 100 {
			get(key, always("a"))
		}
		pass(freshFor)
		for range 2 {
			for key := range 100 {
				get(key, func(ctx context.Context) (string, error) {
					loads.Add(1)
					defer under.Add(-1)
					if n := under.Add(1); n > 1 {
						t.Errorf("%d loads at the same time", n)
					}
					return hanging(ctx)
				})
			}
			pass(loadTimeout)
		}
		if n := loads.Load(); n != 2 {
			t.Errorf("%d loads", n)
		}
	})
}

func TestWhatANoticeDropsWhileTheStoreHangsIsNotAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCache[string]()
		defer c.close()
		wantValue(t, c, always("a"), "a")
		pass(freshFor)
		refused := make(chan error)
		go func() {
			_, err := c.get(t.Context(), "k", hanging)
			refused <- err
		}()
		synctest.Wait() // it has an answer, and waits for a better one
		c.dropAbout(ofApp("a"), everyRevision)
		if err := <-refused; freshet.KindOf(err) != freshet.Unavailable {
			t.Errorf("who asked before the notice: %v", err)
		}
		if _, err := c.get(t.Context(), "k", hanging); freshet.KindOf(err) != freshet.Unavailable {
			t.Errorf("who asked after it: %v", err)
		}
	})
}

func TestAClientThatHangsUpFailsNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCache[string]()
		slow := func(ctx context.Context) (string, error) {
			pass(time.Second)
			return "a", ctx.Err()
		}
		first, hangUp := context.WithCancel(t.Context())
		go func() { _, _ = c.get(first, "k", slow) }()
		synctest.Wait()
		impatient, leave := context.WithCancel(t.Context())
		go func() {
			if _, err := c.get(impatient, "k", slow); !errors.Is(err, context.Canceled) {
				t.Errorf("the impatient one: %v", err)
			}
		}()
		synctest.Wait()
		hangUp()
		leave()
		wantValue(t, c, always("other"), "a")
	})
}

func TestALoadThatPanicsLeavesNobodyWaiting(t *testing.T) {
	c := newTestCache[string]()
	func() {
		defer func() { _ = recover() }()
		_, _ = c.get(t.Context(), "k", func(context.Context) (string, error) { panic("x") })
	}()
	wantValue(t, c, always("a"), "a")
}

func TestTheCacheIsBoundedAndKeepsWhatIsUsed(t *testing.T) {
	c := newCache[int](cacheOptions[string]{now: time.Now, most: 10, about: func(v string) []grid.Notice { return []grid.Notice{ofApp(v)} }})
	loads := 0
	get := func(key int) {
		_, err := c.get(t.Context(), key, func(context.Context) (string, error) { loads++; return "of " + strconv.Itoa(key), nil })
		if err != nil {
			t.Error(err)
		}
	}
	for i := range 1000 {
		get(i)
		get(0)
		if n := len(c.young.entries) + len(c.old.entries); n > 20 {
			t.Fatalf("%d entries", n)
		}
	}
	if loads != 1000 {
		t.Errorf("%d loads: what is in use was forgotten", loads)
	}
	if n := len(c.young.index) + len(c.old.index); n > 20 {
		t.Errorf("the index knows %d subjects", n)
	}
	c.dropAbout(ofApp("of 0"), everyRevision)
	if _, known := c.peek(0); known {
		t.Error("an entry that was moved is not found by its subject")
	}
}

func TestWhatTheLogConfirmsIsNotLoadedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var confirmed atomic.Pointer[time.Time]
		c := newCache[string](cacheOptions[string]{now: time.Now, confirmed: &confirmed})
		defer c.close()
		wantValue(t, c, always("a"), "a")
		for range 60 {
			pass(refreshAt - 1)
			now := time.Now()
			confirmed.Store(&now)
			wantValue(t, c, always("b"), "a")
			if _, ok := c.peek("k"); !ok {
				t.Fatal("it is not known at once")
			}
		}
		synctest.Wait()
		wantValue(t, c, always("b"), "a")
		pass(refreshAt) // nobody reads the log any more
		wantValue(t, c, always("b"), "a")
		synctest.Wait()
		wantValue(t, c, always("c"), "b")
	})
}

func TestWhateverTheLogSaysAnEntryIsLoadedAgainSomeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var confirmed atomic.Pointer[time.Time]
		c := newCache[string](cacheOptions[string]{now: time.Now, confirmed: &confirmed})
		defer c.close()
		wantValue(t, c, always("a"), "a")
		pass(2 * reloadAfter)
		now := time.Now()
		confirmed.Store(&now)
		wantValue(t, c, always("b"), "a") // nobody waits for it
		synctest.Wait()
		wantValue(t, c, always("c"), "b")
	})
}

func TestOnlyWhatWasReadBeforeAChangeIsDropped(t *testing.T) {
	type record struct {
		value    string
		revision int64
	}
	c := newCache[string](cacheOptions[record]{now: time.Now, asOf: func(r record) int64 { return r.revision },
		about: func(r record) []grid.Notice { return []grid.Notice{ofApp("a")} }})
	get := func(r record) record {
		got, err := c.get(t.Context(), "k", func(context.Context) (record, error) { return r, nil })
		if err != nil {
			t.Error(err)
		}
		return got
	}
	if had := c.dropAbout(ofApp("a"), 5); had != (known{}) {
		t.Errorf("of nothing: %+v", had)
	}
	get(record{"old", 4})
	if had := c.dropAbout(ofApp("a"), 4); had != (known{any: true}) {
		t.Errorf("a change that was seen: %+v", had)
	}
	if had := c.dropAbout(ofApp("a"), 5); had != (known{any: true, stale: true}) {
		t.Errorf("a change that was not: %+v", had)
	}
	if got := get(record{"new", 5}); got.value != "new" {
		t.Errorf("got %v", got)
	}
	if had := c.drop("k", 5); had != (known{any: true}) {
		t.Errorf("read since: %+v", had)
	}
}

// BenchmarkNotice is what a notice about one app costs while others are remembered, and publishers wait for the lock.
func BenchmarkNotice(b *testing.B) {
	for _, others := range []int{1_000, 100_000} {
		b.Run(strconv.Itoa(others), func(b *testing.B) {
			c := newTestCache[string]()
			for i := range others {
				_, _ = c.get(b.Context(), strconv.Itoa(i), always(strconv.Itoa(i)))
			}
			for b.Loop() {
				c.dropAbout(ofApp("1"), everyRevision)
				_, _ = c.get(b.Context(), "1", always("1"))
			}
		})
	}
}
