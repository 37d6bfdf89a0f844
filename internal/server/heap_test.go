package server

import "testing"

func TestSmallHeapsGrowBeforeTheyAreCollected(t *testing.T) {
	for live, want := range map[uint64]int{
		0:         maxPercent,
		1 << 20:   maxPercent,
		16 << 20:  400,
		32 << 20:  200,
		64 << 20:  100,
		500 << 20: 100,
		8 << 30:   100,
	} {
		if got := gcPercent(live); got != want {
			t.Errorf("%d bytes live: %d %%, want %d", live, got, want)
		}
	}
}
