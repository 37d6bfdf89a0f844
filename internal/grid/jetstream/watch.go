package jetstream

import (
	"context"
	"sync"
	"time"

	"github.com/freshet-io/freshet/internal/grid"
	"github.com/nats-io/nats.go"
)

// Watch implements grid.Documents.
func (d *documents) Watch(ctx context.Context, topic string, changed func(grid.Document)) (stop func(), err error) {
	s, err := d.topics.acquire(topic)
	if err != nil {
		return nil, err
	}
	w := &watch{changed: changed}
	if err := d.watch(ctx, s, w); err != nil {
		d.topics.release(s)
		return nil, err
	}
	return sync.OnceFunc(func() {
		s.mu.Lock()
		delete(s.watches, w)
		s.mu.Unlock()
		d.topics.release(s)
	}), nil
}

// watch adds a watch. What is published from now on is heard; what was published before is read.
func (d *documents) watch(ctx context.Context, s *slot, w *watch) error {
	if err := d.follow(ctx, s); err != nil {
		return unknown(err)
	}
	_, err := d.newest(ctx, s, func(doc grid.Document) {
		w.changed(doc)
		s.watches[w] = struct{}{}
		s.arm()
		if s.unheard > s.head.seq { // it came after the message that was read
			d.suspects.add(s)
		}
	})
	return err
}

// follow subscribes to the topic's news and returns once the servers know it.
func (d *documents) follow(ctx context.Context, s *slot) error {
	s.following.Lock()
	defer s.following.Unlock()
	if s.sub != nil {
		return nil
	}
	sub, err := d.link.conn.ChanSubscribe(d.link.newSubject(s.topic), d.inbox[shardOf(s.topic)%workers])
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if err := d.link.conn.FlushWithContext(ctx); err != nil {
		_ = sub.Unsubscribe()
		return err
	}
	s.sub = sub
	return nil
}

// run takes news of documents.
func (d *documents) run(inbox <-chan *nats.Msg) {
	for {
		select {
		case <-d.link.tasks.ctx.Done():
			return
		case msg := <-inbox:
			d.hear(repeated(msg))
		}
	}
}

// hear takes a message that may be the newest of its topic, or any older one.
func (d *documents) hear(msg message) {
	s := d.topics.find(lastToken(msg.subject))
	if s == nil || msg.seq == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.watches) == 0 {
		s.unheard = max(s.unheard, msg.seq)
		return
	}
	if s.head.known && msg.seq <= s.head.seq {
		if msg.seq == s.head.seq {
			s.heard = time.Now()
		}
		return // known already, like all that this node wrote itself
	}
	rec, err := msg.record()
	if err != nil {
		d.link.log.Error("news of a document cannot be read", "topic", s.topic, "err", err)
		return
	}
	switch s.head.relation(rec, msg.seq) {
	case same:
	case backwards:
		d.suspects.add(s)
	case newer:
		content, ok := rec.contentAfter(&s.head)
		if own := s.own[rec.mark()]; own != nil {
			content, ok = own.Content, true
		}
		if !ok {
			d.suspects.add(s)
			return
		}
		s.adopt(rec, msg.seq, content)
	}
}

// contentAfter returns the content of a record as far as it can be had without asking anybody: all of it, or what leads on from the
// head.
func (r *record) contentAfter(h *head) (grid.Content, bool) {
	switch {
	case r.isTombstone():
		return nil, true
	case r.base.parts == 0 && len(r.segments) == 0 && len(r.deltas) == 0:
		return grid.Raw(r.base.inline), true
	case !h.none() && h.rec.pos.Epoch == r.pos.Epoch && r.covers(h.rec.step):
		return grid.Steps{Deltas: r.deltas[len(r.deltas)-int(r.step-h.rec.step):]}, true
	}
	return nil, false
}
