package grid

// Values counts the claims and counters that take memory.
func Values(m *Memory) int {
	m.values.mu.Lock()
	defer m.values.mu.Unlock()
	return len(m.values.claims) + len(m.values.counters)
}
