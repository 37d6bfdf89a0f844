package usage_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/pgtest"
	"github.com/freshet-io/freshet/internal/store"
	"github.com/freshet-io/freshet/internal/usage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var place = usage.Place{TopicID: "topic", AppID: "app", UserID: "user"}

func openStore(t *testing.T, dir string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Location{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// total is what the meter says about everything, by hour.
func total(t *testing.T, m *usage.Meter, s *store.Store) []freshet.UsageHour {
	t.Helper()
	span := store.Span{To: time.Now().Add(time.Hour)}
	hours, err := m.Hours(span, func(usage.Place) bool { return true }, func() ([]freshet.UsageHour, error) { return s.Usage(t.Context(), span) })
	if err != nil {
		t.Fatal(err)
	}
	return hours
}

func sum(hours []freshet.UsageHour) (all freshet.Usage) {
	for _, h := range hours {
		all.Add(h.Usage)
	}
	return all
}

func closeAll(t *testing.T, m *usage.Meter, s *store.Store) {
	t.Helper()
	if err := m.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestWhatWasCountedSurvivesARestart(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	m := usage.New(s, usage.Options{})
	c := m.Counter(place)
	c.Sent(2, 100, 1000)
	m.Add(place, freshet.Usage{Publications: 1, Polls: 3, PollsNotModified: 2})
	want := freshet.Usage{Messages: 2, Bytes: 100, FullBytes: 1000, Publications: 1, Polls: 3, PollsNotModified: 2}
	if got := sum(total(t, m, s)); got != want {
		t.Errorf("before it is written: %+v", got)
	}
	c.Sent(1, 1, 1)
	c.Close()
	closeAll(t, m, s)
	s = openStore(t, dir)
	m = usage.New(s, usage.Options{})
	defer closeAll(t, m, s)
	want.Add(freshet.Usage{Messages: 1, Bytes: 1, FullBytes: 1})
	if got := sum(total(t, m, s)); got != want {
		t.Errorf("after a restart: %+v, want %+v", got, want)
	}
}

func TestACrashLosesNoMoreThanTheLastFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		s := openStore(t, dir)
		m := usage.New(s, usage.Options{})
		c := m.Counter(place)
		c.Sent(5, 5, 5)
		time.Sleep(11 * time.Second)
		c.Sent(7, 7, 7)
		span := store.Span{To: time.Now().Add(time.Hour)}
		written, err := s.Usage(t.Context(), span) // what another process would find now
		if err != nil {
			t.Fatal(err)
		}
		if got := sum(written).Messages; got != 5 {
			t.Errorf("%d messages are written down", got)
		}
		closeAll(t, m, s)
	})
}

func TestConnectedTimeBelongsToTheHourInWhichItPassed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openStore(t, t.TempDir())
		m := usage.New(s, usage.Options{})
		time.Sleep(50 * time.Minute)
		c := m.Counter(place)
		c.Connect(1)
		c.Connect(1)
		time.Sleep(20 * time.Minute)
		c.Connect(-1)
		time.Sleep(10 * time.Minute)
		hours := total(t, m, s)
		if len(hours) != 2 || hours[0].Connected != 20*time.Minute || hours[1].Connected != 30*time.Minute {
			t.Errorf("%+v", hours)
		}
		c.Connect(-1)
		time.Sleep(time.Hour)
		if got := sum(total(t, m, s)).Connected; got != 50*time.Minute {
			t.Errorf("nobody is connected, and yet it is %v", got)
		}
		closeAll(t, m, s)
	})
}

func TestAQuotaIsToldWhenItIsUsedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		s := openStore(t, dir)
		m := usage.New(s, usage.Options{})
		var told atomic.Int64
		m.OnSpent(func(of usage.Owner) {
			if of == usage.User("user") {
				told.Add(1)
			}
		})
		c := m.Counter(place)
		c.Sent(2, 2, 2) // before there was a limit
		ctx := t.Context()
		if m.Limit(ctx, usage.User("user"), 0) || m.Limit(ctx, usage.User("user"), 3) {
			t.Error("spent before it was")
		}
		c.Sent(1, 1, 1)
		time.Sleep(2 * time.Second)
		if told.Load() != 1 || !m.Limit(ctx, usage.User("user"), 3) {
			t.Errorf("told %d times; spent: %v", told.Load(), m.Limit(ctx, usage.User("user"), 3))
		}
		time.Sleep(time.Minute) // flushes must not count anything again
		if told.Load() != 1 || m.Limit(ctx, usage.User("user"), 4) {
			t.Errorf("told %d times; spent with a limit of 4: %v", told.Load(), m.Limit(ctx, usage.User("user"), 4))
		}
		if m.Limit(ctx, usage.User("another"), 3) {
			t.Error("somebody else's quota is spent")
		}
		c.Close()
		closeAll(t, m, s)

		s = openStore(t, dir) // a restart gives nothing back
		m = usage.New(s, usage.Options{})
		if m.Limit(ctx, usage.User("user"), 4) || !m.Limit(ctx, usage.User("user"), 3) {
			t.Error("after a restart it is counted otherwise")
		}
		closeAll(t, m, s)
		time.Sleep(32 * 24 * time.Hour) // but a new month does
		s = openStore(t, dir)
		m = usage.New(s, usage.Options{})
		if m.Limit(ctx, usage.User("user"), 3) {
			t.Error("it is spent for ever")
		}
		closeAll(t, m, s)
	})
}

