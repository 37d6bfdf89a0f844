package gridtest

import (
	"testing"

	"github.com/freshet-io/freshet/internal/grid"
)

var noticesContract = []clause[grid.Notices]{
	{name: "NoticesReachEverybody", test: noticesReachEverybody},
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
