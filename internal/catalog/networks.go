package catalog

import (
	"context"
	"time"

	"github.com/freshet-io/freshet/internal/store"
)

// networkMemory is how long a network is known after the last sign-in from it.
const networkMemory = 180 * 24 * time.Hour

// knowsNetwork reports whether somebody signed in to the account from the network before, or signed up from it. A store that
// cannot tell says no: it could not check a password either.
func (c *Catalog) knowsNetwork(ctx context.Context, emailKey, network string) bool {
	known, err := c.store.KnowsNetwork(ctx, emailKey, c.seals.pseudonym("network", network), c.now().Add(-networkMemory))
	return err == nil && known
}

// rememberNetwork makes the network a known one of the account. The program itself comes from none.
func (c *Catalog) rememberNetwork(tx *store.Tx, userID, network string) error {
	if network == "" {
		return nil
	}
	now := c.now()
	return tx.RememberNetwork(userID, c.seals.pseudonym("network", network), now, now.Add(-networkMemory))
}
