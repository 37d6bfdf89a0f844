package subscribe

import (
	"context"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
	"github.com/freshet-io/freshet/internal/usage"
)

// edition is as an account whose connections are those of everybody.
const edition = "edition"

// editionLimit is how many subscribers all nodes together may have, and what those beyond it are told. 0 is any number.
type editionLimit struct {
	connections int64
	refusal     string
}

func (e *editionLimit) err() error { return freshet.Errorf(freshet.ConnectionLimit, "%s", e.refusal) }

// checkQuotas refuses a subscriber if the edition has no seat left, or if its account or app has used up its messages or its
// connections. Otherwise it has a seat.
func (r *registry) checkQuotas(ctx context.Context, grant *catalog.Grant) error {
	if r.edition.connections > 0 {
		if err := r.seats.take(ctx, claim{edition, edition, r.edition.connections}); err != nil {
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
	if err := r.checkMessages(ctx, grant); err != nil {
		return err
	}
	return r.seats.takeAll(ctx, claim{grant.UserID, "account", grant.Quotas.Connections}, claim{grant.AppID, "app", grant.AppQuotas.Connections})
}

func (r *registry) checkMessages(ctx context.Context, grant *catalog.Grant) error {
	if r.meter == nil {
		return nil
	}
	if of := usage.User(grant.UserID); r.meter.Limit(ctx, of, grant.Quotas.MessagesPerMonth) {
		return errSpent(of, time.Now())
	}
	if of := usage.App(grant.AppID, grant.UserID); r.meter.Limit(ctx, of, grant.AppQuotas.MessagesPerMonth) {
		return errSpent(of, time.Now())
	}
	return nil
}

// checkAgain takes over quotas that may have changed since the streams began. Too many connections are no reason to end any of
// them; messages that are used up are.
func (r *registry) checkAgain(ctx context.Context, grant *catalog.Grant) error {
	r.seats.limit(grant.UserID, grant.Quotas.Connections)
	r.seats.limit(grant.AppID, grant.AppQuotas.Connections)
	return r.checkMessages(ctx, grant)
}

// errSpent says until when: clients reconnect by themselves, people look.
func errSpent(of usage.Owner, now time.Time) error {
	next, noun := freshet.Month(now).AddDate(0, 1, 0), "account"
	if of.IsApp() {
		noun = "app"
	}
	return freshet.Errorf(freshet.MessageLimit, "The messages of this %s are used up until %s", noun, next.Format(time.DateOnly))
}

// noteSpent is told by the meter that an account or an app has no messages left.
func (r *registry) noteSpent(of usage.Owner) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spent[of] = struct{}{}
	r.signal()
}

// endSpent ends the streams of accounts and apps that have no messages left.
func (r *registry) endSpent() {
	over := make(map[*audience]usage.Owner)
	r.mu.Lock()
	if len(r.spent) > 0 {
		for _, a := range r.audiences {
			for _, of := range []usage.Owner{usage.User(a.userID), usage.App(a.appID, a.userID)} {
				if _, ok := r.spent[of]; ok {
					over[a] = of
				}
			}
		}
	}
	clear(r.spent)
	r.mu.Unlock()
	for a, of := range over {
		r.end(a, errSpent(of, time.Now()))
	}
}
