package grid

import (
	"context"
	"time"
)

// Values are small named texts that disappear by themselves. A lease is one that names its holder; a publisher's idempotency
// key is one that tells the outcome; a failing data source is one that tells the failure.
type Values interface {
	// Value returns the value of name, empty if it is not set.
	Value(ctx context.Context, name string) (string, error)

	// Swap sets name to new for ttl if its value is old, and returns the value it has afterwards. The empty value
	// means "not set", so Swap(name, "", me, ttl) acquires, Swap(name, me, me, ttl) renews and
	// Swap(name, me, "", 0) releases.
	Swap(ctx context.Context, name, old, new string, ttl time.Duration) (now string, err error)
}

// Counters are sums over all nodes.
type Counters interface {
	// Add adds delta, which may be 0 or negative, and returns the sum. A counter that nobody added to for ttl is 0
	// again.
	Add(ctx context.Context, counter string, delta int64, ttl time.Duration) (sum int64, err error)

	// Spend adds 1 to a counter that is held against a limit, and returns the sum. No more than limit calls get a sum within
	// it. While the limit is far, nodes may take several at once and give back soon what they did not use.
	Spend(ctx context.Context, counter string, limit int64, ttl time.Duration) (sum int64, err error)
}
