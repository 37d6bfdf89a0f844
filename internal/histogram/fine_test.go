package histogram

import (
	"math"
	"testing"
	"time"
)

func TestFineQuantilesAreCloseToWhatWasCounted(t *testing.T) {
	var h, other Fine
	for i := range 10_000 {
		d := time.Duration(i+1) * time.Microsecond
		if i%2 == 0 {
			h.Add(d)
		} else {
			other.Add(d)
		}
	}
	h.Merge(&other)
	for _, q := range []float64{0.01, 0.5, 0.99} {
		got, want := h.Quantile(q).Seconds(), q*10_000e-6
		if math.Abs(got-want)/want > 0.015 {
			t.Errorf("quantile %g is %g, not %g", q, got, want)
		}
	}
	if h.Count() != 10_000 || h.Max() != 10*time.Millisecond || h.Quantile(1) != h.Max() || h.Mean() != 5000500*time.Nanosecond {
		t.Errorf("%d, %v, %v, %v", h.Count(), h.Max(), h.Quantile(1), h.Mean())
	}
	h.Add(-5)
	if h.Count() != 10_001 || h.Quantile(0) != 0 {
		t.Error(h.Count(), h.Quantile(0))
	}
}

func TestFineBucketsCoverEveryDurationInOrder(t *testing.T) {
	for d := time.Duration(1); d > 0 && d < math.MaxInt64/3; d = d*3/2 + 1 {
		i := fineBucket(d)
		if fineBound(i) < d || i > 0 && fineBound(i-1) >= d {
			t.Fatalf("%d lies in bucket %d, which ends at %d", d, i, fineBound(i))
		}
	}
}
