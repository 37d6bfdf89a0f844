package jetstream_test

import (
	"testing"
	"time"

	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/grid/gridtest"
	"github.com/freshet-io/freshet/internal/grid/jetstream"
)

// open opens a grid on the server of the tests and closes it at the end.
func open(t *testing.T, opts jetstream.Options) *jetstream.Grid {
	t.Helper()
	s, err := jetstream.Server()
	if err != nil {
		t.Fatal(err)
	}
	if opts.URL == "" && opts.InProcess == nil {
		opts.InProcess = s
	}
	if opts.Prefix == "" {
		opts.Prefix = jetstream.NewPrefix()
	}
	g, err := jetstream.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	return g
}

func TestContract(t *testing.T) {
	gridtest.Run(t, gridtest.Engine[grid.Grid]{Open: func(t *testing.T, ttl time.Duration) grid.Grid {
		return open(t, jetstream.Options{MessageTTL: ttl})
	}})
}
