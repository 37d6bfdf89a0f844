package fanout

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestRemovalKeepsThePassWhole: nobody is served twice or left out because others go while a pass is under way.
func TestRemovalKeepsThePassWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m memberList
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

// A crowd is not served again before its loop has rested, however much there is to say; a few are.
func TestALongPassIsFollowedByARest(t *testing.T) {
	for _, c := range []struct {
		name     string
		members  int
		halvings uint8
		took     time.Duration
		want     time.Duration // from the end of the pass to the next
	}{
		{"a short pass", 500, 0, time.Millisecond, 2 * time.Millisecond},
		{"as long as the distance", 500, 0, 3 * time.Millisecond, 750 * time.Microsecond},
		{"a long pass", 500, 0, 40 * time.Millisecond, time.Millisecond},
		{"much to say", 500, 3, 40 * time.Millisecond, time.Millisecond / 8},
		{"a few", fewConns - 1, 0, 40 * time.Millisecond, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := members{loop: &loop{f: &Fanout{loops: loops{pace: 30 * time.Microsecond}}}, pacer: pacer{halvings: c.halvings}}
			for range c.members {
				m.add(new(conn))
			}
			begin := time.Now()
			end := begin.Add(c.took)
			m.beginPass(begin)
			if !m.serving {
				t.Fatal("no pass has begun")
			}
			m.endPass(end)
			if got := max(0, m.notBefore.Sub(end)); m.serving || got != c.want {
				t.Errorf("the next pass comes %v later, want %v", got, c.want)
			}
		})
	}
}
