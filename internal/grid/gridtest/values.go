package gridtest

import (
	"testing"
	"time"

	"github.com/freshet-io/freshet/internal/grid"
)

var valuesContract = []clause[grid.Values]{
	{name: "SwapAcquiresRenewsAndReleases", forgets: true, test: swapAcquiresRenewsAndReleases},
}

func swapAcquiresRenewsAndReleases(t *testing.T, g grid.Values, p Pace) {
	value := func() string {
		t.Helper()
		is, err := g.Value(t.Context(), "lease")
		if err != nil {
			t.Fatal(err)
		}
		return is
	}
	swap := func(old, new, want string) {
		t.Helper()
		got, err := g.Swap(t.Context(), "lease", old, new, p.TTL)
		if err != nil || got != want {
			t.Errorf("Swap(%q, %q) = %q, %v; want %q", old, new, got, err, want)
		}
		if read := value(); read != want {
			t.Errorf("Value = %q after Swap(%q, %q); want %q", read, old, new, want)
		}
	}
	swap("", "me", "me")
	swap("", "you", "me")
	time.Sleep(p.TTL / 2)
	renewed := time.Now()
	swap("me", "me", "me")
	swap("", "you", "me") // what is refused renews nothing
	swap("you", "", "me")
	p.Gone(t, renewed, func() bool { return value() == "" })
	swap("me", "me", "")
	swap("", "you", "you")
	swap("you", "", "")
	swap("", "me", "me")
}
