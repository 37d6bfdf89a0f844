package jetstream_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/grid/gridtest"
	"github.com/freshet-io/freshet/internal/grid/jetstream"
	"github.com/freshet-io/freshet/internal/grid/natsserver"
)

// server is one NATS server for all tests of the package; each grid has a prefix of its own.
var server = sync.OnceValues(func() (*natsserver.Server, error) {
	dir, err := os.MkdirTemp("", "freshet-grid-")
	if err != nil {
		return nil, err
	}
	cleanUp = append(cleanUp, func() { os.RemoveAll(dir) })
	return natsserver.Start(context.Background(), natsserver.Options{Name: "test", Dir: dir, Listen: "127.0.0.1:0"})
})

var cleanUp []func()

func TestMain(m *testing.M) {
	code := m.Run()
	if len(cleanUp) > 0 {
		if s, err := server(); err == nil {
			s.Close()
		}
	}
	for _, f := range cleanUp {
		f()
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func newPrefix() string { return "t" + strings.ToLower(freshet.NewID()) }

// open opens a grid on the server of the tests and closes it at the end.
func open(t *testing.T, opts jetstream.Options) *jetstream.Grid {
	t.Helper()
	s, err := server()
	if err != nil {
		t.Fatal(err)
	}
	if opts.URL == "" && opts.InProcess == nil {
		opts.InProcess = s
	}
	if opts.Prefix == "" {
		opts.Prefix = newPrefix()
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
