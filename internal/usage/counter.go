package usage

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/histogram"
)

// Counter counts the deliveries of one place for somebody who delivers often.
type Counter struct {
	meter *Meter
	place Place

	messages, bytes, full atomic.Int64
	lags                  [histogram.Buckets]atomic.Uint32 // read out too often to overflow
	dirty                 atomic.Bool                      // in Meter.dirty

	mu        sync.Mutex
	open      int64         // subscribers now; guarded by mu
	since     time.Time     // until when connected counts; guarded by mu
	connected time.Duration // not read out yet; guarded by mu
}

// Counter returns a counter for the place. Close it after use.
func (m *Meter) Counter(at Place) *Counter {
	c := &Counter{meter: m, place: at, since: time.Now()}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.live[c] = struct{}{}
	return c
}

// Sent counts deliveries. It does not block.
func (c *Counter) Sent(messages, bytes, full int64) {
	c.messages.Add(messages)
	c.bytes.Add(bytes)
	c.full.Add(full)
	c.mark()
}

// Late counts how long some of the deliveries took. It does not block.
func (c *Counter) Late(took time.Duration, messages int64) {
	c.lags[histogram.Bucket(took)].Add(uint32(messages))
	c.mark()
}

// mark has the counter read out soon.
func (c *Counter) mark() {
	if c.dirty.Load() {
		return
	}
	if c.dirty.CompareAndSwap(false, true) {
		c.meter.mu.Lock()
		defer c.meter.mu.Unlock()
		c.meter.dirty = append(c.meter.dirty, c)
	}
}

// Connect counts subscribers that came, or went.
func (c *Counter) Connect(delta int64) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance(now)
	c.open += delta
}

// advance counts connected time up to now. The caller holds mu.
func (c *Counter) advance(now time.Time) {
	if d := now.Sub(c.since); d > 0 {
		c.connected += time.Duration(c.open) * d
		c.since = now
	}
}

// Close ends the counter. What it counted is kept.
func (c *Counter) Close() {
	m := c.meter
	m.folding.Lock()
	defer m.folding.Unlock()
	c.readOut(time.Now(), hourOf(time.Now()))
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.live, c)
}

// fold reads out the counters: those with deliveries, and all of them when an hour ends or connected time is asked for.
func (m *Meter) fold(now time.Time) {
	m.folding.Lock()
	defer m.folding.Unlock()
	if last := hourOf(m.folded); hourOf(now).After(last) {
		m.readAll(last.Add(time.Hour), last)
	}
	m.folded = now
	m.mu.Lock()
	dirty := m.dirty
	m.dirty = nil
	m.mu.Unlock()
	for _, c := range dirty {
		c.dirty.Store(false) // before it is read: what comes later must be seen again
		c.readSent(hourOf(now))
	}
}

// foldAll reads out everything.
func (m *Meter) foldAll(now time.Time) {
	m.fold(now)
	m.folding.Lock()
	defer m.folding.Unlock()
	m.readAll(now, hourOf(now))
}

// readAll counts up to until, within the hour. The caller holds folding.
func (m *Meter) readAll(until, hour time.Time) {
	m.mu.Lock()
	all := make([]*Counter, 0, len(m.live))
	for c := range m.live {
		all = append(all, c)
	}
	m.mu.Unlock()
	for _, c := range all {
		c.readOut(until, hour)
	}
}

// readOut moves everything to the hour's sums. The caller holds folding.
func (c *Counter) readOut(until, hour time.Time) {
	c.mu.Lock()
	c.advance(until)
	connected := c.connected.Truncate(time.Millisecond) // what the store keeps
	c.connected -= connected
	c.mu.Unlock()
	if connected > 0 {
		c.meter.bins.add(c.place, hour, freshet.Usage{Connected: connected})
	}
	c.readSent(hour)
}

// readSent moves deliveries to the hour's sums. The caller holds folding.
func (c *Counter) readSent(hour time.Time) {
	u := freshet.Usage{Messages: c.messages.Swap(0), Bytes: c.bytes.Swap(0), FullBytes: c.full.Swap(0)}
	for i := range c.lags {
		if c.lags[i].Load() > 0 {
			u.Lag[i] = int64(c.lags[i].Swap(0))
		}
	}
	if u == (freshet.Usage{}) {
		return
	}
	c.meter.bins.add(c.place, hour, u)
	c.meter.charge(c.place, u.Messages, hour)
}
