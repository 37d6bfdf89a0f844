package jetstream

import (
	"context"
	"errors"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/nats-io/nats.go"
)

// documents keeps the newest document of each topic in the streams.
type documents struct {
	// Static after newDocuments.
	link     *link
	streams  *streams
	contents *contents
	life     *lifetime
	health   *health
	epochs   *grid.Epochs
	writer   uint32           // this node's short name in documents
	inbox    []chan *nats.Msg // news of documents, one for each worker; a topic always has the same

	topics    *topics
	suspects  *suspects
	refreshes perSecond
}

const (
	workers  = 4
	inboxLen = 16 << 10 // messages; beyond it they are dropped, and everything is compared
	maxTries = 20       // of a write or read that others keep overtaking
)

func newDocuments(s *streams, life *lifetime, h *health) *documents {
	l := s.link
	d := &documents{
		link: l, streams: s, life: life, health: h, epochs: grid.NewEpochs(4), writer: writerOf(l.node),
		contents:  &contents{parts: &parts{link: l, streams: s, life: life}, link: l, life: life},
		refreshes: perSecond{limit: maxRefreshes},
	}
	d.topics = newTopics(d.newSlot)
	d.suspects = newSuspects(l, func(s *slot) error {
		_, err := d.newest(l.tasks.ctx, s, nil)
		return err
	})
	for range workers {
		d.inbox = append(d.inbox, make(chan *nats.Msg, inboxLen))
	}
	return d
}

func (d *documents) newSlot(topic string) *slot {
	return &slot{
		topic: topic, subject: d.link.docSubject(topic), stream: d.streams.of(topic), life: d.life,
		watches: make(map[*watch]struct{}), own: make(map[mark]*grid.Document),
	}
}

// Now implements grid.Documents.
func (d *documents) Now() time.Time { return d.life.clock.now() }

// Document implements grid.Documents.
func (d *documents) Document(ctx context.Context, topic string) (grid.Document, error) {
	s, err := d.topics.acquire(topic)
	if err != nil {
		return grid.Document{}, err
	}
	defer d.topics.release(s)
	return d.newest(ctx, s, nil)
}

// Recall implements grid.Documents.
func (d *documents) Recall(ctx context.Context, topic, once string) (freshet.Position, error) {
	s, err := d.topics.acquire(topic)
	if err != nil {
		return freshet.Position{}, err
	}
	defer d.topics.release(s)
	h, err := d.look(ctx, s)
	pos, _ := h.outcomes().Find(once)
	return pos, err
}

// Confirm implements grid.Documents.
func (d *documents) Confirm(ctx context.Context, topic string, pos freshet.Position) error {
	s, err := d.topics.acquire(topic)
	if err != nil {
		return err
	}
	defer d.topics.release(s)
	h := s.snapshot()
	if !h.known || h.pos() != pos {
		return grid.ErrConflict
	}
	proven, err := s.stream.prove(ctx, s.subject, h.seq)
	if err == nil && !proven {
		err = grid.ErrConflict
	}
	return err
}

// tombstoneTTL is how long a deletion is remembered, for nodes that were away.
const tombstoneTTL = time.Hour

// Delete implements grid.Documents.
func (d *documents) Delete(ctx context.Context, topic string) error {
	s, err := d.topics.acquire(topic)
	if err != nil {
		return err
	}
	defer d.topics.release(s)
	m := newMark()
	tombstone := &record{marks: []mark{m}}
	seq, err := s.stream.store(ctx, &write{subject: s.subject, expected: anySequence, ttl: tombstoneTTL, mark: m, body: seal(tombstone.marks, nil)})
	if err != nil {
		return err
	}
	s.mu.Lock()
	if s.head.relation(tombstone, seq) == newer {
		s.adopt(tombstone, seq, nil)
	}
	s.mu.Unlock()
	d.contents.parts.drop(topic, tombstone, seq)
	return nil
}

// newest reads the document from the leader and tells the watches if they do not know it. If welcome is not nil, it is run with
// the document while nothing else can happen to the slot.
func (d *documents) newest(ctx context.Context, s *slot, welcome func(grid.Document)) (grid.Document, error) {
	for range maxTries {
		rec, seq, content, err := d.read(ctx, s)
		if err != nil {
			return grid.Document{}, err
		}
		patch := rec.patch // which is not kept
		s.mu.Lock()
		relation := s.head.relation(rec, seq)
		if relation == newer {
			s.adopt(rec, seq, content)
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
		if err := d.rollBack(ctx, s, rec, seq, content); err != nil {
			return grid.Document{}, err
		}
	}
	return grid.Document{}, unknown(errors.New("the topic changes too quickly to read it"))
}

// look brings the head up to date.
func (d *documents) look(ctx context.Context, s *slot) (head, error) {
	if _, err := d.newest(ctx, s, nil); err != nil {
		return head{}, err
	}
	return s.snapshot(), nil
}

// read gets the newest message of the topic from the leader, with everything that belongs to it.
func (d *documents) read(ctx context.Context, s *slot) (*record, uint64, grid.Content, error) {
	for range maxTries {
		msg, err := s.stream.last(ctx, s.subject)
		if err != nil {
			return nil, 0, nil, err
		}
		rec, err := msg.record()
		if err != nil {
			return nil, 0, nil, freshet.Wrap(freshet.Internal, err, "A document in the cluster cannot be read")
		}
		content, err := d.contents.of(ctx, s.topic, rec)
		if errors.Is(err, errParts) {
			continue // replaced meanwhile
		}
		return rec, msg.seq, content, err
	}
	return nil, 0, nil, unknown(errParts)
}

// rollBack decides about a read that is older than the head: a leader that was replaced without knowing it, or a stream
// that lost its newest messages. Only a majority can tell.
func (d *documents) rollBack(ctx context.Context, s *slot, rec *record, seq uint64, content grid.Content) error {
	proven, err := s.stream.prove(ctx, s.subject, seq)
	if err != nil || !proven {
		return err
	}
	s.mu.Lock()
	past := s.head.pos()
	if rec.isTombstone() || rec.pos.Epoch != past.Epoch {
		s.adopt(rec, seq, content)
		s.mu.Unlock()
		return nil
	}
	s.mu.Unlock()
	// The same epoch went back: ids would repeat with other documents. What is left begins a new epoch.
	d.link.log.Error("the stream lost documents that were stored; beginning a new epoch", "topic", s.topic, "held", past.String(), "found", rec.pos.String())
	reborn := *rec
	m := newMark()
	reborn.marks = follow(m, rec.marks)
	reborn.pos, reborn.step, reborn.change, reborn.patch = freshet.Position{Epoch: d.epochs.Next(), Version: 1}, 1, changeWhole, nil
	reborn.trace = "" // nobody published it
	_, err = s.stream.store(ctx, d.write(s, &reborn, seq, rec.mark()))
	if errors.Is(err, grid.ErrConflict) || errors.Is(err, errOvertaken) {
		err = nil
	}
	return err
}
