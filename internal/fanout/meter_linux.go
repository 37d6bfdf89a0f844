package fanout

import (
	"time"

	"github.com/freshet-io/freshet/internal/histogram"
)

// meter counts what a loop does. It is the loop's own, because counting in common would be costly, and is added to the common counters
// at the end of each round.
type meter struct {
	sent    tally
	touched []*members // groups with something to report
	stalled int64      // how many connections were stalled at the last report
	lag     histogram.Local
	fanOut  histogram.Local
}

type tally struct{ events, bytes, beats uint64 }

// minus is what came since before.
func (t tally) minus(before tally) tally {
	return tally{t.events - before.events, t.bytes - before.bytes, t.beats - before.beats}
}

// tell tells whoever follows an event what was written of it.
func (t tally) tell(d Delivery) {
	if d != nil {
		d.Wrote(int64(t.events), int64(t.bytes))
	}
}

// account counts what a member was sent. Its group is told at the end of the round, once for all members.
func (t *meter) account(m *members, events, bytes, full int) {
	if m.group.Sent == nil {
		return
	}
	if m.sent == (Sent{}) {
		t.touched = append(t.touched, m)
	}
	m.sent.Events += int64(events)
	m.sent.Bytes += int64(bytes)
	m.sent.Full += int64(full)
}

// measure counts how long those who were just served had to wait, and at the end of a pass how long it took in all.
func (t *meter) measure(m *members, events uint64) {
	if m.bringing.IsZero() {
		return
	}
	took := time.Since(m.bringing)
	if events > 0 {
		t.lag.Observe(took, events)
		if m.group.Sent != nil {
			m.sent.Prompt, m.sent.Lag = int64(events), took // a group has one slice a round
		}
	}
	if m.isDone() {
		t.fanOut.Observe(took, 1)
	}
}

// report adds the loop's counts to the common ones.
func (t *meter) report(all *counters, stalled int) {
	if t.sent != (tally{}) {
		all.events.Add(t.sent.events)
		all.bytes.Add(t.sent.bytes)
		all.beats.Add(t.sent.beats)
		t.sent = tally{}
		t.lag.MoveTo(&all.lag)
		t.fanOut.MoveTo(&all.fanOut)
	}
	if n := int64(stalled); n != t.stalled {
		all.behind.Add(n - t.stalled)
		t.stalled = n
	}
	for i, m := range t.touched {
		m.group.Sent(m.sent)
		m.sent = Sent{}
		t.touched[i] = nil
	}
	t.touched = t.touched[:0]
}
