package grid

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

// DeafenNotices makes a node miss notices.
func DeafenNotices(n *NATS) { _ = n.notices.sub.Unsubscribe() }
