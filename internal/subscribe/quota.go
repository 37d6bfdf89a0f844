package subscribe

import (
	"context"
	"sync/atomic"
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
	message     string
}

func (e *editionLimit) err() error { return freshet.Errorf(freshet.ConnectionLimit, "%s", e.message) }

func (e *editionLimit) seat() ownerLimit { return ownerLimit{edition, edition, e.connections} }

// quotas decide whether there is room for one more subscriber: in the edition, and in its account and its app. Whoever entered must leave
// again; whoever was refused left nothing behind.
type quotas struct {
	edition editionLimit
	seats   *seats
	meter   *usage.Meter // nil: nobody counts messages

	connections atomic.Int64 // of this node
}

// enter counts a subscriber in, or refuses it.
func (q *quotas) enter(ctx context.Context, grant *catalog.Grant) error {
	if err := q.enterNode(ctx); err != nil {
		return err
	}
	err := q.enterEdition(ctx, grant)
	if err != nil {
		q.connections.Add(-1)
	}
	return err
}

// enterNow counts a subscriber in if nothing limits it. It returns false, and has done nothing, otherwise: that may take time.
func (q *quotas) enterNow(userID, appID string) bool {
	if q.edition.connections > 0 || !q.seats.takeFree(userID, appID) {
		return false
	}
	q.connections.Add(1)
	return true
}

// leave counts a subscriber out. It does not block.
func (q *quotas) leave(userID, appID string) {
	q.seats.free(userID)
	q.seats.free(appID)
	q.connections.Add(-1) // now: whoever sees that somebody went finds the seats free
	q.freeEdition()       // after that: whoever waits for it finds that somebody went
}

// enterNode refuses a subscriber if this node alone has too many: whoever is let in has the other nodes asked as well. It waits like
// those who are refused there.
func (q *quotas) enterNode(ctx context.Context) error {
	in := false
	q.seats.retry(ctx, q.edition.seat(), func() bool { in = q.countIn(); return in })
	if !in {
		return q.edition.err()
	}
	return nil
}

// countIn counts first, which makes the limit exact under any number of arrivals.
func (q *quotas) countIn() bool {
	if n := q.connections.Add(1); q.edition.connections > 0 && n > q.edition.connections {
		q.connections.Add(-1)
		return false
	}
	return true
}

// enterEdition refuses a subscriber if the edition has no seat left, or if its account or app has used up its messages or its
// connections. Otherwise it has a seat.
func (q *quotas) enterEdition(ctx context.Context, grant *catalog.Grant) error {
	if q.edition.connections > 0 {
		if err := q.seats.take(ctx, q.edition.seat()); err != nil {
			return q.edition.err()
		}
	}
	err := q.enterAccount(ctx, grant)
	if err != nil {
		q.freeEdition()
	}
	return err
}

func (q *quotas) freeEdition() {
	if q.edition.connections > 0 {
		q.seats.free(edition)
	}
}

func (q *quotas) enterAccount(ctx context.Context, grant *catalog.Grant) error {
	if err := q.checkMessages(ctx, grant); err != nil {
		return err
	}
	return q.seats.takeAll(ctx, ownerLimit{grant.UserID, "account", grant.Quotas.Connections}, ownerLimit{grant.AppID, "app", grant.AppQuotas.Connections})
}

func (q *quotas) checkMessages(ctx context.Context, grant *catalog.Grant) error {
	if q.meter == nil {
		return nil
	}
	if of := usage.User(grant.UserID); q.meter.Limit(ctx, of, grant.Quotas.MessagesPerMonth) {
		return errSpent(of, time.Now())
	}
	if of := usage.App(grant.AppID, grant.UserID); q.meter.Limit(ctx, of, grant.AppQuotas.MessagesPerMonth) {
		return errSpent(of, time.Now())
	}
	return nil
}

// recheck takes over quotas that may have changed since the streams began. Too many connections are no reason to end any of
// them; messages that are used up are.
func (q *quotas) recheck(ctx context.Context, grant *catalog.Grant) error {
	q.seats.limit(grant.UserID, grant.Quotas.Connections)
	q.seats.limit(grant.AppID, grant.AppQuotas.Connections)
	return q.checkMessages(ctx, grant)
}

// errSpent says until when: clients reconnect by themselves, people look.
func errSpent(of usage.Owner, now time.Time) error {
	next, noun := freshet.Month(now).AddDate(0, 1, 0), "account"
	if of.IsApp() {
		noun = "app"
	}
	return freshet.Errorf(freshet.MessageLimit, "The messages of this %s are used up until %s", noun, next.Format(time.DateOnly))
}
