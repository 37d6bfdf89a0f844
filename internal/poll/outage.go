package poll

import (
	"context"
	"errors"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
)

// outage is the time in which a source fails, and what was written down about it. It is owned by whoever polls.
type outage struct {
	since  time.Time // zero: there is none
	told   string    // the claim as it was last written; empty: nothing
	fatal  bool      // as told
	looked bool      // for what another node left behind
}

// claimSlack is how much longer a claim lives than the pause until the poll that renews it.
const claimSlack = 30 * time.Second

func (o *outage) begin(at time.Time) {
	if o.since.IsZero() {
		o.since = at
	}
}

// tell writes the failure down, for every node to see, until some time after the next poll. An outage is told once: later
// failures only renew it, except for one that ends streams after one that did not.
func (o *outage) tell(ctx context.Context, s *source, f *freshet.SourceFailure, pause time.Duration) {
	value := f.Text()
	if o.told != "" && (o.fatal || !f.Fatal) {
		value = o.told
	}
	name := freshet.SourceClaim(s.id)
	now, err := s.p.grid.Swap(ctx, name, o.told, value, pause+claimSlack)
	if err == nil && now != value {
		now, err = s.p.grid.Swap(ctx, name, now, value, pause+claimSlack) // it expired, or another node's is still there
	}
	if err != nil || now != value {
		s.p.log.Warn("failure of a data source could not be told", "topic", s.id, "err", err) // the next failure tries again
		return
	}
	if o.told == value {
		return
	}
	o.told, o.fatal, o.looked = value, f.Fatal, true
	s.p.log.Info("data source fails", "topic", s.id, "message", f.Msg)
	o.notify(ctx, s)
}

// end takes back what was told, also by a node that polled the topic before, and logs why.
func (o *outage) end(ctx context.Context, s *source, why string) {
	o.since = time.Time{}
	name := freshet.SourceClaim(s.id)
	if !o.looked {
		value, err := s.p.grid.Value(ctx, name)
		if err != nil {
			return // the next success looks again
		}
		o.told, o.looked = value, true
	}
	if o.told == "" {
		return
	}
	if _, err := s.p.grid.Swap(ctx, name, o.told, "", 0); err != nil {
		s.p.log.Warn("recovery of a data source could not be told", "topic", s.id, "err", err)
		return
	}
	s.p.log.Info(why, "topic", s.id)
	o.told, o.fatal = "", false
	o.notify(ctx, s)
}

func (o *outage) notify(ctx context.Context, s *source) {
	if err := s.p.grid.Notify(ctx, grid.Notice{Scope: grid.ScopeSource, ID: s.id}); err != nil {
		s.p.log.Warn("notice not sent", "topic", s.id, "err", err) // subscribers' nodes look by themselves now and then
	}
}

func asError(err error) *freshet.Error {
	e, _ := errors.AsType[*freshet.Error](err)
	return e
}
