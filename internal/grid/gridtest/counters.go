package gridtest

import (
	"testing"
	"time"

	"github.com/freshet-io/freshet/internal/grid"
)

var countersContract = []clause[grid.Counters]{
	{name: "CountersAddUpAndForget", forgets: true, test: countersAddUpAndForget},
}

func countersAddUpAndForget(t *testing.T, g grid.Counters, p Pace) {
	add := func(delta int64) int64 {
		t.Helper()
		sum, err := g.Add(t.Context(), "c", delta, p.TTL)
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	want := func(delta, want int64) {
		t.Helper()
		if got := add(delta); got != want {
			t.Errorf("Add(%d) = %d, want %d", delta, got, want)
		}
	}
	want(0, 0)
	want(5, 5)
	time.Sleep(p.TTL / 2)
	last := time.Now() // the TTL counts from the last addition
	want(-2, 3)
	p.Gone(t, last, func() bool {
		sum := add(0)
		if sum != 0 && sum != 3 {
			t.Fatalf("the sum is %d", sum)
		}
		return sum == 0
	})
	want(1, 1)
}
