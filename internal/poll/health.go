package poll

import (
	"time"

	"github.com/freshet-io/freshet"
)

// longestBackOff bounds the pause after failures.
const longestBackOff = time.Minute

// health is how a data source does: its failures in a row, what was told of them, and how long it asked to be left alone. It is owned by
// whoever polls; notBefore may also be read with source.mu held while nobody does.
type health struct {
	failures  int
	notBefore time.Time // the target's wish
	outage    outage
}

// succeed forgets failures. The outage ends by itself.
func (h *health) succeed() { h.failures, h.notBefore = 0, time.Time{} }

// fail counts a failure of a poll that began at that time, and returns how long to leave the target alone.
func (h *health) fail(e *freshet.Error, every time.Duration, began, now time.Time) (pause time.Duration) {
	h.failures++
	h.outage.begin(began)
	if e.RetryAfter > 0 {
		h.notBefore = now.Add(e.RetryAfter)
		return max(e.RetryAfter, every)
	}
	return vary(backOff(every, h.failures))
}

// backOff doubles the pause with every failure in a row. It never polls more often than the topic would.
func backOff(every time.Duration, failures int) time.Duration {
	pause := every
	for i := 1; i < failures && pause < longestBackOff; i++ {
		pause *= 2
	}
	return max(every, min(pause, longestBackOff))
}
