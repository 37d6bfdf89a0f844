package poll

import (
	"context"
	"time"
)

// sweepEvery is how often hints of the grid that got lost are made good.
const sweepEvery = time.Minute

const sweepPage = 1000 // topics

// staleAfter is how old a topic of subscribers must be before a sweep deletes it: its first subscriber may be about to join.
const staleAfter = time.Minute

// sweep looks at all topics that could be polled here: after this node got more of them, and now and then.
func (p *Poller) sweep() {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		spread := takeover
		select {
		case <-p.ctx.Done():
			return
		case <-tick.C:
		case <-p.sweeps:
		}
		p.sweepOnce(p.ctx, spread)
	}
}

func (p *Poller) sweepOnce(ctx context.Context, why reason) {
	after := ""
	for {
		topics, err := p.catalog.PollerTopics(ctx, after, sweepPage)
		if err != nil {
			if ctx.Err() == nil {
				p.log.Warn("topics cannot be listed; some may not be polled for a while", "err", err)
			}
			return
		}
		for i := range topics {
			t := &topics[i]
			if p.leases.holds(shardOf(t.ID)) {
				p.review(ctx, t.ID, t.AutoProvisioned && time.Since(t.CreatedAt) > staleAfter, why)
			}
		}
		if len(topics) < sweepPage || ctx.Err() != nil {
			return
		}
		after = topics[len(topics)-1].ID
	}
}

// review compares what is done for a topic with what should be.
func (p *Poller) review(ctx context.Context, topicID string, stale bool, why reason) {
	here, err := p.grid.Present(ctx, topicID)
	if err != nil {
		return // the next sweep
	}
	s := p.source(topicID)
	switch {
	case here:
		p.arrive(topicID, why)
	case s != nil:
		s.leave()
	case stale && p.leases.holds(shardOf(topicID)):
		err := p.catalog.Retire(ctx, topicID, func(ctx context.Context) (bool, error) { return p.grid.Present(ctx, topicID) })
		if err != nil && ctx.Err() == nil {
			p.log.Warn("topic without subscribers stays for now", "topic", topicID, "err", err)
		}
	}
}
