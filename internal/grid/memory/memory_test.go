package memory

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/grid/gridtest"
)

func TestContract(t *testing.T) {
	gridtest.Run(t, gridtest.Engine[grid.Grid]{InBubble: true, Open: func(t *testing.T, ttl time.Duration) grid.Grid {
		g := New(Options{MessageTTL: ttl})
		t.Cleanup(func() { g.Close() })
		return g
	}})
}

func TestWhatExpiredTakesNoMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var v Values
		for i := range 10_000 {
			v.Swap(t.Context(), fmt.Sprint("name", i), "", "x", time.Second)
			time.Sleep(10 * time.Millisecond)
		}
		if n := len(v.texts.all); n > 2048 {
			t.Errorf("%d values are kept of which 100 are alive", n)
		}
	})
}
