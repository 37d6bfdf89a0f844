package subscribe

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/grid/memory"
)

func newTestSeats(g grid.Counters) *seats {
	return newSeats(slog.New(slog.DiscardHandler), g, time.Millisecond)
}

func TestAConnectionLimitIsExactOverSeveralNodes(t *testing.T) {
	g := memory.New(memory.Options{})
	defer g.Close()
	const limit = 10
	nodes := []*seats{newTestSeats(g), newTestSeats(g), newTestSeats(g)}
	for round := range 20 {
		var admitted atomic.Int64
		var crowd sync.WaitGroup
		for i := range 90 {
			crowd.Go(func() {
				err := nodes[i%3].take(t.Context(), ownerLimit{"user", "account", limit})
				switch freshet.KindOf(err) {
				case freshet.ConnectionLimit:
				default:
					if err != nil {
						t.Error(err)
						return
					}
					admitted.Add(1)
				}
			})
		}
		crowd.Wait()
		if n := admitted.Load(); n != limit {
			t.Fatalf("round %d: %d were let in", round, n)
		}
		for _, s := range nodes {
			s.mu.Lock()
			open := int64(0)
			if sh := s.here["user"]; sh != nil {
				open = sh.open
			}
			s.mu.Unlock()
			for range open {
				s.free("user")
			}
			s.tellChanged()
		}
	}
	for _, s := range nodes {
		s.close()
		if len(s.here) != 0 {
			t.Errorf("%d accounts are remembered", len(s.here))
		}
	}
}

func TestWhoIsRefusedByItsAppTakesNoSeatOfItsAccount(t *testing.T) {
	g := memory.New(memory.Options{})
	defer g.Close()
	nodes := []*seats{newTestSeats(g), newTestSeats(g)}
	account := ownerLimit{"user", "account", 5}
	for round := range 10 {
		var ofApp, ofOther atomic.Int64
		var crowd sync.WaitGroup
		for i := range 40 { // the app has 3 of the 5
			crowd.Go(func() {
				if nodes[i%2].takeAll(t.Context(), account, ownerLimit{"app", "app", 3}) == nil {
					ofApp.Add(1)
				}
			})
		}
		crowd.Wait()
		for i := range 40 {
			crowd.Go(func() {
				if nodes[i%2].takeAll(t.Context(), account, ownerLimit{"other", "app", 0}) == nil {
					ofOther.Add(1)
				}
			})
		}
		crowd.Wait()
		if ofApp.Load() > 3 || ofOther.Load() != 5-ofApp.Load() || ofApp.Load() == 0 {
			t.Fatalf("round %d: %d of the app and %d of another", round, ofApp.Load(), ofOther.Load())
		}
		for _, s := range nodes {
			s.mu.Lock()
			open := make(map[string]int64)
			for id, sh := range s.here {
				open[id] = sh.open
			}
			s.mu.Unlock()
			for id, n := range open {
				for range n {
					s.free(id)
				}
			}
			s.tellChanged()
		}
	}
	for _, s := range nodes {
		s.close()
	}
}

func TestSeatsAreKeptOverPeriodsAndForgottenWithTheirNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := memory.New(memory.Options{})
		a, b := newTestSeats(g), newTestSeats(g)
		take := func(s *seats, limit int64) bool {
			return s.take(t.Context(), ownerLimit{"user", "account", limit}) == nil
		}
		if !take(a, 0) || !take(a, 2) || take(a, 2) || take(b, 2) {
			t.Fatal("two were not two") // the first came before there was a limit
		}
		for range 50 {
			time.Sleep(7 * time.Second)
			if take(b, 2) {
				t.Fatal("a third was let in")
			}
		}
		a.free("user")
		synctest.Wait()
		if !take(b, 2) || take(a, 2) {
			t.Fatal("a free seat was not given to another node")
		}
		// b dies without a word.
		close(b.done)
		<-b.finished
		time.Sleep(3 * seatPeriod)
		if !take(a, 2) || take(a, 2) {
			t.Fatal("the dead keep their seats")
		}
		a.free("user")
		a.free("user")
		a.close()
		g.Close()
	})
}

func TestAnUnlimitedAccountIsNotCountedInTheGrid(t *testing.T) {
	s := newTestSeats(refusing{t})
	for range 100 {
		if err := s.take(t.Context(), ownerLimit{"user", "account", 0}); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		s.free("user")
	}
	s.close()
	if len(s.here) != 0 {
		t.Error("the account is remembered")
	}
}

// refusing is a grid that nobody may count in.
type refusing struct{ t *testing.T }

func (r refusing) Add(context.Context, string, int64, time.Duration) (int64, error) {
	r.t.Error("it was counted")
	return 0, nil
}

func (r refusing) Spend(ctx context.Context, name string, _ int64, ttl time.Duration) (int64, error) {
	return r.Add(ctx, name, 1, ttl)
}

// TestAnOwnerWithoutALimitIsForgotten: also one of whose apps refused somebody.
func TestAnOwnerWithoutALimitIsForgotten(t *testing.T) {
	g := memory.New(memory.Options{})
	defer g.Close()
	s := newTestSeats(g)
	account, app := ownerLimit{"user", "account", 0}, ownerLimit{"app", "app", 1}
	if err := s.takeAll(t.Context(), account, app); err != nil {
		t.Fatal(err)
	}
	if err := s.takeAll(t.Context(), account, app); err == nil {
		t.Fatal("one too many")
	}
	s.free("user")
	s.free("app")
	s.close()
	if len(s.here) != 0 {
		t.Errorf("%d are remembered: %+v", len(s.here), s.here)
	}
}
