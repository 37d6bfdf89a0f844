package grid

import (
	"context"
	"sync"
	"time"
)

// listeners calls functions in the goroutine of whoever has news.
type listeners[T any] struct {
	mu  sync.RWMutex // held for reading during calls, so that stop waits for them
	fns map[*func(T)]struct{}
}

func (l *listeners[T]) add(fn func(T)) (stop func()) {
	key := &fn
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fns == nil {
		l.fns = make(map[*func(T)]struct{})
	}
	l.fns[key] = struct{}{}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.fns, key)
	}
}

func (l *listeners[T]) tell(news T) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for fn := range l.fns {
		(*fn)(news)
	}
}

// Notify implements Notices.
func (m *Memory) Notify(_ context.Context, n Notice) error {
	m.notices.tell(n)
	return nil
}

// Tell implements Notices.
func (m *Memory) Tell(n Notice) { m.notices.tell(n) }

// OnNotice implements Notices.
func (m *Memory) OnNotice(fn func(Notice)) (stop func()) { return m.notices.add(fn) }

type presence struct {
	mu     sync.Mutex // held while listeners are called: that keeps "came" and "left" in order
	joined map[string]int
	fns    listeners[presenceNews]
}

type presenceNews struct {
	topic   string
	present bool
}

// Join implements Presence.
func (m *Memory) Join(_ context.Context, topic string) (leave func(), err error) {
	p := &m.presence
	p.add(topic, 1)
	return sync.OnceFunc(func() { p.add(topic, -1) }), nil
}

func (p *presence) add(topic string, delta int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.joined[topic]
	now := before + delta
	if now == 0 {
		delete(p.joined, topic)
	} else {
		p.joined[topic] = now
	}
	if before == 0 || now == 0 {
		p.fns.tell(presenceNews{topic, now > 0})
	}
}

// Present implements Presence.
func (m *Memory) Present(_ context.Context, topic string) (bool, error) {
	p := &m.presence
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.joined[topic] > 0, nil
}

// OnPresence implements Presence.
func (m *Memory) OnPresence(fn func(topic string, present bool)) (stop func()) {
	return m.presence.fns.add(func(n presenceNews) { fn(n.topic, n.present) })
}

// values holds claims and counters. Expired ones are swept while others are added, so that nothing runs for them.
type values struct {
	mu       sync.Mutex
	claims   map[string]*claim
	counters map[string]*counter
	sweepAt  int // number of values at which the next sweep is worth its cost
}

type claim struct {
	value   string
	expires time.Time
}

type counter struct {
	sum     int64
	expires time.Time
}

// held returns the value of a claim. The caller holds mu.
func (v *values) held(name string, now time.Time) string {
	if c := v.claims[name]; c != nil && now.Before(c.expires) {
		return c.value
	}
	return ""
}

// Value implements Claims.
func (m *Memory) Value(_ context.Context, name string) (string, error) {
	v := &m.values
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.held(name, time.Now()), nil
}

// Swap implements Claims.
func (m *Memory) Swap(_ context.Context, name, old, new string, ttl time.Duration) (string, error) {
	v := &m.values
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	held := v.held(name, now)
	if held != old {
		return held, nil
	}
	if new == "" {
		delete(v.claims, name)
		return "", nil
	}
	v.claims[name] = &claim{new, now.Add(ttl)}
	v.sweep(now)
	return new, nil
}

// Add implements Counters.
func (m *Memory) Add(_ context.Context, name string, delta int64, ttl time.Duration) (int64, error) {
	v := &m.values
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	c := v.counters[name]
	if c == nil || !now.Before(c.expires) {
		if delta == 0 {
			return 0, nil
		}
		c = new(counter)
		v.counters[name] = c
		v.sweep(now)
	}
	c.sum += delta
	if delta != 0 {
		c.expires = now.Add(ttl)
	}
	return c.sum, nil
}

// Spend implements Counters.
func (m *Memory) Spend(ctx context.Context, name string, _ int64, ttl time.Duration) (int64, error) {
	return m.Add(ctx, name, 1, ttl)
}

const minSweep = 1024

// sweep drops what expired once the number of values doubled since the last time: a constant cost per value.
func (v *values) sweep(now time.Time) {
	if len(v.claims)+len(v.counters) < max(v.sweepAt, minSweep) {
		return
	}
	for name, c := range v.claims {
		if !now.Before(c.expires) {
			delete(v.claims, name)
		}
	}
	for name, c := range v.counters {
		if !now.Before(c.expires) {
			delete(v.counters, name)
		}
	}
	v.sweepAt = 2 * (len(v.claims) + len(v.counters))
}
