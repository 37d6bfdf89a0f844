package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// load is one server under one stream of publications.
type load struct {
	subscribers int // of all topics together
	topics      int // 0: one
	payloadLen  int
	deliveries  float64 // per second; 0: as many as it can
	compress    bool
	profile     string // what to call the profile, if one is taken

	// Instead of a window: so many publications, with something beside them; meanwhile, if it is set, is called once the percentiles count,
	// may change the window, and ends with its context.
	publications int64
	beside       func(context.Context, *endpoint) (after func() error, err error)
	meanwhile    func(context.Context, *endpoint, *fleet) error
}

const (
	connectParallel = 200
	connectTimeout  = 2 * time.Minute
	settleTimeout   = 20 * time.Second
	lossyTimeout    = 5 * time.Second
	sampled         = 4 // subscribers that check every byte
	quietFor        = 500 * time.Millisecond
)

// run measures one load on a fresh server.
func (l load) run(ctx context.Context, b *bench, c *contender) (metrics, error) {
	var m metrics
	err := b.with(ctx, c, place{payloadLen: l.payloadLen, topics: max(l.topics, 1)}, func(e *endpoint) (err error) {
		m, err = l.measure(ctx, b, c, e)
		return err
	})
	return m, err
}

func (l load) open(ctx context.Context, e *endpoint) (*fleet, time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	opts := fleetOptions{address: e.subscribe, size: l.subscribers, parallel: connectParallel}
	for _, t := range e.topics {
		if l.compress {
			t.request = t.compress
		}
		opts.requests = append(opts.requests, t.request)
	}
	if e.document != nil {
		opts.witnesses = sampled
	}
	if e.parallel > 0 {
		opts.parallel = e.parallel
	}
	return openFleet(ctx, opts)
}

func (l load) measure(ctx context.Context, b *bench, c *contender, e *endpoint) (metrics, error) {
	fleet, _, err := l.open(ctx, e)
	if err != nil {
		return nil, err
	}
	closed := false
	defer func() {
		if !closed {
			fleet.close()
		}
	}()
	var after func() error
	if l.beside != nil {
		if after, err = l.beside(ctx, e); err != nil {
			return nil, err
		}
	}
	payloads := newPayloads(l.payloadLen)
	p := &publishing{to: e, payloads: payloads, inFlight: b.opts.inFlight, rate: l.deliveries / l.perPublication(), limit: l.publications}
	p.start(ctx)
	m, err := l.observe(ctx, b, e, fleet, p)
	acked, publishErr := p.wait()
	if err = errors.Join(err, publishErr); err != nil {
		return nil, err
	}
	patience := settleTimeout
	if c.lossy {
		patience = lossyTimeout
	}
	if err := l.settle(ctx, e, fleet, payloads, patience); err != nil && (!c.lossy || ctx.Err() != nil) {
		return nil, fmt.Errorf("%w (%d publications were acknowledged)", err, acked)
	}
	if after != nil {
		if err := after(); err != nil {
			return nil, err
		}
	}
	s := fleet.sum()
	closed = true
	fleet.close()
	if s.Disorder+s.Malformed+s.Closed > 0 {
		return nil, fmt.Errorf("%d events out of order, %d malformed, %d subscribers closed", s.Disorder, s.Malformed, s.Closed)
	}
	if err := l.check(fleet, e, payloads); err != nil {
		return nil, err
	}
	l.conclude(m, fleet, acked, s)
	return m, nil
}

