package jetstream

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/nats-io/nats.go"
)

const (
	beatEvery = 2 * time.Second

	// Topics in one request. A server returns 1,024 messages at most, and publications wait while it collects them.
	sweepSlice = 100
	hurrySlice = 1000 // when something was lost
)

// repairs is the work of finding what got lost.
type repairs struct {
	wake chan struct{} // holds one

	mu       sync.Mutex
	suspects map[*topicSlot]bool // to be read again; true: being read

	// Owned by beat.
	beats map[string]uint64 // sequence of this node's last beat, by stream
}

func (r *repairs) init() {
	r.wake = make(chan struct{}, 1)
	r.suspects = make(map[*topicSlot]bool)
	r.beats = make(map[string]uint64)
}

// missed says that news may have got lost.
func (n *Grid) missed() {
	n.lost.Store(true)
	select {
	case n.repairs.wake <- struct{}{}:
	default:
	}
}

// beat writes something small to every stream now and then: an answer proves that a majority of the servers works.
func (n *Grid) beat() {
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	silent := 0
	for beats := 0; ; beats++ {
		if beats%clockEvery == 0 {
			n.readClock(n.ctx)
		}
		err := n.beatAll()
		switch {
		case err == nil:
			n.proven.Store(time.Now().UnixNano())
			silent = 0
		case n.ctx.Err() != nil:
			return
		default:
			n.excuse.Store(errors.Join(err)) // always the same type, as atomic.Value wants
			n.lost.Store(true)
			n.faulty()
			silent++
			n.failedBeats(silent, err)
		}
		select {
		case <-n.ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Beats in a row that fail before something is done about it. An election, of up to seven seconds, is waited for before a node leaves
// its server.
const (
	beatsToRestore = 3
	beatsToLeave   = 4
)

// failedBeats does what can help when no majority answers: the server may have lost its peers while others have not, or somebody deleted
// the streams.
func (n *Grid) failedBeats(inARow int, err error) {
	isMissing := errors.Is(err, nats.ErrNoResponders)
	switch {
	case !n.knowsOthers():
		if isMissing && inARow%beatsToRestore == 0 {
			n.restoreStreams()
		}
	case inARow%(2*beatsToLeave) == beatsToLeave:
		n.log.Warn("the NATS server has no majority; trying another one", "server", n.conn.ConnectedAddr(), "err", err)
		_ = n.conn.ForceReconnect() // fails only if the connection is closed
	case isMissing && inARow%(2*beatsToLeave) == 0:
		n.restoreStreams()
	}
}

// knowsOthers reports whether there are servers besides the one that the node is connected to.
func (n *Grid) knowsOthers() bool { return n.opts.InProcess == nil && len(n.conn.Servers()) > 1 }

func (n *Grid) beatAll() error {
	for i, stream := range n.docStreams() {
		shard := uint32(i * shards / n.opts.Streams)
		began := time.Now()
		seq, err := n.beatOne(stream, shardToken(shard))
		if err != nil {
			return err
		}
		n.repairs.beats[stream] = seq
		if time.Since(began) > time.Second {
			n.missed() // an election, perhaps: its news may not have been told
		}
	}
	return nil
}

// beatOne writes a beat in place of the last one. If that is not there any more, the stream may have been emptied, and may have
// come far again since: everything is looked at.
func (n *Grid) beatOne(stream, shard string) (seq uint64, err error) {
	w := &write{subject: n.subject("beat", shard, n.node), expected: anySequence, ttl: time.Minute, body: []byte{format, 0}}
	last := n.repairs.beats[stream]
	if last > 0 {
		w.expected = last
	}
	if seq, err = n.publish(n.ctx, w); !hasCode(err, codeWrongSequence) {
		return seq, err
	}
	w.expected = anySequence
	if seq, err = n.publish(n.ctx, w); err != nil {
		return 0, err
	}
	if seq < last {
		n.log.Error("the stream was emptied; documents are lost until they are published again", "stream", stream)
	}
	n.suspectAll(stream)
	return seq, nil
}

// restoreStreams makes streams again that somebody deleted.
func (n *Grid) restoreStreams() {
	ctx, cancel := context.WithTimeout(n.ctx, readTimeout)
	defer cancel()
	if err := n.ensureStreams(ctx); err != nil {
		n.log.Error("streams cannot be restored", "err", err)
	}
}

// prove asks a majority whether the last sequence of a subject is seq.
func (n *Grid) prove(ctx context.Context, subject string, seq uint64) (bool, error) {
	m := newMark()
	_, err := n.store(ctx, &write{
		subject: n.proofSubject(subject), checked: subject, expected: seq, ttl: time.Minute, body: seal([]mark{m}, nil),
	}, m)
	if errors.Is(err, grid.ErrConflict) {
		return false, nil
	}
	return err == nil, err
}

// proofSubject is where this node writes to prove something about a subject of the same stream.
func (n *Grid) proofSubject(subject string) string {
	if n.streamOf(subject) == n.valuesStream() {
		return n.subject("val", "proof", n.node)
	}
	shard, _, _ := strings.Cut(strings.TrimPrefix(subject, n.subject("doc", "")), ".")
	return n.subject("beat", shard, n.node+"-proof")
}

// Confirm implements grid.Documents.
func (n *Grid) Confirm(ctx context.Context, topic string, pos freshet.Position) error {
	s, err := n.acquire(topic)
	if err != nil {
		return err
	}
	defer n.release(s)
	s.mu.Lock()
	h := s.held
	s.mu.Unlock()
	if !h.known || h.pos() != pos {
		return grid.ErrConflict
	}
	proven, err := n.prove(ctx, s.subject, h.seq)
	if err == nil && !proven {
		err = grid.ErrConflict
	}
	return err
}

// freshly coalesces reads that must begin after they were asked for: whoever comes while one is under way waits for the next.
type freshly struct {
	mu   sync.Mutex
	busy bool
	next *freshRead
}

// maxRefreshes is how many reads for newcomers a node asks of the servers in a second. Beyond it, in a storm of subscribers, they
// begin with what the node holds: the servers have more urgent things to do then.
const maxRefreshes = 1000

// perSecond allows something so many times a second.
type perSecond struct {
	mu     sync.Mutex
	second int64
	count  int
}

func (p *perSecond) allow(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := now.Unix(); s != p.second {
		p.second, p.count = s, 0
	}
	p.count++
	return p.count <= maxRefreshes
}

// freshRead is a read that has not begun. err is written before done is closed.
type freshRead struct {
	done chan struct{}
	err  error
}

// refreshPatience is how long whoever reads a topic waits to be sure of the newest document.
const refreshPatience = 2 * time.Second

// Refresh implements grid.Documents. A topic that many come to at once costs few reads.
func (n *Grid) Refresh(ctx context.Context, topic string) error {
	if err := n.Check(ctx); err != nil {
		return err // it would only take its time to fail
	}
	s, err := n.acquire(topic)
	if err != nil {
		return err
	}
	defer n.release(s)
	f := &s.fresh
	f.mu.Lock()
	mine := f.next
	if mine == nil {
		if !n.refreshes.allow(time.Now()) {
			f.mu.Unlock()
			return freshet.Errorf(freshet.Unavailable, "Too many reads at once")
		}
		mine = &freshRead{done: make(chan struct{})}
		f.next = mine
		if !f.busy {
			if f.busy = n.spawn(func() { n.readFresh(s) }); !f.busy {
				f.next = nil
				f.mu.Unlock()
				return errClosed
			}
		}
	}
	f.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, refreshPatience)
	defer cancel()
	select {
	case <-mine.done:
		return mine.err
	case <-ctx.Done():
		return unknown(ctx.Err())
	}
}

// readFresh reads until nobody waits for it. The slot stays usable after the last one who waited released it.
func (n *Grid) readFresh(s *topicSlot) {
	f := &s.fresh
	for {
		f.mu.Lock()
		read := f.next
		f.next = nil
		if f.busy = read != nil; !f.busy {
			f.mu.Unlock()
			return
		}
		f.mu.Unlock()
		read.err = n.compareNewest(s)
		close(read.done)
	}
}

// compareNewest asks the leader whether what is held is the newest, and takes over what is.
func (n *Grid) compareNewest(s *topicSlot) error {
	msg, err := n.last(n.ctx, s.subject)
	if err != nil {
		return err
	}
	s.mu.Lock()
	held := s.held.known && s.held.seq == msg.seq
	s.mu.Unlock()
	if held {
		return nil
	}
	_, err = n.newest(n.ctx, s, nil)
	return err
}

// repair compares what is held with the streams.
func (n *Grid) repair() {
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-n.repairs.wake:
		case <-ticker.C:
		}
		hurry := n.lost.Swap(false)
		for _, stream := range n.docStreams() {
			if err := n.sweep(stream, hurry); err != nil && n.ctx.Err() == nil {
				n.log.Debug("documents could not be compared", "stream", stream, "err", err)
				n.lost.Store(true)
			}
		}
		n.repairNotices()
		n.announceAll()
		n.sayNode("here")
	}
}

