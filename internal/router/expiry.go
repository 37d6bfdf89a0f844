package router

import (
	"context"
	"time"

	"github.com/freshet-io/freshet/internal/content"
)

// expiryRetry is how long items that could not be taken out are left alone.
const expiryRetry = time.Second

// expiryTimer runs until the oldest item of a topic expires. It is armed at most once at a time: when it fires, whoever it calls
// arms it again for the item that is the oldest then.
type expiryTimer struct{ timer *time.Timer }

func (e *expiryTimer) isArmed() bool { return e.timer != nil }

func (e *expiryTimer) arm(after time.Duration, expire func()) {
	e.timer = time.AfterFunc(after, expire)
}

// fired makes it ready to be armed again.
func (e *expiryTimer) fired() { e.timer = nil }

func (e *expiryTimer) stop() {
	if e.timer != nil {
		e.timer.Stop()
		e.timer = nil
	}
}

// armExpiry sees to it that single items disappear when their time has come, but not before so much has passed. The caller holds t.mu.
func (t *topic) armExpiry(after time.Duration) {
	items, ok := t.log.state.(*content.Items)
	if !ok || t.router.ttl <= 0 || t.expiry.isArmed() || t.ended {
		return
	}
	if oldest, any := items.Oldest(); any {
		t.expiry.arm(max(after, oldest.Add(t.router.ttl).Sub(t.router.grid.Now())+time.Millisecond), t.expireItems)
	}
}

// expireItems takes out items that nobody published for the TTL. Several nodes may try; one wins, the others learn of it.
func (t *topic) expireItems() {
	t.sequencer.mu.Lock()
	defer t.sequencer.mu.Unlock()
	t.mu.Lock()
	t.expiry.fired()
	head := t.log.head
	t.mu.Unlock()
	items, _ := head.state.(*content.Items)
	if items == nil {
		return
	}
	after := t.putUnexpired(&head, items)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.armExpiry(after)
}

// putUnexpired puts the items that are left into the grid, and returns how long to wait at least before it is tried again. The caller
// holds t.sequencer.mu.
func (t *topic) putUnexpired(head *head, items *content.Items) (after time.Duration) {
	now := t.router.grid.Now()
	if !now.Before(head.at.Add(t.router.ttl)) {
		return expiryRetry // all of it goes, and the grid is about to say so
	}
	left := items.Expire(now.Add(-t.router.ttl))
	if left == items {
		return 0
	}
	ctx, cancel := context.WithTimeout(context.Background(), followTimeout)
	defer cancel()
	// The TTL of the whole document goes on counting from the last publication.
	doc := t.documentAfter(head, left, t.rules.Diff(items, left))
	doc.At = head.at
	if _, err := t.put(ctx, nil, head, doc); err != nil {
		t.router.log.Debug("items did not expire", "topic", t.id, "err", err)
		return expiryRetry
	}
	return 0
}
