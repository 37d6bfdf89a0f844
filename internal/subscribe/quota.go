package subscribe

import (
	"context"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
)

// edition is as an account whose connections are those of everybody.
const edition = "edition"

// editionLimit is how many subscribers all nodes together may have, and what those beyond it are told. 0 is any number.
type editionLimit struct {
	connections int64
	refusal     string
}

func (e *editionLimit) err() error { return freshet.Errorf(freshet.ConnectionLimit, "%s", e.refusal) }

// checkQuotas refuses a subscriber if the edition has no seat left, or if its account has used up its messages or its
// connections. Otherwise it has a seat.
func (r *registry) checkQuotas(ctx context.Context, grant *catalog.Grant) error {
	if r.edition.connections > 0 {
		if err := r.seats.take(ctx, edition, r.edition.connections); err != nil {
			return r.edition.err()
		}
	}
	err := r.checkAccount(ctx, grant)
	if err != nil {
		r.freeEdition()
	}
	return err
}

func (r *registry) freeEdition() {
	if r.edition.connections > 0 {
		r.seats.free(edition)
	}
}

func (r *registry) checkAccount(ctx context.Context, grant *catalog.Grant) error {
	if r.meter != nil && grant.Quotas.MessagesPerMonth > 0 && r.meter.Limit(ctx, grant.UserID, grant.Quotas.MessagesPerMonth) {
		return errSpent(time.Now())
	}
	return r.seats.take(ctx, grant.UserID, grant.Quotas.Connections)
}

// checkAgain takes over quotas that may have changed since the streams began. Too many connections are no reason to end any of
// them; messages that are used up are.
func (r *registry) checkAgain(ctx context.Context, grant *catalog.Grant) error {
	r.seats.limit(grant.UserID, grant.Quotas.Connections)
	if r.meter != nil && r.meter.Limit(ctx, grant.UserID, grant.Quotas.MessagesPerMonth) {
		return errSpent(time.Now())
	}
	return nil
}

// errSpent says until when: clients reconnect by themselves, people look.
func errSpent(now time.Time) error {
	next := freshet.Month(now).AddDate(0, 1, 0)
	return freshet.Errorf(freshet.MessageLimit, "The messages of this account are used up until %s", next.Format(time.DateOnly))
}

// noteSpent is told by the meter that an account has no messages left.
func (r *registry) noteSpent(userID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spent[userID] = struct{}{}
	r.signal()
}

// endSpent ends the streams of accounts that have no messages left.
func (r *registry) endSpent() {
	var over []*audience
	r.mu.Lock()
	for _, a := range r.audiences {
		if _, ok := r.spent[a.userID]; ok {
			over = append(over, a)
		}
	}
	clear(r.spent)
	r.mu.Unlock()
	for _, a := range over {
		r.end(a, errSpent(time.Now()))
	}
}
