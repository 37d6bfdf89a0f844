package gridtest

import (
	"slices"
	"testing"

	"github.com/freshet-io/freshet/internal/grid"
)

var noticesContract = []clause[grid.Notices]{
	{name: "NoticesReachEverybody", test: noticesReachEverybody},
	{name: "NoticesReachListenersInTheirOrder", test: noticesReachListenersInTheirOrder},
}

func noticesReachEverybody(t *testing.T, g grid.Notices, p Pace) {
	var one, two []grid.Notice
	stop := g.OnNotice(func(n grid.Notice) { one = append(one, n) })
	defer g.OnNotice(func(n grid.Notice) { two = append(two, n) })()
	n := grid.Notice{Scope: grid.ScopeApp, ID: "x"}
	if err := g.Notify(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	stop()
	g.Notify(t.Context(), n)
	p.Settle(func() bool { return len(two) == 2 })
	if len(one) != 1 || len(two) != 2 || two[1] != n {
		t.Errorf("got %v and %v", one, two)
	}
}

func noticesReachListenersInTheirOrder(t *testing.T, g grid.Notices, _ Pace) {
	const listeners = 20
	var heard []int
	for i := range listeners {
		stop := g.OnNotice(func(grid.Notice) { heard = append(heard, i) })
		if i%5 == 4 {
			stop()
			continue
		}
		defer stop()
	}
	for name, tell := range map[string]func(grid.Notice){
		"Notify": func(n grid.Notice) { _ = g.Notify(t.Context(), n) },
		"Tell":   g.Tell,
	} {
		heard = nil
		tell(grid.Notice{Scope: grid.ScopeApp, ID: "x"})
		if len(heard) != listeners*4/5 || !slices.IsSorted(heard) {
			t.Errorf("%s reaches them in the order %v", name, heard)
		}
	}
}