// TestAQuotaHoldsOverNodes: two meters over one store stand for two nodes.
func TestAQuotaHoldsOverNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openStore(t, t.TempDir())
		defer s.Close()
		var told [3]atomic.Int64
		var nodes [3]*usage.Meter
		var counters [3]*usage.Counter
		for i := range nodes {
			nodes[i] = usage.New(s, usage.Options{})
			defer nodes[i].Close(context.Background())
			nodes[i].OnSpent(func(usage.Owner) { told[i].Add(1) })
			counters[i] = nodes[i].Counter(place)
			defer counters[i].Close()
			if nodes[i].Limit(t.Context(), usage.User(place.UserID), 100) {
				t.Fatal("spent before anything was sent")
			}
		}
		for range 50 { // each node alone would stay below the limit
			counters[0].Sent(1, 1, 1)
			counters[1].Sent(1, 1, 1)
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(3 * time.Second)
		if told[0].Load() != 1 || told[1].Load() != 1 {
			t.Errorf("the nodes were told %d and %d times that the quota is used up", told[0].Load(), told[1].Load())
		}
		if !nodes[2].Limit(t.Context(), usage.User(place.UserID), 100) {
			t.Error("a node that sent nothing lets subscribers in")
		}
	})
}

func TestNothingIsCountedTwiceOrLostWhileEverythingHappensAtOnce(t *testing.T) {
	s := openStore(t, t.TempDir())
	m := usage.New(s, usage.Options{})
	defer closeAll(t, m, s)
	const workers, rounds = 8, 300
	var work sync.WaitGroup
	for range workers {
		work.Go(func() {
			for i := range rounds {
				c := m.Counter(place)
				c.Sent(1, 10, 100)
				m.Add(place, freshet.Usage{Publications: 1})
				if i%50 == 0 {
					_ = m.Limit(t.Context(), usage.User("user"), int64(1+i))
				}
				c.Close()
			}
		})
	}
	done := make(chan struct{})
	go func() { work.Wait(); close(done) }()
	last := int64(0)
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		if err := m.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		now := sum(total(t, m, s)).Messages
		if now < last {
			t.Fatalf("%d messages after %d", now, last)
		}
		last = now
	}
	const n = workers * rounds
	got := sum(total(t, m, s))
	if got.Messages != n || got.Bytes != 10*n || got.FullBytes != 100*n || got.Publications != n {
		t.Errorf("%+v, want %d of each", got, n)
	}
	if m.Limit(t.Context(), usage.User("user"), n+1) || !m.Limit(t.Context(), usage.User("user"), n) {
		t.Error("the quota was counted otherwise")
	}
}

func TestAnAppAndItsAccountAreLimitedApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openStore(t, t.TempDir())
		m := usage.New(s, usage.Options{})
		var told []usage.Owner
		m.OnSpent(func(of usage.Owner) { told = append(told, of) })
		other := usage.Place{TopicID: "another topic", AppID: "another app", UserID: "user"}
		spent := func(of usage.Owner, limit int64) bool { return m.Limit(t.Context(), of, limit) }
		m.Counter(place).Sent(2, 2, 2)
		if err := m.Flush(t.Context()); err != nil { // what is known before there is a limit
			t.Fatal(err)
		}
		if spent(usage.App("app", "user"), 3) || spent(usage.App("another app", "user"), 2) || spent(usage.User("user"), 5) {
			t.Error("spent before it was")
		}
		c := m.Counter(other)
		c.Sent(1, 1, 1)
		time.Sleep(15 * time.Second)
		synctest.Wait()
		if len(told) != 0 {
			t.Errorf("told of %v", told)
		}
		c.Sent(1, 1, 1)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if len(told) != 1 || told[0] != usage.App("another app", "user") || !m.IsSpent(usage.App("another app", "user")) || m.IsSpent(usage.App("app", "user")) {
			t.Errorf("told of %v", told)
		}
		c.Sent(1, 1, 1)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if len(told) != 2 || told[1] != usage.User("user") || spent(usage.App("app", "user"), 3) || !spent(usage.App("app", "user"), 2) {
			t.Errorf("told of %v", told)
		}
		closeAll(t, m, s)
	})
}

// TestABatchThatWaitsIsChargedOnce: an account that is loaded while sums wait for the database must not be charged for them both
// as waiting and as written.
func TestABatchThatWaitsIsChargedOnce(t *testing.T) {
	s := openStore(t, t.TempDir())
	m := usage.New(s, usage.Options{Flush: time.Hour})
	defer closeAll(t, m, s)
	m.Counter(place).Sent(2, 2, 2)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Flush(gone); err == nil {
		t.Fatal("it was written")
	}
	if m.Limit(t.Context(), usage.User("user"), 3) || m.Limit(t.Context(), usage.App("app", "user"), 3) {
		t.Error("spent while it waits")
	}
	for range 2 {
		if err := m.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if m.Limit(t.Context(), usage.User("user"), 3) || !m.Limit(t.Context(), usage.User("user"), 2) || m.Limit(t.Context(), usage.App("app", "user"), 3) {
			t.Error("charged twice, or not at all")
		}
	}
}

func TestNobodyWaitsForAQuotaInADatabaseThatHangs(t *testing.T) {
	link := pgtest.NewLink(t, pgtest.URL(t))
	s, err := store.Open(t.Context(), store.Location{URL: link.URL})
	if err != nil {
		t.Fatal(err)
	}
	m := usage.New(s, usage.Options{Flush: time.Hour})
	defer closeAll(t, m, s)
	m.Add(place, freshet.Usage{Messages: 3})
	if err := m.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	link.GoDark()
	for range 2 {
		if m.Limit(t.Context(), usage.User("user"), 3) { // it returns, or the test never ends
			t.Error("somebody is limited by what nobody knows")
		}
	}
	link.Open()
	for !m.Limit(t.Context(), usage.User("user"), 3) { // what the database says counts again
		<-time.After(time.Millisecond)
	}
}
