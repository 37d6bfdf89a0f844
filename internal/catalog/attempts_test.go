package catalog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/freshet-io/freshet"
)

func stranger() bool { return false }

func TestEachFailureDoublesTheWait(t *testing.T) {
	a, now := newAttempts(), time.Now()
	try := func() time.Duration {
		_, err := a.begin(now, "ada@example.com", "home", stranger)
		if e, ok := errors.AsType[*freshet.Error](err); ok {
			return e.RetryAfter
		}
		return 0
	}
	for i := range pairPace.free {
		if wait := try(); wait > 0 {
			t.Fatalf("attempt %d waits %v", i, wait)
		}
	}
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256} {
		if wait := try(); wait != want*time.Second {
			t.Fatalf("wait %d is %v, want %d s", i, wait, want)
		}
		now = now.Add(want*time.Second - 1)
		if try() != 1 {
			t.Fatal("admitted too early")
		}
		now = now.Add(1)
		if wait := try(); wait != 0 {
			t.Fatalf("still waits %v", wait)
		}
	}
	now = now.Add(24 * time.Hour) // everything is forgotten
	for i := range pairPace.free {
		if wait := try(); wait > 0 {
			t.Fatalf("attempt %d after a day waits %v", i, wait)
		}
	}
}

// The numbers are those in attempts.go and docs/decisions.
func TestADayBringsNoMoreGuessesThanIsSaid(t *testing.T) {
	const day = 24 * time.Hour
	for name, test := range map[string]struct {
		most      int
		addresses int
		account   func(i int) string
	}{
		"one address at one account":           {303, 1, func(int) string { return "ada" }},
		"a thousand addresses at one account":  {2935, 1000, func(int) string { return "ada" }},
		"one address at a different one every": {17314, 1, func(i int) string { return fmt.Sprint(i) }},
	} {
		// Whoever never pauses gets most; who lets failures be forgotten first, and then takes what is free, gets no more.
		for _, pause := range []time.Duration{0, 30 * time.Second, 5 * time.Minute, 15 * time.Minute, time.Hour} {
			a, now := newAttempts(), time.Unix(0, 0)
			guesses := 0
			for end, i := now.Add(day), 0; now.Before(end); i++ {
				_, err := a.begin(now, test.account(i), fmt.Sprint(i%test.addresses), stranger)
				if err == nil {
					guesses++
					continue
				}
				e, _ := errors.AsType[*freshet.Error](err)
				now = now.Add(e.RetryAfter + pause)
			}
			if guesses > test.most || pause == 0 && guesses < test.most*9/10 {
				t.Errorf("%s, pausing %v: %d guesses a day, at most %d are said", name, pause, guesses, test.most)
			}
		}
	}
}

func TestASuccessTakesBackItsOwnAttemptOnly(t *testing.T) {
	a, now := newAttempts(), time.Now()
	for range pairPace.free {
		if _, err := a.begin(now, "ada", "home", stranger); err != nil {
			t.Fatal(err)
		}
	}
	now = now.Add(time.Second)
	right, err := a.begin(now, "ada", "home", stranger)
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(2 * time.Second) // hashing took long, and somebody guesses meanwhile
	if _, err := a.begin(now, "ada", "home", stranger); err != nil {
		t.Fatal(err)
	}
	a.takeBack(right)
	if _, err := a.begin(now, "ada", "home", stranger); freshet.KindOf(err) != freshet.TooManyRequests {
		t.Errorf("the success of one freed another: %v", err)
	}
}

func TestManyGuessesAtOnceAreNotManyFreeOnes(t *testing.T) {
	t.Parallel()
	for networks, free := range map[int]int{1: pairPace.free, 200: accountPace.free} {
		w := openWorld(t, nil)
		var wg sync.WaitGroup
		var mu sync.Mutex
		kinds := map[freshet.Kind]int{}
		for i := range 200 {
			wg.Go(func() {
				_, err := w.SignIn(t.Context(), freshet.FixedAdminEmail, "wrong password", fmt.Sprint(i%networks))
				mu.Lock()
				kinds[freshet.KindOf(err)]++
				mu.Unlock()
			})
		}
		wg.Wait()
		if kinds[freshet.Unauthenticated] != free || kinds[freshet.TooManyRequests] != 200-free {
			t.Errorf("from %d networks: %v", networks, kinds)
		}
	}
}

func TestASignInThatFailsThroughUsIsNoGuess(t *testing.T) {
	t.Parallel()
	w := openWorld(t, nil)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2 * accountPace.free {
		if _, err := w.SignIn(gone, freshet.FixedAdminEmail, freshet.FixedAdminPassword, "a"); err == nil || freshet.KindOf(err) == freshet.Unauthenticated {
			t.Fatal(err)
		}
	}
	if n := len(w.attempts.tracked); n > 0 {
		t.Errorf("%d budgets of nothing", n)
	}
	if _, err := w.SignIn(t.Context(), freshet.FixedAdminEmail, freshet.FixedAdminPassword, "a"); err != nil {
		t.Error(err)
	}
}

func TestInventedAccountsDoNotGrowMemory(t *testing.T) {
	now := time.Now()
	waiting := &failures{count: 9, since: now, until: now.Add(time.Second)}
	for name, f := range map[string]*failures{"free": {count: 1, since: now}, "waiting": waiting} {
		a := newAttempts()
		for i := range uint32(maxTracked) {
			a.tracked[budgetID{byte(i), byte(i >> 8), byte(i >> 16)}] = f
		}
		if _, err := a.begin(now, "x", "y", stranger); err != nil || len(a.tracked) > 3 {
			t.Errorf("%s: %d tracked, %v", name, len(a.tracked), err)
		}
	}
}