// sweep reads what changed in the followed topics of a stream since they were last known to be the newest. A topic that news
// were just heard of needs no look: if the next ones get lost, it will be silent, and looked at then.
func (n *Grid) sweep(stream string, hurry bool) error {
	var due []*topicSlot
	since := make(map[*topicSlot]uint64)
	for _, s := range n.followed(stream) {
		s.mu.Lock()
		if hurry || !s.swept || time.Since(s.heard) >= beatEvery {
			due = append(due, s)
			since[s] = s.verified
		}
		s.mu.Unlock()
	}
	// A request has one sequence for all its topics; neighbours have about the same.
	slices.SortFunc(due, func(a, b *topicSlot) int { return cmp.Compare(since[a], since[b]) })
	size := sweepSlice
	if hurry {
		size = hurrySlice
	}
	gap := beatEvery / 2 / time.Duration(1+len(due)/size)
	for slice := range slices.Chunk(due, size) {
		if err := n.sweepSlice(stream, slice, since[slice[0]]); err != nil {
			return err
		}
		if !hurry && !n.lost.Load() && !pause(n.ctx, gap) {
			return n.ctx.Err()
		}
	}
	return nil
}

// followed returns the topics of a stream that are watched here.
func (n *Grid) followed(stream string) []*topicSlot {
	n.mu.Lock()
	all := make([]*topicSlot, 0, len(n.slots))
	for _, s := range n.slots {
		all = append(all, s)
	}
	n.mu.Unlock()
	return slices.DeleteFunc(all, func(s *topicSlot) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.watches) == 0 || s.stream != stream
	})
}

