package jetstream

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid/natsserver"
)

// Server is one NATS server for all tests of the package; each grid has a prefix of its own.
var Server = sync.OnceValues(func() (*natsserver.Server, error) {
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
		if s, err := Server(); err == nil {
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

// NewPrefix is one that no other test has.
func NewPrefix() string { return "t" + strings.ToLower(freshet.NewID()) }

// newTestStreams connects to the server of the tests as a node that consists of nothing but streams.
func newTestStreams(t *testing.T) *streams {
	t.Helper()
	s, err := Server()
	if err != nil {
		t.Fatal(err)
	}
	opts := Options{InProcess: s, Prefix: NewPrefix(), Memory: true}.withDefaults()
	l := newLink(opts)
	t.Cleanup(func() {
		l.tasks.close()
		l.close()
	})
	if err := l.connect(t.Context(), opts, func() {}); err != nil {
		t.Fatal(err)
	}
	all := newStreams(l, opts)
	if err := all.ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	return all
}
