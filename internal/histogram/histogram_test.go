package histogram

import (
	"testing"
	"time"
)

func TestADurationIsCountedAtItsBoundAndAllAbove(t *testing.T) {
	var h Histogram
	var l Local
	h.Observe(0)
	h.Observe(100 * time.Microsecond)
	h.Observe(100*time.Microsecond + 1)
	l.Observe(200*time.Microsecond, 2)
	l.Observe(time.Hour, 1)
	l.MoveTo(&h)
	l.MoveTo(&h)
	s := h.Snapshot()
	if s.Count != 6 || s.Buckets[0.0001] != 2 || s.Buckets[0.0002] != 5 || s.Buckets[6.5536] != 5 || len(s.Buckets) != 17 {
		t.Errorf("%+v", s)
	}
	if want := time.Hour + 600*time.Microsecond + 1; s.Sum != want {
		t.Errorf("sum %v, want %v", s.Sum, want)
	}
}
