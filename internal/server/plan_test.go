package server

import (
	"slices"
	"testing"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/settings"
)

// The grid tells of notices in the order in which parts began to listen, which is that of their stages. Whoever asks a cache again
// because of a notice must not get what it knew before.
func TestCachesHearNoticesBeforeThoseWhoAskThem(t *testing.T) {
	s := settings.Default()
	s.Data = t.TempDir()
	for _, l := range []*string{&s.Gateway.Listen, &s.Admin.Listen, &s.Subscriber.Listen} {
		*l = "127.0.0.1:0"
	}
	ports, err := bind(t.Context(), &s, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer ports.close()
	stages := plan(&Options{Settings: s, Log: quiet}, freshet.Edition{}, ports, &readiness{}, nil)
	at := func(p part) int {
		i := slices.IndexFunc(stages.all, func(s stage) bool { return s.name == string(p) })
		if i < 0 {
			t.Fatalf("there is no stage %s", p)
		}
		return i
	}
	for _, cache := range []part{partCatalog, partUsage} {
		for _, asks := range []part{partPoller, partSubscriber} {
			if at(cache) > at(asks) {
				t.Errorf("%s hears of changes before %s", asks, cache)
			}
		}
	}
}
