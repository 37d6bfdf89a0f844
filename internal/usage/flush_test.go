package usage_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/store"
	"github.com/freshet-io/freshet/internal/usage"
)

// written is what a meter had written down, and when.
type written struct {
	at   []time.Time
	rows []int
	fail bool
}

func (w *written) add(_ context.Context, b *store.UsageBatch) error {
	if w.fail {
		return errors.New("away")
	}
	w.at, w.rows = append(w.at, time.Now()), append(w.rows, len(b.Rows))
	return nil
}

func (w *written) sum() (n int) {
	for _, rows := range w.rows {
		n += rows
	}
	return n
}

func publishTo(m *usage.Meter, topics int) {
	for i := range topics {
		m.Add(usage.Place{TopicID: strconv.Itoa(i), AppID: "app", UserID: "user"}, freshet.Usage{Publications: 1})
	}
}

func TestMuchIsWrittenDownInPartsOverTheInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w written
		m := usage.New(nil, usage.Options{Flush: 8 * time.Second, Write: w.add})
		defer func() { _ = m.Close(t.Context()) }()
		const topics = 8000
		publishTo(m, topics)
		<-time.After(8*time.Second + time.Millisecond)
		synctest.Wait()
		if n := w.sum(); n != topics {
			t.Errorf("%d rows were written in the interval", n)
		}
		together := map[time.Time]int{}
		for i, at := range w.at {
			together[at] += w.rows[i]
		}
		for at, n := range together {
			if n > topics/4 {
				t.Errorf("%d rows were written at once, %v after the start", n, at)
			}
		}
		if most := slices.Max(w.rows); most > 500 {
			t.Errorf("a transaction has %d rows", most)
		}
	})
}

func TestLittleIsWrittenDownAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w written
		m := usage.New(nil, usage.Options{Flush: 8 * time.Second, Write: w.add})
		defer func() { _ = m.Close(t.Context()) }()
		for range 10 {
			publishTo(m, 100)
			<-time.After(8 * time.Second)
		}
		synctest.Wait()
		if len(w.rows) > 11 || w.sum() < 900 {
			t.Errorf("%d rows in %d transactions", w.sum(), len(w.rows))
		}
	})
}

func TestNothingIsLostAtAStopAfterAWriteThatFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := written{fail: true}
		m := usage.New(nil, usage.Options{Flush: 8 * time.Second, Write: w.add})
		publishTo(m, 100)
		<-time.After(10 * time.Second)
		synctest.Wait()
		if m.Failures() == 0 {
			t.Error("nothing failed")
		}
		publishTo(m, 50)
		w.fail = false
		if err := m.Close(t.Context()); err != nil || w.sum() != 150 {
			t.Errorf("%d rows were written, %v", w.sum(), err)
		}
	})
}

func TestAQuotaCountsEachMessageOnceWhilePartsAreWritten(t *testing.T) {
	const topics, limit = 2000, 10_000
	s := openStore(t, t.TempDir())
	m := usage.New(s, usage.Options{Flush: 16 * time.Millisecond})
	defer closeAll(t, m, s)
	owner := usage.User("user")
	if m.Limit(t.Context(), owner, limit) {
		t.Fatal("spent before it began")
	}
	counters := make([]*usage.Counter, topics)
	for i := range counters {
		counters[i] = m.Counter(usage.Place{TopicID: strconv.Itoa(i), AppID: "app", UserID: "user"})
	}
	send := func(n int) {
		for i := range n {
			counters[i%topics].Sent(1, 1, 1)
			if i%100 == 99 {
				_ = total(t, m, s) // reads everything out
				if m.IsSpent(owner) {
					t.Fatalf("spent after %d", i+1)
				}
			}
		}
	}
	send(limit - 100)
	for range 99 {
		counters[0].Sent(1, 1, 1)
	}
	if got := sum(total(t, m, s)).Messages; got != limit-1 || m.IsSpent(owner) {
		t.Errorf("%d messages, spent: %v", got, m.IsSpent(owner))
	}
	counters[1].Sent(1, 1, 1)
	if got := sum(total(t, m, s)).Messages; got != limit || !m.IsSpent(owner) {
		t.Errorf("%d messages, spent: %v", got, m.IsSpent(owner))
	}
	for _, c := range counters {
		c.Close()
	}
}
