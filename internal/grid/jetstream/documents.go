package jetstream

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/nats-io/nats.go"
)

const (
	workers  = 4
	inboxLen = 16 << 10 // messages; beyond it they are dropped, and everything is compared
	maxTries = 20       // of a write or read that others keep overtaking
)

// topicSlot is what this node knows of a topic. It exists while it is watched or used.
type topicSlot struct {
	// Static.
	topic   string
	subject string
	stream  string

	refs int // guarded by Grid.mu

	following sync.Mutex // guards sub; held while the subscription is made
	sub       *nats.Subscription

	fresh freshly

	mu      sync.Mutex // held while watches are called: that makes their order the order of documents
	held    held
	watches map[*watch]struct{}
	own     map[mark]*grid.Document // writes of this node under way: they need not be read back
	expiry  *time.Timer

	swept    bool      // whether it was compared with the stream since it is followed
	heard    time.Time // when there last were news
	verified uint64    // up to this sequence of the stream, the held message is surely the newest
	unheard  uint64    // the newest message that there was no watch to tell of
}

type watch struct{ changed func(grid.Document) }

// held is the newest message of the topic that this node has seen. It does not have the document itself.
type held struct {
	known   bool
	rec     *record // never nil if known
	seq     uint64  // 0: there is no message
	expired bool
}

// none reports whether the topic has no document.
func (h *held) none() bool { return !h.known || h.expired || h.rec.gone() }

func (h *held) pos() freshet.Position {
	if h.none() {
		return freshet.Position{}
	}
	return h.rec.pos
}

// isAt reports whether it is the message that a document is to replace.
func (h *held) isAt(expected freshet.Position, next *grid.Document) bool {
	return h.known && h.pos() == expected && (h.none() || next.IsFrom(h.rec.at))
}

// outcomes are what the message remembers, also if its document expired.
func (h *held) outcomes() grid.Outcomes {
	if h.rec == nil {
		return nil
	}
	return h.rec.outcomes
}

func (h *held) mark() mark {
	if h.rec == nil {
		return 0
	}
	return h.rec.mark()
}

// relation is how a message stands to the one that is held.
type relation int

const (
	same relation = iota
	newer
	backwards // older, or of another past
)

func (h *held) relation(rec *record, seq uint64) relation {
	switch {
	case !h.known:
		return newer
	case seq == h.seq && rec.mark() == h.mark(): // a stream that was emptied uses its sequences again
		return same
	case seq == 0 && h.none():
		return newer
	case rec.gone() || h.rec.gone() || rec.pos.Epoch != h.rec.pos.Epoch:
		if seq > h.seq {
			return newer
		}
		return backwards
	case rec.step > h.rec.step:
		if m, ok := rec.markAt(h.rec.step); ok && m != h.mark() {
			return backwards // the stream forgot what is held here, and went on without it
		}
		return newer
	case rec.step == h.rec.step && len(rec.marks) > 0 && rec.mark() == h.mark():
		return same
	}
	return backwards
}

var errClosed = freshet.Errorf(freshet.Unavailable, "The server is shutting down")

func (n *Grid) acquire(topic string) (*topicSlot, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, errClosed
	}
	key := token(topic)
	s := n.slots[key]
	if s == nil {
		s = &topicSlot{topic: topic, subject: n.docSubject(topic), stream: n.streamOf(n.docSubject(topic)), watches: make(map[*watch]struct{}), own: make(map[mark]*grid.Document)}
		n.slots[key] = s
	}
	s.refs++
	return s, nil
}

