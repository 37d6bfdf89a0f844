package httpkit

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/freshet-io/freshet"
)

// sums is a counter within the test.
type sums struct {
	mu  sync.Mutex
	all map[string]int64
	err error
}

func (s *sums) Add(_ context.Context, name string, delta int64, _ time.Duration) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[string]int64{}
	}
	s.all[name] += delta
	return s.all[name], s.err
}

func TestABudgetIsPerMinuteOfTheClock(t *testing.T) {
	counter := &sums{}
	at := time.Date(2026, 1, 1, 12, 0, 59, 500_000_000, time.UTC)
	take := func(now time.Time) (Budget, error) { return Take(t.Context(), counter, "x", 2, now) }
	for left := int64(1); left >= 0; left-- {
		if b, err := take(at); err != nil || b.Remaining != left || b.Reset != 500*time.Millisecond || b.Limit != 2 {
			t.Errorf("%+v, %v", b, err)
		}
	}
	for range 3 {
		b, err := take(at)
		var e *freshet.Error
		if !errors.As(err, &e) || e.Kind != freshet.TooManyRequests || e.RetryAfter != 500*time.Millisecond || b.Remaining != 0 {
			t.Errorf("%+v, %v", b, err)
		}
	}
	if b, err := take(at.Add(500 * time.Millisecond)); err != nil || b.Remaining != 1 || b.Reset != time.Minute {
		t.Errorf("in the next minute: %+v, %v", b, err)
	}
	if b, err := Take(t.Context(), counter, "y", 2, at); err != nil || b.Remaining != 1 {
		t.Errorf("another name: %+v, %v", b, err)
	}
}

func TestWithoutALimitOrACounterEverythingPasses(t *testing.T) {
	h := http.Header{}
	b, err := Take(t.Context(), &sums{}, "x", 0, time.Now())
	b.SetHeaders(h)
	if err != nil || len(h) > 0 {
		t.Errorf("no limit: %v, %v", err, h)
	}
	b, err = Take(t.Context(), &sums{err: errors.New("away")}, "x", 1, time.Now())
	b.SetHeaders(h)
	if err != nil || h.Get("X-RateLimit-Remaining-Minute") != "1" {
		t.Errorf("no counter: %v, %v", err, h)
	}
}

func TestALimitHoldsForCallersAtTheSameTime(t *testing.T) {
	counter, now := &sums{}, time.Now()
	var wg sync.WaitGroup
	var mu sync.Mutex
	passed := 0
	for range 50 {
		wg.Go(func() {
			if _, err := Take(t.Context(), counter, "x", 10, now); err == nil {
				mu.Lock()
				passed++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if passed != 10 {
		t.Errorf("%d passed", passed)
	}
}

func TestAClientIsCountedByItsAddress(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.1:1234": "192.0.2.1", "[::ffff:192.0.2.1]:1": "192.0.2.1", "[2001:db8:1:2:3:4:5:6]:1": "2001:db8:1:2::/64",
		"[2001:db8:1:2::ffff]:1": "2001:db8:1:2::/64", "[fe80::1%eth0]:1": "fe80::/64", "192.0.2.1": "192.0.2.1", "@": "@", "": "",
	} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
		r.RemoteAddr = remote
		r.Header.Set("X-Forwarded-For", "198.51.100.7") // nobody's word counts
		if got := ClientAddress(r); got != want {
			t.Errorf("%s: %q, want %q", remote, got, want)
		}
	}
}
