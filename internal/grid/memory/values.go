package memory

import (
	"context"
	"time"
)

// Values keeps named texts. The zero value has none.
type Values struct {
	texts expiring[string]
}

// Value implements grid.Values.
func (v *Values) Value(_ context.Context, name string) (string, error) {
	v.texts.mu.Lock()
	defer v.texts.mu.Unlock()
	return v.texts.get(name, time.Now()), nil
}

// Swap implements grid.Values.
func (v *Values) Swap(_ context.Context, name, old, new string, ttl time.Duration) (string, error) {
	v.texts.mu.Lock()
	defer v.texts.mu.Unlock()
	now := time.Now()
	if text := v.texts.get(name, now); text != old {
		return text, nil
	}
	if new == "" {
		v.texts.remove(name)
		return "", nil
	}
	v.texts.set(name, new, now, ttl)
	return new, nil
}

// Counters keeps sums. The zero value has none.
type Counters struct {
	sums expiring[int64]
}

// Add implements grid.Counters.
func (c *Counters) Add(_ context.Context, counter string, delta int64, ttl time.Duration) (int64, error) {
	c.sums.mu.Lock()
	defer c.sums.mu.Unlock()
	now := time.Now()
	sum := c.sums.get(counter, now) + delta
	if delta != 0 {
		c.sums.set(counter, sum, now, ttl)
	}
	return sum, nil
}

// Spend implements grid.Counters.
func (c *Counters) Spend(ctx context.Context, counter string, _ int64, ttl time.Duration) (int64, error) {
	return c.Add(ctx, counter, 1, ttl)
}
