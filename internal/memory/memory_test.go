package memory

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestAnAccountRefusesOnlyWhatGrowsBeyondItsBound(t *testing.T) {
	a := NewAccount(100)
	a.Add(90)
	if !a.Fits(10) || a.Fits(11) || !a.Fits(0) || !a.Fits(-1) {
		t.Error("90 of 100 are held")
	}
	a.Add(20)
	if a.Fits(1) || !a.Fits(0) || !a.Fits(-5) {
		t.Error("more is held than may be")
	}
	if a.Add(-60); !a.Fits(50) {
		t.Error("what was given back cannot be held again")
	}
	if !new(Account).Fits(1 << 60) {
		t.Error("an account without a bound refuses")
	}
}

func limits() Limits { return Limits{Bytes: 100, Holders: 2, Wait: 5 * time.Second, Queue: 8} }

func TestWhoDoesNotFitWaitsAndIsRefusedInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSemaphore(limits())
		if err := s.Acquire(t.Context(), "a", 500); err != nil {
			t.Fatal("one alone is refused:", err)
		}
		began := time.Now()
		if err := s.Acquire(t.Context(), "b", 1); !errors.Is(err, ErrBusy) || time.Since(began) != 5*time.Second {
			t.Error("refused after", time.Since(began), "with", err)
		}
		if s.TryAcquire(1) {
			t.Error("who cannot wait got what is not there")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Acquire(ctx, "b", 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Error("who gave up:", err)
		}
		s.Release(500)
		if bytes, waiting := s.Held(); bytes != 0 || waiting != 0 || !s.TryAcquire(1) {
			t.Error(bytes, "bytes are held and", waiting, "wait")
		}
	})
}

func TestMoreMayNotBeAtItThanHolders(t *testing.T) {
	s := NewSemaphore(limits())
	for i, want := range []bool{true, true, false} {
		if got := s.TryAcquire(1); got != want {
			t.Errorf("number %d: %v; two may hold it", i+1, got)
		}
	}
	s.Release(1)
	if !s.TryAcquire(1) {
		t.Error("who left is still counted")
	}
}

func TestWhoRestsKeepsMemoryAndNobodyOut(t *testing.T) {
	s := NewSemaphore(Limits{Bytes: 100, Holders: 1})
	if !s.TryAcquire(80) || s.TryAcquire(10) {
		t.Fatal("one may hold it")
	}
	s.Rest(80, 30)
	if bytes, _ := s.Held(); bytes != 30 || s.TryAcquire(71) || !s.TryAcquire(70) || s.TryAcquire(0) {
		t.Error("there is room for one more, and for what is left; it keeps", bytes)
	}
	s.Release(70)
	s.Wake(30)
	if bytes, _ := s.Held(); bytes != 0 || !s.TryAcquire(101) || s.TryAcquire(0) {
		t.Error("nobody is left, and", bytes, "bytes are held")
	}
}

func TestWhoWaitedElsewhereWaitsNoLongerThanOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSemaphore(Limits{Bytes: 100, Wait: 5 * time.Second, Queue: 9})
		s.TryAcquire(100)
		began := time.Now()
		time.Sleep(3 * time.Second)
		for range 2 {
			if err := s.AcquireSince(t.Context(), "owner", 1, began); !errors.Is(err, ErrBusy) || time.Since(began) != 5*time.Second {
				t.Errorf("after %s: %v", time.Since(began), err)
			}
		}
		s.Release(100)
		if err := s.AcquireSince(t.Context(), "owner", 1, began); err != nil {
			t.Errorf("there is room: %v", err)
		}
	})
}

func TestTheQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSemaphore(limits())
		_ = s.Acquire(t.Context(), "a", 100)
		for range 8 {
			go func() { _ = s.Acquire(t.Context(), "a", 100) }()
		}
		synctest.Wait()
		began := time.Now()
		if err := s.Acquire(t.Context(), "b", 1); !errors.Is(err, ErrBusy) || !time.Now().Equal(began) {
			t.Error("the ninth waited, or got", err)
		}
		time.Sleep(time.Minute)
	})
}

func TestOneOwnersCrowdDelaysAnotherByOneTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSemaphore(Limits{Bytes: 100, Holders: 1, Wait: time.Hour, Queue: 100})
		_ = s.Acquire(t.Context(), "crowd", 100)
		var order []string
		enter := func(owner string, weight int64) {
			go func() {
				if s.Acquire(t.Context(), owner, weight) == nil {
					order = append(order, owner)
				}
			}()
			synctest.Wait()
		}
		for range 20 {
			enter("crowd", 100)
		}
		enter("heavy", 100)
		enter("light", 10)
		for range 22 {
			s.Release(map[bool]int64{true: 10, false: 100}[len(order) > 0 && order[len(order)-1] == "light"])
			synctest.Wait()
		}
		if len(order) != 22 || order[0] != "light" || (order[1] != "heavy" && order[2] != "heavy") {
			t.Error("they were admitted as", order)
		}
	})
}

func TestHoldersGoBeforeThoseWhoAreNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSemaphore(limits())
		_ = s.Acquire(t.Context(), "a", 50)
		_ = s.Acquire(t.Context(), "b", 50)
		var order []string
		go func() {
			_ = s.Acquire(t.Context(), "c", 1)
			order = append(order, "c")
		}()
		synctest.Wait()
		go func() {
			_ = s.Extend(t.Context(), 50)
			order = append(order, "a")
		}()
		synctest.Wait()
		s.Release(50)
		synctest.Wait()
		if bytes, waiting := s.Held(); len(order) != 1 || order[0] != "a" || bytes != 100 || waiting != 1 {
			t.Error("they were admitted as", order, "and hold", bytes)
		}
		s.Release(100)
		synctest.Wait()
		if len(order) != 2 {
			t.Error("who is no holder waits on")
		}
	})
}
