package jetstream

import (
	"testing"
	"time"
)

// TestWhatAnotherNodeWroteIsNotTakenFromMemory: a node remembers what it wrote itself.
func TestWhatAnotherNodeWroteIsNotTakenFromMemory(t *testing.T) {
	t.Parallel()
	s := newTestStreams(t).values
	here, there := newValues(s), newValues(s)
	swap := func(v *values, old, new, want string) {
		t.Helper()
		if got, err := v.Swap(t.Context(), "lease", old, new, time.Hour); err != nil || got != want {
			t.Errorf("Swap(%q, %q) = %q, %v; want %q", old, new, got, err, want)
		}
	}
	swap(here, "", "here", "here")
	swap(there, "here", "there", "there")
	swap(here, "here", "here", "there")
	swap(here, "there", "here", "here")
	swap(there, "there", "", "here")

	a, b := newCounters(s), newCounters(s)
	for i, c := range []*counters{a, b, b, a} {
		if sum, err := c.Add(t.Context(), "c", 1, time.Hour); err != nil || sum != int64(i+1) {
			t.Errorf("the sum is %d, %v; want %d", sum, err, i+1)
		}
	}
}

func TestAReservationIsGivenBack(t *testing.T) {
	t.Parallel()
	c := newCounters(newTestStreams(t).values)
	r := newReservations(c)
	for range 3 {
		if _, err := r.Spend(t.Context(), "c", 100_000, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	sum := func() int64 {
		sum, err := c.Add(t.Context(), "c", 0, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	for deadline := time.Now().Add(time.Minute); sum() != 3; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("3 were spent; the sum is %d", sum())
		}
	}
}
