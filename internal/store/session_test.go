package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/freshet-io/freshet"
)

func TestNetworksAreKnownToTheirAccountForAWhile(t *testing.T) {
	forEachStore(t, func(t *testing.T, s *Store) {
		ada, _, _ := household(t, s, "ada@example.com")
		household(t, s, "bob@example.com")
		knows := func(email, network string, since time.Time) bool {
			return must(s.KnowsNetwork(t.Context(), email, network, since))(t)
		}
		see := func(network string, at time.Time) {
			update(t, s, func(tx *Tx) error { return tx.RememberNetwork(ada.ID, network, at, at.Add(-time.Hour)) })
		}
		see("home", now)
		see("home", now.Add(time.Minute)) // again
		if !knows("ada@example.com", "home", now.Add(time.Minute)) || knows("ada@example.com", "home", now.Add(2*time.Minute)) {
			t.Error("the last time counts")
		}
		for _, email := range []string{"bob@example.com", "nobody@example.com", "a\x00b"} {
			if knows(email, "home", now) {
				t.Errorf("%s was there too", email)
			}
		}
		for i := range maxNetworks - 1 {
			see(fmt.Sprint(i), now.Add(2*time.Minute))
		}
		if !knows("ada@example.com", "home", now) {
			t.Error("forgotten while there was room")
		}
		see("one more", now.Add(3*time.Minute))
		if knows("ada@example.com", "home", now) || !knows("ada@example.com", "0", now) {
			t.Error("the oldest goes when there are too many")
		}
		see("later", now.Add(4*time.Hour))
		if knows("ada@example.com", "0", now) || !knows("ada@example.com", "later", now) {
			t.Error("what is old goes")
		}
		update(t, s, func(tx *Tx) error { return tx.DeleteUser(ada.ID) })
		if err := s.Update(t.Context(), func(tx *Tx) error { return tx.RememberNetwork(ada.ID, "x", now, now) }); freshet.KindOf(err) != freshet.NotFound {
			t.Errorf("a network of nobody: %v", err)
		}
	})
}
