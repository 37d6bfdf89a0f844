package grid

import (
	"context"
	"time"
)

// Values counts the claims and counters that take memory.
func Values(m *Memory) int {
	m.values.mu.Lock()
	defer m.values.mu.Unlock()
	return len(m.values.claims) + len(m.values.counters)
}

// Deafen makes a node miss the news of a topic, as if they got lost.
func Deafen(n *NATS, topic string) {
	n.mu.Lock()
	s := n.slots[token(topic)]
	n.mu.Unlock()
	s.following.Lock()
	defer s.following.Unlock()
	_ = s.sub.Unsubscribe()
}

// Compared reports whether a topic was compared with the stream since the node follows it, in search of what got lost.
func Compared(n *NATS, topic string) bool {
	n.mu.Lock()
	s := n.slots[token(topic)]
	n.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.swept
}

// DeafenNotices makes a node miss notices, as if they and the questions about them got lost.
func DeafenNotices(n *NATS) {
	_ = n.notices.sub.Unsubscribe()
	n.nodes.answers.mu.Lock()
	defer n.nodes.answers.mu.Unlock()
	delete(n.nodes.answers.fns, noticeQuestion)
}

// DeafenRepeats makes a node miss the notices that the stream repeats.
func DeafenRepeats(n *NATS) { _ = n.notices.sub.Unsubscribe() }

// Die ends a node's connection as a crash would: nobody is told.
func Die(n *NATS) { n.conn.Close() }

// ExpectedAfter counts the nodes that should answer after one was silent for some time.
func ExpectedAfter(d time.Duration) int {
	var p natsNodes
	p.init()
	p.peers["other"] = &peer{heard: time.Now(), names: map[string]bool{"q": true}}
	time.Sleep(d)
	return len(p.expected("q"))
}

// OpenWithClock opens a grid in a machine whose clock is wrong.
func OpenWithClock(ctx context.Context, opts NATSOptions, clock func() time.Time) (*NATS, error) {
	return openNATS(ctx, opts, clock)
}
