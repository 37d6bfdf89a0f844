package fanout

import (
	"testing"
	"time"
)

// TestACrowdOfHeartbeatsSpreadsOut: those who were written to at once get their first heartbeats a little early, none late, and
// in the end all of them at the full distance and never many together.
func TestACrowdOfHeartbeatsSpreadsOut(t *testing.T) {
	const crowd, rounds = 10_000, 40
	began := time.Now()
	w := newHeartbeats(10*time.Second, began)
	for range crowd {
		w.schedule(new(conn))
	}
	w.advance(began) // nothing is due yet
	last := uint32(rounds * beatTicks)
	beats := 0
	for tick := uint32(1); tick <= last; tick++ {
		w.advance(began.Add(time.Duration(tick) * w.every))
		together := 0
		for some := w.take(sliceLen); len(some) > 0; some = w.take(sliceLen) {
			for _, c := range some {
				gap := tick - c.written
				if gap < beatTicks-beatSpread || gap > beatTicks {
					t.Fatalf("a heartbeat after %d ticks", gap)
				}
				if tick > last-beatTicks && gap != beatTicks {
					t.Fatalf("one who is spread out gets a heartbeat after %d ticks", gap)
				}
				w.wrote(c)
				w.schedule(c)
				together++
			}
		}
		beats += together
		if tick > last-beatTicks && together > crowd/8 {
			t.Errorf("%d of %d together", together, crowd)
		}
	}
	if beats < crowd*(rounds-1) {
		t.Errorf("%d heartbeats for %d in %d rounds", beats, crowd, rounds)
	}
}
