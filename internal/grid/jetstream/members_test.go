package jetstream

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestASilentNodeIsNotWaitedForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMembers(nil, nil)
		m.peers["other"] = &peer{heard: time.Now(), names: map[string]bool{"q": true}}
		known := func(after time.Duration) (int, bool) {
			time.Sleep(after)
			all, silent := m.known("q")
			return len(all), silent
		}
		if n, silent := known(5 * time.Second); n != 1 || silent {
			t.Errorf("after five seconds %d nodes are expected to answer; there may be more: %v", n, silent)
		}
		if n, silent := known(2 * time.Second); n != 0 || !silent {
			t.Errorf("after seven seconds %d nodes are expected to answer; there may be more: %v", n, silent)
		}
		if n, silent := known(5 * time.Minute); n != 0 || silent {
			t.Errorf("after five minutes %d nodes are expected to answer; there may be more: %v", n, silent)
		}
	})
}
