package router

import (
	"sync"

	"github.com/freshet-io/freshet/internal/content"
	"github.com/freshet-io/freshet/internal/grid"
)

// carrier carries a state through the grid of this process without a detour over bytes. The state may be replaced by another form of
// the same document while the grid holds it.
type carrier struct {
	rules content.Rules

	mu    sync.Mutex
	state content.State
	prev  content.State // of an item topic, while it is being put
}

// newCarrier returns what the grid gets to carry for a state that replaces another one.
func newCarrier(rules content.Rules, state, prev content.State) grid.Content {
	if rules.IsItems() {
		return &itemsCarrier{carrier{rules: rules, state: state, prev: prev}}
	}
	return &carrier{rules: rules, state: state}
}

// carrierOf returns what carries a state through the grid, nil if it came from another node.
func carrierOf(c grid.Content) *carrier {
	if c, ok := c.(interface{ itself() *carrier }); ok {
		return c.itself()
	}
	return nil
}

// Bytes implements grid.Content.
func (c *carrier) Bytes() []byte { return c.rules.Store(c.load()) }

// Size implements grid.Sized. It is that of the folded state: the rest comes and goes, and is counted by the topic.
func (c *carrier) Size() int { return content.FoldedSize(c.load()) }

// load returns the state itself.
func (c *carrier) load() content.State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// replace replaces the state by one that says the same.
func (c *carrier) replace(state content.State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state = state
}

// arrived lets go of the state before, which is needed only on the way into the grid.
func (c *carrier) arrived() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.prev = nil
}

func (c *carrier) itself() *carrier { return c }

// itemsCarrier carries the state of an item topic, which can also be told as the step from the one before.
type itemsCarrier struct{ carrier }

// Delta implements grid.Incremental.
func (c *itemsCarrier) Delta() []byte {
	c.mu.Lock()
	prev, state := c.prev, c.state
	c.mu.Unlock()
	return c.rules.StoreDelta(prev, state)
}
