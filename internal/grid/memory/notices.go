package memory

import (
	"context"

	"github.com/freshet-io/freshet/internal/grid"
)

// Notices passes notices on within the process. The zero value has no listeners.
type Notices struct {
	listeners grid.Listeners[grid.Notice]
}

// Notify implements grid.Notices.
func (n *Notices) Notify(_ context.Context, notice grid.Notice) error {
	n.listeners.Tell(notice)
	return nil
}

// Tell implements grid.Notices.
func (n *Notices) Tell(notice grid.Notice) { n.listeners.Tell(notice) }

// OnNotice implements grid.Notices.
func (n *Notices) OnNotice(fn func(grid.Notice)) (stop func()) { return n.listeners.Add(fn) }
