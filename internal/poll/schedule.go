package poll

import (
	"math/rand/v2"
	"time"
)

// jitter is by which part of itself an interval is varied, to drive apart what began together.
const jitter = 0.05

// congested is how late a poll is that had to wait for others, and not just for a processor.
const congested = 10 * time.Millisecond

// schedule is when a source is polled next: one timer, and no goroutine while it runs. It is guarded by source.mu.
type schedule struct {
	timer  *time.Timer
	due    time.Time
	spread bool // the source began in a burst, and leaves it with its second poll
}

// arm has fire run after the delay. What is due needs no timer: if several goroutines of a test's bubble make timers that fire at once,
// Go's race detector breaks down (1.26).
func (s *schedule) arm(delay time.Duration, fire func()) {
	s.due = time.Now().Add(max(0, delay))
	switch {
	case delay <= 0:
		s.stop()
		go fire()
	case s.timer == nil:
		s.timer = time.AfterFunc(delay, fire)
	default:
		s.timer.Reset(delay)
	}
}

func (s *schedule) stop() {
	if s.timer != nil {
		s.timer.Stop()
	}
}

// after returns how long to wait for the next poll, after one that began at that time and asks for a pause. A slow target gets a pause all
// the same.
func (s *schedule) after(began, now time.Time, pause, every time.Duration) time.Duration {
	if s.spread {
		s.spread = false
		pause += rand.N(every) - every/2
	}
	return max(s.base(began).Sub(now)+pause, min(pause, every)/4)
}

// base is from when the next poll is counted. Being a little late does not add up. But a source that had to wait for others moves
// part of the way towards that: those that were due together and were served one after the other are apart from then on, and
// so are those that were due one after the other and were served together, after a stall.
func (s *schedule) base(began time.Time) time.Time {
	if late := began.Sub(s.due); late > congested {
		return s.due.Add(rand.N(late))
	}
	return s.due
}

// vary changes a pause a little.
func vary(d time.Duration) time.Duration {
	return d + time.Duration((2*rand.Float64()-1)*jitter*float64(d))
}
