package jetstream

import (
	"bytes"
	"context"
	"encoding/binary"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/freshet-io/freshet/internal/grid"
)

// Notices are stored for some minutes and repeated by the stream. A node that missed one finds it there at its next look,
// two seconds later. Whoever sends one also asks every node whether it has it, so that a change is in effect everywhere
// before it is answered.

const (
	noticeTTL  = 5 * time.Minute
	maxUnsent  = 10_000
	noticeBulk = 256 // in one request

	// noticePatience is how long a change waits for nodes that should be there and do not answer.
	noticePatience = 4 * time.Second
	noticeQuestion = "notice"
)

type natsNotices struct {
	listeners grid.Listeners[grid.Notice]
	sub       *nats.Subscription // static after listenNotices

	telling sync.Mutex // held while listeners are told, so that whoever hears a notice twice knows that they were

	mu     sync.Mutex
	seen   uint64 // the sequence up to which notices were heard
	recent map[uint64]struct{}
	unsent []grid.Notice
	wake   chan struct{} // holds one
}

// listenNotices begins to hear. What was sent before concerns nobody who starts now.
func (n *Grid) listenNotices(ctx context.Context) error {
	n.notices.wake = make(chan struct{}, 1)
	n.notices.recent = make(map[uint64]struct{})
	var err error
	n.notices.sub, err = n.conn.Subscribe(n.subject("noted", ">"), func(msg *nats.Msg) {
		seq, _ := strconv.ParseUint(msg.Header.Get("Nats-Sequence"), 10, 64)
		n.noticed(message{seq: seq, data: msg.Data})
	})
	if err != nil {
		return err
	}
	if err := n.conn.FlushWithContext(ctx); err != nil {
		return err
	}
	n.Answer(noticeQuestion, func(_ context.Context, question []byte) ([]byte, error) {
		in := reader{rest: question}
		m := message{seq: in.uvarint(), data: in.rest}
		if in.err == nil {
			n.noticed(m)
		}
		return nil, in.err
	})
	msg, err := n.last(ctx, n.subject("note", ">"))
	n.notices.mu.Lock()
	n.notices.seen = max(n.notices.seen, msg.seq)
	n.notices.mu.Unlock()
	return err
}

// noticed passes a notice on, once. When it returns, listeners have been told. A notice that is not stored has no sequence.
func (n *Grid) noticed(m message) {
	c := &n.notices
	c.telling.Lock()
	defer c.telling.Unlock()
	twice := false
	if m.seq > 0 {
		c.mu.Lock()
		_, twice = c.recent[m.seq]
		c.recent[m.seq] = struct{}{}
		c.mu.Unlock()
	}
	_, payload, err := unseal(m.data)
	if twice || err != nil {
		return
	}
	sender, rest, _ := bytes.Cut(payload, []byte(" "))
	scope, id, ok := strings.Cut(string(rest), " ")
	if ok && string(sender) != n.node {
		c.listeners.Tell(grid.Notice{Scope: grid.Scope(scope), ID: id})
	}
}

// Notify implements grid.Notices. A notice that cannot be stored now is stored as soon as it can; nodes are told in any case.
func (n *Grid) Notify(ctx context.Context, notice grid.Notice) error {
	n.notices.listeners.Tell(notice)
	m, body := n.encodeNotice(notice)
	seq, err := n.storeNotice(ctx, m, body)
	if err != nil {
		n.storeLater(notice)
	}
	if notice.Scope == grid.ScopeSource || notice.Scope == grid.ScopePoll {
		return nil // often, and nobody relies on it
	}
	ctx, cancel := context.WithTimeout(ctx, noticePatience)
	defer cancel()
	for _, a := range n.askOthers(ctx, noticeQuestion, append(binary.AppendUvarint(nil, seq), body...)) {
		if a.Err != nil {
			n.log.Warn("a node did not confirm a notice; it learns of the change at its next look", "node", a.Node, "scope", string(notice.Scope), "err", a.Err)
		}
	}
	return nil
}

func (n *Grid) storeLater(notice grid.Notice) {
	c := &n.notices
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.unsent) < maxUnsent {
		c.unsent = append(c.unsent, notice)
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (n *Grid) encodeNotice(notice grid.Notice) (mark, []byte) {
	m := newMark()
	return m, seal([]mark{m}, []byte(n.node+" "+string(notice.Scope)+" "+notice.ID))
}

func (n *Grid) storeNotice(ctx context.Context, m mark, body []byte) (seq uint64, err error) {
	subject := n.subject("note", strconv.FormatUint(uint64(m), 36))
	return n.publish(ctx, &write{subject: subject, expected: anySequence, ttl: noticeTTL, body: body})
}

// Tell implements grid.Notices.
func (n *Grid) Tell(notice grid.Notice) { n.notices.listeners.Tell(notice) }

// OnNotice implements grid.Notices.
func (n *Grid) OnNotice(fn func(grid.Notice)) (stop func()) { return n.notices.listeners.Add(fn) }

// sendNotices sends what could not be sent before.
func (n *Grid) sendNotices() {
	c := &n.notices
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-c.wake:
		}
		for try := 0; ; try++ {
			c.mu.Lock()
			if len(c.unsent) == 0 {
				c.mu.Unlock()
				break
			}
			next := c.unsent[0]
			c.mu.Unlock()
			m, body := n.encodeNotice(next)
			if _, err := n.storeNotice(n.ctx, m, body); err != nil {
				if !pause(n.ctx, backoff(try)) {
					return
				}
				continue
			}
			try = 0
			c.mu.Lock()
			c.unsent = c.unsent[1:]
			c.mu.Unlock()
		}
	}
}

// repairNotices reads the notices since the last look.
func (n *Grid) repairNotices() {
	c := &n.notices
	for {
		c.mu.Lock()
		since := c.seen
		c.mu.Unlock()
		found, newest := 0, since
		_, err := n.batch(n.ctx, n.valuesStream(), map[string]any{"seq": since + 1, "next_by_subj": n.subject("note", ">"), "batch": noticeBulk}, func(m message) {
			found++
			newest = max(newest, m.seq)
			n.noticed(m)
		})
		c.mu.Lock()
		c.seen = newest
		for seq := range c.recent {
			if seq <= newest {
				delete(c.recent, seq)
			}
		}
		c.mu.Unlock()
		if err != nil || found < noticeBulk {
			return
		}
	}
}
