package poll

import (
	"context"
	"encoding/json"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/freshet-io/freshet"
)

// leases decides which shards this node polls. The right to a shard is a value in the grid, so two nodes never have it at the
// same time; which node asks for which follows from the nodes that are alive, so that each has its part.
//
// A node that dies is succeeded when its values run out. One that was asleep longer than that finds its leases over before
// it does anything: they end by its own clock, counted from before they were renewed. So whoever begins a source, asks a target or
// publishes an answer looks first whether the lease holds.
type leases struct {
	p     *Poller
	me    string
	start time.Time

	// Owned by whoever runs a round.
	beat uint64
	seen map[string]sighting // of the other nodes
}

// sighting is the last sign of life of a node.
type sighting struct {
	beat uint64
	at   time.Time
}

// A lease lasts leaseTime and is renewed every leaseRound: a node that dies is succeeded within leaseTime + 2 leaseRounds.
const (
	leaseTime = 3 * time.Second
	// leaseMargin is how much earlier than its value a lease ends for its holder: what was started just before takes a moment.
	leaseMargin = 250 * time.Millisecond
	leaseRound  = 750 * time.Millisecond
	nodesTTL    = time.Minute
	nodesValue  = "poll/nodes"
)

func shardValue(n int) string { return "poll/" + strconv.Itoa(n) }

func newLeases(p *Poller) *leases {
	return &leases{p: p, me: freshet.NewID(), start: time.Now(), seen: make(map[string]sighting)}
}

// holds reports whether the shard is ours now.
func (l *leases) holds(shard int) bool {
	until := l.p.shards[shard].until.Load()
	if until == nil {
		return false
	}
	now := time.Now()
	// By both clocks: the one that cannot be set does not run while the machine sleeps.
	return now.Before(*until) && now.Round(0).Before(until.Round(0))
}

// endLease returns whether there was one.
func (sh *shard) endLease() bool { return sh.until.Swap(nil) != nil }

func (l *leases) run() {
	tick := time.NewTicker(leaseRound)
	defer tick.Stop()
	for {
		select {
		case <-l.p.ctx.Done():
			return
		case <-tick.C:
			l.round(l.p.ctx)
		}
	}
}

// round renews, takes and gives back leases.
func (l *leases) round(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, leaseTime)
	defer cancel()
	nodes, err := l.meet(ctx)
	if err != nil {
		l.p.log.Warn("pollers of other nodes cannot be asked for", "err", err) // leases are still renewed
	}
	gained := false
	for n := range l.p.shards {
		had := l.p.shards[n].until.Load() != nil
		mine := err != nil && had || err == nil && l.chosen(n, nodes)
		switch {
		case mine:
			gained = l.take(ctx, n) || gained
		case had:
			l.give(ctx, n)
		}
	}
	if gained {
		select {
		case l.p.sweeps <- struct{}{}:
		default:
		}
	}
}

// take renews a lease, or acquires it if it is free. It reports whether it was acquired.
func (l *leases) take(ctx context.Context, n int) (acquired bool) {
	before := time.Now()
	now, err := l.p.grid.Swap(ctx, shardValue(n), l.me, l.me, leaseTime)
	if err != nil {
		if !l.holds(n) { // otherwise what is left of the lease still holds
			l.lose(n)
		}
		return false
	}
	if now != l.me {
		l.lose(n) // others may have polled meanwhile, so it begins anew even if it is free again
		before = time.Now()
		if now == "" {
			now, err = l.p.grid.Swap(ctx, shardValue(n), "", l.me, leaseTime)
		}
		if err != nil || now != l.me {
			return false
		}
	}
	until := before.Add(leaseTime - leaseMargin)
	return l.p.shards[n].until.Swap(&until) == nil
}

// lose stops what needs the lease.
func (l *leases) lose(n int) {
	if l.p.shards[n].endLease() {
		l.p.dropShard(n)
	}
}

// give lets another node have the shard: first we stop, then it may begin.
func (l *leases) give(ctx context.Context, n int) {
	l.lose(n)
	_, _ = l.p.grid.Swap(ctx, shardValue(n), l.me, "", 0) // otherwise it runs out
}

// release gives everything back at the end.
func (l *leases) release() {
	ctx, cancel := context.WithTimeout(context.Background(), leaseTime)
	defer cancel()
	for n := range l.p.shards {
		if l.p.shards[n].endLease() {
			_, _ = l.p.grid.Swap(ctx, shardValue(n), l.me, "", 0)
		}
	}
	_, _ = l.exchange(ctx, func(nodes map[string]uint64) { delete(nodes, l.me) })
}

// meet shows the others that this node is alive, and returns those that are.
func (l *leases) meet(ctx context.Context) ([]string, error) {
	l.beat++
	nodes, err := l.exchange(ctx, func(nodes map[string]uint64) {
		now := time.Now()
		for name, beat := range nodes {
			if last, known := l.seen[name]; !known || last.beat != beat {
				l.seen[name] = sighting{beat, now}
			} else if now.Sub(last.at) > leaseTime {
				delete(nodes, name)
				delete(l.seen, name)
			}
		}
		nodes[l.me] = l.beat
	})
	names := make([]string, 0, len(nodes))
	for name := range nodes {
		names = append(names, name)
	}
	return names, err
}

// exchange changes the list of nodes, against whoever does the same.
func (l *leases) exchange(ctx context.Context, change func(map[string]uint64)) (map[string]uint64, error) {
	const attempts = 20
	before, err := l.p.grid.Value(ctx, nodesValue)
	for range attempts {
		if err != nil {
			return nil, err
		}
		nodes := map[string]uint64{}
		_ = json.Unmarshal([]byte(before), &nodes) // what cannot be read is written anew
		if nodes == nil {
			nodes = map[string]uint64{}
		}
		change(nodes)
		text, encodeErr := json.Marshal(nodes)
		if encodeErr != nil {
			return nil, encodeErr
		}
		wanted := string(text)
		var now string
		if now, err = l.p.grid.Swap(ctx, nodesValue, before, wanted, nodesTTL); now == wanted && err == nil {
			return nodes, nil
		}
		before = now
	}
	return nil, freshet.Errorf(freshet.Unavailable, "too many nodes change the list of pollers at once")
}

// chosen reports whether the shard shall be ours: each node draws a number for it, the highest wins, and so only the shards
// of a node that comes or goes change hands.
func (l *leases) chosen(n int, nodes []string) bool {
	var best uint64
	winner := ""
	for _, name := range nodes {
		h := fnv.New64a()
		_, _ = h.Write([]byte(strconv.Itoa(n) + " " + name))
		// The last bytes decide too little in this hash; mix them through.
		score := h.Sum64() * 0x9e3779b97f4a7c15
		score ^= score >> 32
		if winner == "" || score > best || score == best && name > winner {
			best, winner = score, name
		}
	}
	return winner == l.me
}
