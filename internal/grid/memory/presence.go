package memory

import (
	"context"
	"sync"

	"github.com/freshet-io/freshet/internal/grid"
)

// Presence counts the subscribers of topics. The zero value has none.
type Presence struct {
	listeners grid.Listeners[arrival]

	mu     sync.Mutex // held while listeners are called: that keeps "came" and "left" in order
	joined map[string]int
}

// arrival says that the first subscriber of a topic came, or that the last one left.
type arrival struct {
	topic   string
	present bool
}

// Join implements grid.Presence.
func (p *Presence) Join(_ context.Context, topic string) (leave func(), err error) {
	p.add(topic, 1)
	return sync.OnceFunc(func() { p.add(topic, -1) }), nil
}

func (p *Presence) add(topic string, delta int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.joined == nil {
		p.joined = make(map[string]int)
	}
	before := p.joined[topic]
	now := before + delta
	if now == 0 {
		delete(p.joined, topic)
	} else {
		p.joined[topic] = now
	}
	if before == 0 || now == 0 {
		p.listeners.Tell(arrival{topic, now > 0})
	}
}

// Present implements grid.Presence.
func (p *Presence) Present(_ context.Context, topic string) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.joined[topic] > 0, nil
}

// OnPresence implements grid.Presence.
func (p *Presence) OnPresence(fn func(topic string, present bool)) (stop func()) {
	return p.listeners.Add(func(a arrival) { fn(a.topic, a.present) })
}
