package catalog

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/freshet-io/freshet/internal/store"
)

// networkMemory is how long a network is known after the last sign-in from it.
const networkMemory = 180 * 24 * time.Hour

// knowsNetwork reports whether somebody signed in to the account from the network before, or signed up from it. A store that
// cannot tell says no: it could not check a password either.
func (c *Catalog) knowsNetwork(ctx context.Context, emailKey, network string) bool {
	known, err := c.store.KnowsNetwork(ctx, emailKey, c.hashedNetwork(network), c.now().Add(-networkMemory))
	return err == nil && known
}

// rememberNetwork makes the network a known one of the account. The program itself comes from none.
func (c *Catalog) rememberNetwork(tx *store.Tx, userID, network string) error {
	if network == "" {
		return nil
	}
	now := c.now()
	return tx.RememberNetwork(userID, c.hashedNetwork(network), now, now.Add(-networkMemory))
}

// hashedNetwork is what is stored of a network. There are few enough addresses to try them all, so the hash is keyed.
func (c *Catalog) hashedNetwork(network string) string {
	mac := hmac.New(sha256.New, c.seals.networks)
	mac.Write([]byte(network))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}
