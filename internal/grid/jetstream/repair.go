package jetstream

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

const (
	// Topics in one request. A server returns 1,024 messages at most, and publications wait while it collects them.
	sweepSlice = 100
	hurrySlice = 1000 // when something was lost
)

// repair finds what got lost: it compares the heads of the watched topics with the streams, all of them if hurry says that news may have
// got lost.
func (d *documents) repair(hurry bool) {
	for _, stream := range d.streams.documents {
		if err := d.sweep(stream, hurry); err != nil && d.link.tasks.ctx.Err() == nil {
			d.link.log.Debug("documents could not be compared", "stream", stream.name, "err", err)
			d.link.faults.suspect()
		}
	}
}

// sweep reads what changed in the watched topics of a stream since they were last known to be the newest. A topic that news
// were just heard of needs no look: if the next ones get lost, it will be silent, and looked at then.
func (d *documents) sweep(stream *stream, hurry bool) error {
	var due []*slot
	since := make(map[*slot]uint64)
	for _, s := range d.topics.watched(stream) {
		s.mu.Lock()
		if hurry || !s.swept || time.Since(s.heard) >= beatEvery {
			due = append(due, s)
			since[s] = s.verified
		}
		s.mu.Unlock()
	}
	// A request has one sequence for all its topics; neighbours have about the same.
	slices.SortFunc(due, func(a, b *slot) int { return cmp.Compare(since[a], since[b]) })
	size := sweepSlice
	if hurry {
		size = hurrySlice
	}
	ctx := d.link.tasks.ctx
	gap := beatEvery / 2 / time.Duration(1+len(due)/size)
	for slice := range slices.Chunk(due, size) {
		if err := d.sweepSlice(stream, slice, since[slice[0]]); err != nil {
			return err
		}
		if !hurry && !d.link.faults.hasLost() && !pause(ctx, gap) {
			return ctx.Err()
		}
	}
	return nil
}

func (d *documents) sweepSlice(stream *stream, slots []*slot, since uint64) error {
	subjects := make([]string, len(slots))
	for i, s := range slots {
		subjects[i] = s.subject
	}
	upTo, err := stream.batch(d.link.tasks.ctx, batch{LastOf: subjects, Seq: since + 1}, d.hear)
	if err != nil {
		return err
	}
	for _, s := range slots {
		s.mu.Lock()
		s.swept = true
		s.verified = max(s.verified, upTo)
		s.mu.Unlock()
	}
	return nil
}

// suspectAll has every watched topic of a stream read again.
func (d *documents) suspectAll(stream *stream) {
	for _, s := range d.topics.watched(stream) {
		s.distrust()
		d.suspects.add(s)
	}
}

// suspects are topics that are read from the leader, because something about them does not fit. A topic is read by one goroutine at a
// time.
type suspects struct {
	link *link
	read func(*slot) error // and adopts what is found; static

	mu    sync.Mutex
	again map[*slot]bool // the topics that are being read; true: to be read once more afterwards
}

func newSuspects(l *link, read func(*slot) error) *suspects {
	return &suspects{link: l, read: read, again: make(map[*slot]bool)}
}

// add has a topic read soon. It never blocks.
func (u *suspects) add(s *slot) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, reading := u.again[s]; reading {
		u.again[s] = true
		return
	}
	if u.link.tasks.spawn(func() { u.clear(s) }) {
		u.again[s] = false
	}
}

// clear reads a topic until nobody suspects it any more.
func (u *suspects) clear(s *slot) {
	ctx := u.link.tasks.ctx
	for {
		if err := u.read(s); err != nil && ctx.Err() == nil {
			u.link.log.Warn("a document could not be compared", "topic", s.topic, "err", err)
			s.distrust() // the next sweep tries again
		}
		u.mu.Lock()
		if !u.again[s] || ctx.Err() != nil {
			delete(u.again, s)
			u.mu.Unlock()
			return
		}
		u.again[s] = false
		u.mu.Unlock()
	}
}
