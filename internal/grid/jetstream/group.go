package jetstream

import (
	"context"
	"sync"

	"github.com/freshet-io/freshet"
)

// group is the goroutines of a grid.
type group struct {
	ctx  context.Context // ends with close
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu     sync.Mutex
	closed bool
}

// errClosed is what calls get that come after Close.
var errClosed = freshet.Errorf(freshet.Unavailable, "The server is shutting down")

func newGroup() *group {
	g := &group{}
	g.ctx, g.stop = context.WithCancel(context.Background())
	return g
}

// spawn runs fn until it returns, which must be soon after ctx ended. It does nothing once the group is closed.
func (g *group) spawn(fn func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.wg.Go(fn)
	}
	return !g.closed
}

// close ends ctx and returns once every goroutine has returned.
func (g *group) close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.stop()
	g.wg.Wait()
}
