package grid

import (
	"context"

	"github.com/freshet-io/freshet"
)

// ErrDoubt says that nobody was found who has joined a topic, and that somebody may have.
var ErrDoubt = freshet.Errorf(freshet.Unavailable, "It is not certain whether anybody is subscribed")

// Presence answers whether anyone is subscribed to a topic, on any node.
type Presence interface {
	// Join announces that this node has a subscriber of the topic, until leave is called. Calls nest.
	Join(ctx context.Context, topic string) (leave func(), err error)

	// Present reports whether any node has joined. A no is certain; for some time after a fault it may not be, which is ErrDoubt.
	Present(ctx context.Context, topic string) (bool, error)

	// OnPresence calls fn when the first node joins a topic and when the last one left. It is a hint: after a lost
	// message only Present tells the truth. fn must not block and must not call the grid.
	OnPresence(fn func(topic string, present bool)) (stop func())
}
