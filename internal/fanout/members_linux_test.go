package fanout

import (
	"testing"

	"pgregory.net/rapid"
)

// TestRemovalKeepsThePassWhole: nobody is served twice or left out because others go while a pass is under way.
func TestRemovalKeepsThePassWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m members
		gone, served := map[*conn]bool{}, map[*conn]bool{}
		var all []*conn
		for range rapid.IntRange(0, 12).Draw(t, "members") {
			c := new(conn)
			m.add(c)
			all = append(all, c)
		}
		for len(all) > 0 {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				c := rapid.SampledFrom(all).Draw(t, "who")
				if !gone[c] {
					gone[c] = true
					m.remove(c)
				}
			case 1:
				if len(all) < 30 {
					c := new(conn)
					m.add(c)
					all = append(all, c)
				}
			default:
				if m.next == len(m.conns) {
					for _, c := range all {
						if !gone[c] && !served[c] {
							t.Fatal("left out")
						}
					}
					return
				}
				c := m.conns[m.next]
				m.next++
				if served[c] || gone[c] {
					t.Fatal("served twice or after it went")
				}
				served[c] = true
			}
			for i, c := range m.conns {
				if int(c.index) != i {
					t.Fatalf("member %d believes to be %d", i, c.index)
				}
			}
			if m.next > len(m.conns) {
				t.Fatal("beyond the end")
			}
		}
	})
}
