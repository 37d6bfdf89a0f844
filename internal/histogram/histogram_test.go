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

func TestAQuantileLiesWithinItsBucket(t *testing.T) {
	var c [Buckets]int64
	if got := Quantile(&c, 0.5); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
	c[Bucket(150*time.Microsecond)] = 98
	c[Bucket(3*time.Millisecond)] = 1
	c[Bucket(time.Hour)] = 1
	for q, want := range map[float64][2]time.Duration{
		0:    {100 * time.Microsecond, 100 * time.Microsecond},
		0.5:  {140 * time.Microsecond, 160 * time.Microsecond},
		0.98: {199 * time.Microsecond, 200 * time.Microsecond},
		0.99: {1600 * time.Microsecond, 3200 * time.Microsecond},
		1:    {6553600 * time.Microsecond, 6553600 * time.Microsecond},
	} {
		if got := Quantile(&c, q); got < want[0] || got > want[1] {
			t.Errorf("%v: %v, want between %v and %v", q, got, want[0], want[1])
		}
	}
	if b := Bounds(); len(b) != Buckets-1 || b[0] != first || Bucket(b[16]) != 16 || Bucket(b[16]+1) != 17 {
		t.Errorf("%v", b)
	}
}