// observe reads the counters at both ends of the window.
func (l load) observe(ctx context.Context, b *bench, e *endpoint, fleet *fleet, p *publishing) (metrics, error) {
	if err := sleep(ctx, b.opts.warmUp); err != nil {
		return nil, err
	}
	if err := l.settleMemory(ctx, e); err != nil {
		return nil, err
	}
	before, err := e.process.usage()
	if err != nil {
		return nil, err
	}
	start, seen, acked := time.Now(), fleet.sum(), p.acked.Load()
	fleet.window.Store(1)
	if l.publications > 0 {
		err = l.awaitPublications(ctx, e, fleet, p)
	} else {
		stopProfile := b.profile(ctx, e, l.profile)
		err = sleep(ctx, b.opts.window)
		stopProfile()
	}
	fleet.window.Store(0)
	err = errors.Join(err, l.settleMemory(ctx, e))
	after, usageErr := e.process.usage()
	took, seenNow, ackedNow := time.Since(start).Seconds(), fleet.sum(), p.acked.Load()
	events := float64(seenNow.Events - seen.Events)
	if err = errors.Join(err, usageErr); err != nil {
		return nil, err
	}
	if events == 0 {
		return nil, errors.New("nothing was delivered")
	}
	return metrics{
		cpuPerMillion:   (after.cpu - before.cpu).Seconds() / events * 1e6,
		deliveriesPerS:  events / took,
		publicationsS:   float64(ackedNow-acked) / took,
		bytesPerEvent:   float64(seenNow.Bytes-seen.Bytes) / events,
		cpuCores:        (after.cpu - before.cpu).Seconds() / took,
		rssGrowthMB:     float64(after.rss-before.rss) / (1 << 20),
		socketMemoryMB:  float64(socketMemory()) / (1 << 20),
		generatorWindow: took,
	}, nil
}

// awaitPublications returns when all of them are acknowledged.
func (l load) awaitPublications(ctx context.Context, e *endpoint, fleet *fleet, p *publishing) (err error) {
	if l.meanwhile != nil {
		ctx, cancel := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() { done <- l.meanwhile(ctx, e, fleet) }()
		defer func() {
			cancel()
			err = errors.Join(err, <-done)
		}()
	}
	for p.acked.Load() < l.publications/int64(p.inFlight)*int64(p.inFlight) && p.failed() == nil && err == nil {
		err = sleep(ctx, 10*time.Millisecond)
	}
	return err
}

// settleMemory makes memory comparable before and after a number of publications: a garbage collector's mood is many times what one
// subscriber may cost. Loads with a window are not disturbed by it.
func (l load) settleMemory(ctx context.Context, e *endpoint) error {
	if l.publications == 0 {
		return nil
	}
	if err := e.collectGarbage(ctx); err != nil {
		return err
	}
	return sleep(ctx, settleMemory)
}

// settle publishes once more and waits until everybody has it.
func (l load) settle(ctx context.Context, e *endpoint, fleet *fleet, payloads *payloads, patience time.Duration) error {
	fleet.final.Store(1)
	if err := publishFinal(ctx, e, payloads, 1); err != nil {
		return fmt.Errorf("last publication: %w", err)
	}
	deadline := time.Now().Add(patience)
	quietSince, bytes := time.Now(), fleet.sum().Bytes
	for {
		s := fleet.sum()
		if s.Bytes != bytes {
			quietSince, bytes = time.Now(), s.Bytes
		}
		switch {
		case s.Finals == int64(l.subscribers), l.compress && time.Since(quietSince) > quietFor:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("%d of %d subscribers have the last publication %v after it was acknowledged; %d were closed", s.Finals, l.subscribers, patience, s.Closed)
		}
		if err := sleep(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}

// check asks the sampled subscribers.
func (l load) check(fleet *fleet, e *endpoint, payloads *payloads) error {
	for _, w := range fleet.witnesses() {
		err := w.stats.Err
		if err == nil {
			last, _, _ := lastMark(w.doc["live"])
			err = w.holds(e.document(payloads.append(nil, mark{finalPublisher, 1, last.at})))
		}
		if err != nil {
			return fmt.Errorf("a sampled subscriber, after %d events: %w", w.stats.Events, err)
		}
	}
	return nil
}

func (l load) conclude(m metrics, fleet *fleet, acked int64, s tally) {
	m[missedPercent] = 100 * (1 - float64(s.Events)/(float64(acked)*l.perPublication()))
	m[retriedConnects] = float64(s.Retried)
	if l.compress {
		m[missedPercent] = 0 // the first and the last event are counted too
	}
	if h := fleet.latencies(1); h.Count() > 0 {
		m[p50ms] = milliseconds(h.Quantile(0.5))
		m[p99ms] = milliseconds(h.Quantile(0.99))
	}
	if h := fleet.latencies(2); h.Count() > 0 {
		m[otherP99ms] = milliseconds(h.Quantile(0.99))
	}
}

// perPublication is how many subscribers a publication is delivered to.
func (l load) perPublication() float64 { return float64(l.subscribers) / float64(max(l.topics, 1)) }

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