// release forgets the slot when nobody needs it any more.
func (n *Grid) release(s *topicSlot) {
	n.mu.Lock()
	s.refs--
	idle := s.refs == 0
	if idle && n.slots[token(s.topic)] == s {
		delete(n.slots, token(s.topic))
	}
	n.mu.Unlock()
	if !idle {
		return
	}
	s.following.Lock()
	defer s.following.Unlock()
	if s.sub != nil {
		_ = s.sub.Unsubscribe() // fails only if the connection is closed
		s.sub = nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.disarm()
}

// Document implements grid.Documents.
func (n *Grid) Document(ctx context.Context, topic string) (grid.Document, error) {
	s, err := n.acquire(topic)
	if err != nil {
		return grid.Document{}, err
	}
	defer n.release(s)
	return n.newest(ctx, s, nil)
}

// newest reads the document from the leader and tells the watches if they do not know it. If welcome is not nil, it is run with
// the document while nothing else can happen to the slot.
func (n *Grid) newest(ctx context.Context, s *topicSlot, welcome func(grid.Document)) (grid.Document, error) {
	for range maxTries {
		rec, seq, content, err := n.read(ctx, s)
		if err != nil {
			return grid.Document{}, err
		}
		patch := rec.patch // which is not kept
		s.mu.Lock()
		relation := s.held.relation(rec, seq)
		if relation == newer {
			s.take(n, rec, seq, content)
		}
		if relation != backwards {
			doc := s.document(content)
			if rec.change == changePatched && doc.Position == rec.pos {
				doc.Patch = patch
			}
			if welcome != nil {
				welcome(doc)
			}
			s.mu.Unlock()
			return doc, nil
		}
		s.mu.Unlock()
		if err := n.goBack(ctx, s, rec, seq, content); err != nil {
			return grid.Document{}, err
		}
	}
	return grid.Document{}, unknown(errors.New("the topic changes too quickly to read it"))
}

// goBack decides about a read that is older than what is held: a leader that lost its office without knowing, or a stream
// that lost its newest messages. Only a majority can tell.
func (n *Grid) goBack(ctx context.Context, s *topicSlot, rec *record, seq uint64, content grid.Content) error {
	proven, err := n.prove(ctx, s.subject, seq)
	if err != nil || !proven {
		return err
	}
	s.mu.Lock()
	past := s.held.pos()
	if rec.gone() || rec.pos.Epoch != past.Epoch {
		s.take(n, rec, seq, content)
		s.mu.Unlock()
		return nil
	}
	s.mu.Unlock()
	// The same epoch went back: ids would repeat with other documents. What is left begins a new epoch.
	n.log.Error("the stream lost documents that were stored; beginning a new epoch", "topic", s.topic, "held", past.String(), "found", rec.pos.String())
	reborn := *rec
	m := newMark()
	reborn.marks = follow(m, rec.marks)
	reborn.pos, reborn.step, reborn.change, reborn.patch = freshet.Position{Epoch: n.epochs.Next(), Version: 1}, 1, changeWhole, nil
	reborn.trace = "" // nobody published it
	_, err = n.store(ctx, n.docWrite(s, &reborn, seq, rec.marks[0]), m)
	if errors.Is(err, grid.ErrConflict) || errors.Is(err, errOvertaken) {
		err = nil
	}
	return err
}

// read gets the newest message of the topic from the leader, with everything that belongs to it.
func (n *Grid) read(ctx context.Context, s *topicSlot) (*record, uint64, grid.Content, error) {
	for range maxTries {
		msg, err := n.last(ctx, s.subject)
		if err != nil {
			return nil, 0, nil, err
		}
		rec, err := msg.record()
		if err != nil {
			return nil, 0, nil, freshet.Wrap(freshet.Internal, err, "A document in the cluster cannot be read")
		}
		content, err := n.content(ctx, s.topic, rec)
		if errors.Is(err, errParts) {
			continue // replaced meanwhile
		}
		return rec, msg.seq, content, err
	}
	return nil, 0, nil, unknown(errParts)
}

// take makes a message the one that is held and tells the watches. The caller holds mu.
func (s *topicSlot) take(n *Grid, rec *record, seq uint64, content grid.Content) {
	before := s.held
	s.held = held{known: true, rec: rec, seq: seq}
	s.heard, s.verified = time.Now(), seq
	s.held.expired = n.opts.MessageTTL > 0 && !rec.gone() && !n.Now().Before(rec.at.Add(n.opts.MessageTTL))
	if !s.held.none() || !before.none() {
		doc := s.document(content)
		for w := range s.watches {
			w.changed(doc)
		}
	}
	rec.strip()
	s.arm(n)
}

// strip drops what is only needed once: the document, its patch and who follows it.
func (r *record) strip() { r.base.inline, r.base.packed, r.patch, r.trace = nil, nil, nil, "" }

// document is what watches are told about the held message. The caller holds mu.
func (s *topicSlot) document(content grid.Content) grid.Document {
	if s.held.none() {
		return grid.Document{}
	}
	rec := s.held.rec
	doc := grid.Document{Position: rec.pos, Content: content, At: rec.at, Trace: rec.trace}
	if rec.change != changeUnknown && rec.pos.Version > 1 {
		doc.PatchFrom = freshet.Position{Epoch: rec.pos.Epoch, Version: rec.pos.Version - 1}
		if rec.change == changePatched {
			doc.Patch = rec.patch
		}
	}
	return doc
}

// arm sees to it that the document disappears in time. As in memory, a timer that comes too early arms itself again.
func (s *topicSlot) arm(n *Grid) {
	if n.opts.MessageTTL > 0 && s.expiry == nil && !s.held.none() && len(s.watches) > 0 {
		s.expiry = time.AfterFunc(s.held.rec.at.Add(n.opts.MessageTTL).Sub(n.Now()), func() { n.expire(s) })
	}
}

func (s *topicSlot) disarm() {
	if s.expiry != nil {
		s.expiry.Stop()
		s.expiry = nil
	}
}

func (n *Grid) expire(s *topicSlot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.expiry == nil || s.held.none() {
		return
	}
	s.expiry = nil
	if n.Now().Before(s.held.rec.at.Add(n.opts.MessageTTL)) {
		s.arm(n)
		return
	}
	s.held.expired = true
	for w := range s.watches {
		w.changed(grid.Document{})
	}
}

// Put implements grid.Documents.
func (n *Grid) Put(ctx context.Context, topic string, expected freshet.Position, doc grid.Document) (freshet.Position, error) {
	s, err := n.acquire(topic)
	if err != nil {
		return freshet.Position{}, err
	}
	defer n.release(s)
	for range maxTries {
		s.mu.Lock()
		h := s.held
		s.mu.Unlock()
		if !h.isAt(expected, &doc) {
			if h, err = n.look(ctx, s); err != nil {
				return freshet.Position{}, err
			}
		}
		if pos, is := h.outcomes().Find(doc.Once); is {
			return pos, grid.ErrRepeated
		}
		if !h.isAt(expected, &doc) {
			return freshet.Position{}, grid.ErrConflict
		}
		pos, err := n.put(ctx, s, h, doc)
		if !errors.Is(err, grid.ErrConflict) {
			return pos, err
		}
		// Perhaps only the sequence is another one: a renewal, or the last trace of a document that expired.
		if _, err := n.look(ctx, s); err != nil {
			return freshet.Position{}, err
		}
	}
	return freshet.Position{}, grid.ErrConflict
}

// Recall implements grid.Documents.
func (n *Grid) Recall(ctx context.Context, topic, once string) (freshet.Position, error) {
	s, err := n.acquire(topic)
	if err != nil {
		return freshet.Position{}, err
	}
	defer n.release(s)
	h, err := n.look(ctx, s)
	pos, _ := h.outcomes().Find(once)
	return pos, err
}

// look brings what is held up to date.
func (n *Grid) look(ctx context.Context, s *topicSlot) (held, error) {
	if _, err := n.newest(ctx, s, nil); err != nil {
		return held{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held, nil
}

// put writes a document in place of the held one.
func (n *Grid) put(ctx context.Context, s *topicSlot, h held, doc grid.Document) (freshet.Position, error) {
	m := newMark()
	rec := n.successor(&h, doc, m)
	cleanUp, err := n.fill(ctx, s, &h, rec, doc)
	if err != nil {
		return freshet.Position{}, err
	}
	doc.Position = rec.pos
	s.mu.Lock()
	s.own[m] = &doc
	s.mu.Unlock()
	w := n.docWrite(s, rec, h.seq, h.mark())
	if !h.none() {
		w.by = &byline{n.writer, h.rec.pos.Epoch}
	}
	seq, err := n.store(ctx, w, m)
	s.mu.Lock()
	delete(s.own, m)
	if err == nil && s.held.relation(rec, seq) == newer {
		s.take(n, rec, seq, doc.Content)
	}
	s.mu.Unlock()
	if err == nil && cleanUp {
		n.dropParts(s.topic, rec, seq)
	}
	if errors.Is(err, errOvertaken) {
		err = nil // it was stored, in order
	}
	if errors.Is(err, grid.ErrUnknown) {
		err = freshet.Wrap(freshet.Unavailable, err, "The cluster did not say in time whether the publication was stored; read the document before you publish it again, "+
			"or repeat it with the same Idempotency-Key if it had one")
	}
	if err != nil {
		return freshet.Position{}, err
	}
	return rec.pos, nil
}

// successor is the record that comes after the held one, without its content.
func (n *Grid) successor(h *held, doc grid.Document, m mark) *record {
	rec := n.next(h, doc, m)
	rec.outcomes = h.outcomes().With(&doc, rec.pos)
	var before writers
	if h.rec != nil {
		before = h.rec.writers
	}
	rec.writers = before.with(n.writer, m)
	return rec
}

func (n *Grid) next(h *held, doc grid.Document, m mark) *record {
	rec := &record{at: doc.At, marks: []mark{m}, length: doc.Length, trace: doc.Trace}
	if h.rec != nil {
		rec.marks = follow(m, h.rec.marks)
	}
	switch {
	case h.none():
		rec.pos, rec.step, rec.change = freshet.Position{Epoch: n.epochs.Next(), Version: 1}, 1, changeWhole
		return rec
	case doc.Renewal:
		rec.pos, rec.step = h.rec.pos, h.rec.step+1
		return rec
	}
	rec.pos, rec.step = freshet.Position{Epoch: h.rec.pos.Epoch, Version: h.rec.pos.Version + 1}, h.rec.step+1
	if doc.PatchFrom == h.rec.pos {
		rec.change, rec.patch = changeWhole, doc.Patch
		if doc.Patch != nil {
			rec.change = changePatched
		}
	}
	return rec
}

// ttlSlack is how long the server keeps a message after it expired for us, whose clocks may differ.
const ttlSlack = time.Minute

func (n *Grid) docWrite(s *topicSlot, rec *record, expected uint64, replaces mark) *write {
	w := &write{subject: s.subject, expected: expected, replaces: replaces, body: rec.encode(),
		trace: rec.trace, length: rec.length, onces: rec.outcomes.String(), writers: rec.writers.String()}
	if n.opts.MessageTTL > 0 {
		w.ttl = max(0, rec.at.Add(n.opts.MessageTTL).Sub(n.Now())) + ttlSlack
	}
	return w
}

// tombTTL is how long a deletion is remembered, for nodes that were away.
const tombTTL = time.Hour

// Delete implements grid.Documents.
func (n *Grid) Delete(ctx context.Context, topic string) error {
	s, err := n.acquire(topic)
	if err != nil {
		return err
	}
	defer n.release(s)
	m := newMark()
	rec := &record{marks: []mark{m}}
	seq, err := n.store(ctx, &write{subject: s.subject, expected: anySequence, ttl: tombTTL, body: seal(rec.marks, nil)}, m)
	if err != nil {
		return err
	}
	s.mu.Lock()
	if s.held.relation(rec, seq) == newer {
		s.take(n, rec, seq, nil)
	}
	s.mu.Unlock()
	n.dropParts(topic, rec, seq)
	return nil
}

// Watch implements grid.Documents.
func (n *Grid) Watch(ctx context.Context, topic string, changed func(grid.Document)) (stop func(), err error) {
	s, err := n.acquire(topic)
	if err != nil {
		return nil, err
	}
	w := &watch{changed: changed}
	if err := n.follow(ctx, s); err == nil {
		// What is published from now on is heard; what was published before is read.
		_, err = n.newest(ctx, s, func(doc grid.Document) {
			changed(doc)
			s.watches[w] = struct{}{}
			s.arm(n)
			if s.unheard > s.held.seq { // it came after the message that was read
				n.suspect(s)
			}
		})
		if err != nil {
			n.release(s)
			return nil, err
		}
	} else {
		n.release(s)
		return nil, unknown(err)
	}
	return sync.OnceFunc(func() {
		s.mu.Lock()
		delete(s.watches, w)
		s.mu.Unlock()
		n.release(s)
	}), nil
}

// follow subscribes to the topic's news and returns once the servers know it.
func (n *Grid) follow(ctx context.Context, s *topicSlot) error {
	s.following.Lock()
	defer s.following.Unlock()
	if s.sub != nil {
		return nil
	}
	sub, err := n.conn.ChanSubscribe(n.newSubject(s.topic), n.inbox[shardOf(s.topic)%workers])
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if err := n.conn.FlushWithContext(ctx); err != nil {
		_ = sub.Unsubscribe()
		return err
	}
	s.sub = sub
	return nil
}

// hear takes news of documents.
func (n *Grid) hear(inbox <-chan *nats.Msg) {
	for {
		select {
		case <-n.ctx.Done():
			return
		case msg := <-inbox:
			seq, _ := strconv.ParseUint(msg.Header.Get("Nats-Sequence"), 10, 64)
			n.news(message{msg.Subject, seq, msg.Data, msg.Header})
		}
	}
}

// news is a message that may be the newest of its topic, or any older one.
func (n *Grid) news(msg message) {
	n.mu.Lock()
	s := n.slots[msg.subject[strings.LastIndexByte(msg.subject, '.')+1:]]
	n.mu.Unlock()
	if s == nil || msg.seq == 0 {
		return
	}
	marks, _, err := unseal(msg.data)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.watches) == 0 {
		s.unheard = max(s.unheard, msg.seq)
		return
	}
	if s.held.known && msg.seq <= s.held.seq {
		if msg.seq == s.held.seq {
			s.heard = time.Now()
		}
		return // known already, like all that this node wrote itself
	}
	var mine *grid.Document
	if err == nil && len(marks) > 0 {
		mine = s.own[marks[0]]
	}
	rec, err := msg.record()
	if err != nil {
		n.log.Error("news of a document cannot be read", "topic", s.topic, "err", err)
		return
	}
	switch s.held.relation(rec, msg.seq) {
	case same:
	case backwards:
		n.suspect(s)
	case newer:
		var content grid.Content
		var ok bool
		if mine != nil {
			content, ok = mine.Content, true
		} else {
			content, ok = rec.near(&s.held)
		}
		if !ok {
			n.suspect(s)
			return
		}
		s.take(n, rec, msg.seq, content)
	}
}

// near returns the content of a record as far as it can be had without asking anybody: all of it, or what leads on from the
// held one.
func (r *record) near(h *held) (grid.Content, bool) {
	switch {
	case r.gone():
		return nil, true
	case r.base.parts == 0 && len(r.segments) == 0 && len(r.deltas) == 0:
		return grid.Raw(r.base.inline), true
	case !h.none() && h.rec.pos.Epoch == r.pos.Epoch && r.covers(h.rec.step):
		return grid.Steps{Deltas: r.deltas[len(r.deltas)-int(r.step-h.rec.step):]}, true
	}
	return nil, false
}
