package main

import (
	"context"
	"errors"
	"time"
)

// idle measures subscribers to whom nothing is sent but heartbeats.
type idle struct{ subscribers int }

const idlePayload = 256

// settleMemory is how long a server is left alone before its memory without subscribers is looked at.
const settleMemory = 3 * time.Second

// earlyAfter is when memory is looked at for the first time: just after everybody is connected.
const earlyAfter = time.Second

// few is how many subscribers are there from the beginning, so that what a server sets up once, and what it does for any number
// of them, is not charged to the others.
const few = 100

func (i idle) run(ctx context.Context, b *bench, c *contender) (metrics, error) {
	var m metrics
	err := b.with(ctx, c, place{payloadLen: idlePayload, topics: 1}, func(e *endpoint) error {
		first, _, err := load{subscribers: few}.open(ctx, e)
		if err != nil {
			return err
		}
		defer first.close()
		if err := e.collectGarbage(ctx); err != nil {
			return err
		}
		if err := sleep(ctx, settleMemory); err != nil {
			return err
		}
		w := idleWatch{process: e.process}
		w.look(ctx, b.opts.idleFor/2)
		sockets := socketMemory()
		n := b.fits(i.subscribers) - few
		fleet, _, err := load{subscribers: n}.open(ctx, e)
		if err != nil {
			return err
		}
		defer fleet.close()
		w.look(ctx, earlyAfter)
		w.look(ctx, b.opts.idleFor)
		if w.err != nil {
			return w.err
		}
		before, early, late := w.seen[0], w.seen[1], w.seen[2]
		per := func(bytes int64) float64 { return float64(bytes) / 1024 / float64(n) }
		m = metrics{
			connections:    float64(n + few),
			rssEarly:       per(early.rss - before.rss),
			rssPerConn:     per(late.rss - before.rss),
			pssPerConn:     per(late.pss - before.pss),
			rssTotalMB:     float64(late.rss) / (1 << 20),
			socketPerConn:  per(socketMemory() - sockets),
			fewCPUPercent:  w.cpu[0],
			idleCPUPercent: w.cpu[2],
		}
		return nil
	})
	return m, err
}

// idleWatch looks at a server from time to time. After an error it stays as it is.
type idleWatch struct {
	process *process
	seen    []usage
	cpu     []float64 // percent of a core, over the time of each look
	err     error
}

func (w *idleWatch) look(ctx context.Context, d time.Duration) {
	begin, err := w.process.usage()
	err = errors.Join(w.err, err, sleep(ctx, d))
	end, endErr := w.process.usage()
	if w.err = errors.Join(err, endErr); w.err == nil {
		w.seen = append(w.seen, end)
		w.cpu = append(w.cpu, 100*(end.cpu-begin.cpu).Seconds()/d.Seconds())
	}
}

// connects measures how fast subscribers are taken in.
type connects struct{ subscribers int }

func (s connects) run(ctx context.Context, b *bench, c *contender) (metrics, error) {
	var m metrics
	err := b.with(ctx, c, place{payloadLen: idlePayload, topics: 1}, func(e *endpoint) error {
		warm, _, err := load{subscribers: 500}.open(ctx, e)
		if err != nil {
			return err
		}
		warm.close()
		if err := sleep(ctx, 500*time.Millisecond); err != nil {
			return err
		}
		before, err := e.process.usage()
		if err != nil {
			return err
		}
		n := b.fits(s.subscribers)
		stopProfile := b.profile(ctx, e, "connects")
		fleet, took, err := load{subscribers: n}.open(ctx, e)
		if err != nil {
			return err
		}
		defer fleet.close()
		stopProfile()
		after, err := e.process.usage()
		if err != nil {
			return err
		}
		m = metrics{
			connections:     float64(n),
			retriedConnects: float64(fleet.sum().Retried),
			connectsPerS:    float64(n) / took.Seconds(),
			cpuPerConnect:   float64((after.cpu - before.cpu).Microseconds()) / float64(n),
		}
		return nil
	})
	return m, err
}