func (n *Grid) sweepSlice(stream string, slots []*topicSlot, since uint64) error {
	subjects := make([]string, len(slots))
	for i, s := range slots {
		subjects[i] = s.subject
	}
	upTo, err := n.batch(n.ctx, stream, map[string]any{"multi_last": subjects, "seq": since + 1}, n.news)
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

// suspect has a topic read from the leader, because something about it does not fit. It never blocks.
func (n *Grid) suspect(s *topicSlot) {
	r := &n.repairs
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.suspects[s]; known {
		r.suspects[s] = true // once more, after the read under way
		return
	}
	if n.spawn(func() { n.clear(s) }) {
		r.suspects[s] = false
	}
}

// suspectAll has every followed topic of a stream read again.
func (n *Grid) suspectAll(stream string) {
	for _, s := range n.followed(stream) {
		s.mu.Lock()
		s.swept, s.verified = false, 0
		s.mu.Unlock()
		n.suspect(s)
	}
}

func (n *Grid) clear(s *topicSlot) {
	r := &n.repairs
	for {
		if _, err := n.newest(n.ctx, s, nil); err != nil && n.ctx.Err() == nil {
			n.log.Warn("a document could not be compared", "topic", s.topic, "err", err)
			s.mu.Lock()
			s.swept, s.verified = false, 0 // the next sweep tries again
			s.mu.Unlock()
		}
		r.mu.Lock()
		if !r.suspects[s] || n.ctx.Err() != nil {
			delete(r.suspects, s)
			r.mu.Unlock()
			return
		}
		r.suspects[s] = false
		r.mu.Unlock()
	}
}
