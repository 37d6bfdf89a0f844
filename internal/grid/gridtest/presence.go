package gridtest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/freshet-io/freshet/internal/grid"
)

var presenceContract = []clause[grid.Presence]{
	{name: "PresenceIsWhetherAnybodyIsThere", test: presenceIsWhetherAnybodyIsThere},
}

func presenceIsWhetherAnybodyIsThere(t *testing.T, g grid.Presence, p Pace) {
	var news []string
	stop := g.OnPresence(func(topic string, present bool) { news = append(news, fmt.Sprint(topic, present)) })
	present := func() bool { // for certain, once there was no fault for some time
		var is bool
		var err error
		p.Settle(func() bool { is, err = g.Present(t.Context(), "a"); return !errors.Is(err, grid.ErrDoubt) })
		if is, err = g.Present(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		return is
	}
	if present() {
		t.Error("somebody is there at the beginning")
	}
	leave1, _ := g.Join(t.Context(), "a")
	leave2, _ := g.Join(t.Context(), "a")
	leave1()
	leave1()
	if !present() {
		t.Error("leaving twice took the other one along")
	}
	leave2()
	if present() {
		t.Error("somebody is still there")
	}
	stop()
	leave3, _ := g.Join(t.Context(), "a")
	leave3()
	if fmt.Sprint(news) != "[atrue afalse]" {
		t.Errorf("news %v", news)
	}
}
