package fanout

import "time"

// scheduler decides which group a loop serves next. A group with news is passed over from its first member to its last; groups take
// alternate slices, so that a large one does not hold up the others.
//
// A group is in queue while a pass over it is under way, in waiting while its next pass must not begin yet, and never in both.
type scheduler struct {
	queue   []*members // in the order in which they get their next slice
	waiting []*members
}

// add begins another pass over a group, now or when it may, or lets the pass under way be followed by another.
func (s *scheduler) add(m *members, now time.Time) {
	switch {
	case m.serving:
		m.again = true
	case m.waiting:
	case m.mustWait(now):
		m.waiting = true
		s.waiting = append(s.waiting, m)
	default:
		m.beginPass(now)
		s.queue = append(s.queue, m)
	}
}

// beginWaiting begins the passes whose time has come, and calls beginning for each before.
func (s *scheduler) beginWaiting(now time.Time, beginning func(*members)) {
	waiting := s.waiting
	s.waiting = s.waiting[:0]
	for _, m := range waiting {
		if m.mustWait(now) {
			s.waiting = append(s.waiting, m)
			continue
		}
		m.waiting = false
		beginning(m)
		s.add(m, now)
	}
	clear(waiting[len(s.waiting):])
}

// round gives each queued group one slice. serve returns whether members are left for another slice.
func (s *scheduler) round(now time.Time, serve func(*members) (more bool)) {
	for n := len(s.queue); n > 0; n-- {
		m := s.queue[0]
		s.queue[0] = nil
		s.queue = s.queue[1:]
		if serve(m) {
			s.queue = append(s.queue, m)
			continue
		}
		m.endPass(time.Now())
		if m.again {
			m.again = false
			s.add(m, now)
		}
	}
	if len(s.queue) == 0 {
		s.queue = nil // its memory may have moved far
	}
}

// isBusy reports whether a pass is under way.
func (s *scheduler) isBusy() bool { return len(s.queue) > 0 }

// sleep is how long nothing has to be done, and most at the most.
func (s *scheduler) sleep(now time.Time, most time.Duration) time.Duration {
	for _, m := range s.waiting {
		most = min(most, max(0, m.notBefore.Sub(now)))
	}
	return most
}
