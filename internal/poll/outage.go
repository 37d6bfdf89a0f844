package poll

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
)

// outages writes failures of data sources down in the grid, for every node to see.
type outages struct {
	grid Grid
	log  *slog.Logger
}

// outage is the time in which a source fails, and what was written down about it. An outage is told once, and taken back once. It is
// owned by whoever polls.
type outage struct {
	topicID string
	since   time.Time // zero: there is none
	told    string    // the value as it was last written; empty: nothing
	fatal   bool      // as told
	looked  bool      // for what another node left behind
}

// outageSlack is how much longer a failure is told than the pause until the poll that renews it.
const outageSlack = 30 * time.Second

func (o *outage) begin(at time.Time) {
	if o.since.IsZero() {
		o.since = at
	}
}

// tell writes the failure down, for every node to see, until some time after the next poll. An outage is told once: later
// failures only renew it, except for one that ends streams after one that did not.
func (o *outage) tell(ctx context.Context, by outages, f *freshet.SourceFailure, pause time.Duration) {
	value := f.Text()
	if o.told != "" && (o.fatal || !f.Fatal) {
		value = o.told
	}
	name := freshet.SourceValue(o.topicID)
	now, err := by.grid.Swap(ctx, name, o.told, value, pause+outageSlack)
	if err == nil && now != value {
		now, err = by.grid.Swap(ctx, name, now, value, pause+outageSlack) // it expired, or another node's is still there
	}
	if err != nil || now != value {
		by.log.Warn("failure of a data source could not be told", "topic", o.topicID, "err", err) // the next failure tries again
		return
	}
	if o.told == value {
		return
	}
	o.told, o.fatal, o.looked = value, f.Fatal, true
	by.log.Info("data source fails", "topic", o.topicID, "message", f.Msg)
	o.notify(ctx, by)
}

// end takes back what was told, also by a node that polled the topic before, and logs why.
func (o *outage) end(ctx context.Context, by outages, why string) {
	o.since = time.Time{}
	name := freshet.SourceValue(o.topicID)
	if !o.looked {
		value, err := by.grid.Value(ctx, name)
		if err != nil {
			return // the next success looks again
		}
		o.told, o.looked = value, true
	}
	if o.told == "" {
		return
	}
	if _, err := by.grid.Swap(ctx, name, o.told, "", 0); err != nil {
		by.log.Warn("recovery of a data source could not be told", "topic", o.topicID, "err", err)
		return
	}
	by.log.Info(why, "topic", o.topicID)
	o.told, o.fatal = "", false
	o.notify(ctx, by)
}

func (o *outage) notify(ctx context.Context, by outages) {
	if err := by.grid.Notify(ctx, grid.Notice{Scope: grid.ScopeSource, ID: o.topicID}); err != nil {
		by.log.Warn("notice not sent", "topic", o.topicID, "err", err) // subscribers' nodes look by themselves now and then
	}
}

func asError(err error) *freshet.Error {
	e, _ := errors.AsType[*freshet.Error](err)
	return e
}
