package main

import (
	"context"
	"fmt"
	"strings"
)

// scenario is one question that is put to several servers.
type scenario struct {
	id    string
	title string
	quick bool // part of the quick run
	once  bool // not repeated: it takes long, or compares within itself
	who   func(*contender) bool
	run   func(context.Context, *bench, *contender) (metrics, error)
}

func everybody(c *contender) bool    { return !c.silent }
func productsIdle(c *contender) bool { return !c.limit || c.silent }
func productsPlus(c *contender) bool { return !c.limit || c.name == limitOfFigures }
func withTopics(c *contender) bool   { return !c.limit && !c.lossy }
func onlyFreshet(c *contender) bool  { return c.patches }

// scenarios are in the order in which they run.
func scenarios(b *bench) []scenario {
	return []scenario{
		{id: "sat1k", title: "1,000 subscribers, 256 B, saturated", quick: true, who: everybody,
			run: load{subscribers: 1000, payloadLen: 256, profile: "sat1k"}.run},
		{id: "sat10k", title: "10,000 subscribers, 256 B, saturated", who: everybody,
			run: load{subscribers: 10_000, payloadLen: 256, profile: "sat10k"}.run},
		{id: "fixed", title: "1,000 subscribers, 256 B, 100,000 deliveries/s", quick: true, who: everybody,
			run: load{subscribers: 1000, payloadLen: 256, deliveries: 100_000, profile: "fixed"}.run},
		{id: "large", title: "100 subscribers, 4 KiB, saturated", quick: true, who: everybody,
			run: load{subscribers: 100, payloadLen: 4096, profile: "large"}.run},
		{id: "many", title: "100 topics with 50 subscribers each, 256 B, 50,000 deliveries/s", who: withTopics,
			run: load{subscribers: 5000, topics: 100, payloadLen: 256, deliveries: 50_000, profile: "many"}.run},
		{id: "connects", title: "connects per second", quick: true, who: productsPlus, run: connects{5000}.run},
		{id: "compress", title: "compression on and off, 2,000 subscribers, 100,000 deliveries/s", who: onlyFreshet, run: compression},
		{id: "idle", title: "idle subscribers with heartbeats", once: true, who: productsIdle, run: idle{b.opts.idle}.run},
		{id: "slow", title: "one subscriber at 1 KB/s beside 500", once: true, who: onlyFreshet,
			run: slow{subscribers: 500, publications: 10_000, perSecond: 200}.run},
	}
}

// compression measures both ways one after the other, so that they share the machine's mood.
func compression(ctx context.Context, b *bench, c *contender) (metrics, error) {
	l := load{subscribers: 2000, payloadLen: 256, deliveries: 100_000}
	plain, err := l.run(ctx, b, c)
	if err != nil {
		return nil, err
	}
	l.compress, l.profile = true, "compress"
	compressed, err := l.run(ctx, b, c)
	if err != nil {
		return nil, err
	}
	return metrics{
		cpuPlain:        plain[cpuPerMillion],
		cpuCompressed:   compressed[cpuPerMillion],
		bytesPerEvent:   plain[bytesPerEvent],
		bytesCompressed: compressed[bytesPerEvent],
		compressRatio:   compressed[cpuPerMillion] / plain[cpuPerMillion],
	}, nil
}

// selected applies the flags -quick, -only and -servers.
func selected(b *bench) ([]scenario, []*contender, error) {
	var chosen []scenario
	for _, s := range scenarios(b) {
		if wanted(b.opts.only, s.id) && (b.opts.only != "" || !b.opts.quick || s.quick) {
			chosen = append(chosen, s)
		}
	}
	var servers []*contender
	for _, c := range contenders {
		if !wanted(b.opts.servers, c.name) || b.opts.quick && b.opts.servers == "" && c.lossy { // its failures take long
			continue
		}
		if c.ready != nil {
			if err := c.ready(b); err != nil {
				if c.patches {
					return nil, nil, err
				}
				b.say("%s is left out: %v", c.name, err)
				continue
			}
		}
		servers = append(servers, c)
	}
	if len(chosen) == 0 || len(servers) == 0 {
		return nil, nil, fmt.Errorf("nothing to measure: no scenario is called %q, or no server is called %q", b.opts.only, b.opts.servers)
	}
	return chosen, servers, nil
}

// wanted reports whether a list of words, separated by commas, is empty or one of its words begins the name.
func wanted(list, name string) bool {
	if list == "" {
		return true
	}
	for word := range strings.SplitSeq(strings.ToLower(list), ",") {
		if word != "" && strings.HasPrefix(strings.ToLower(name), word) {
			return true
		}
	}
	return false
}

func (r *report) add(s scenario, c *contender, runs []metrics) {
	r.addServer(s.id, s.title, server{Name: c.name, Limit: c.limit, Median: median(runs), Runs: runs})
}

func (r *report) failed(s scenario, c *contender, err error) {
	r.addServer(s.id, s.title, server{Name: c.name, Limit: c.limit, Failure: err.Error()})
}
