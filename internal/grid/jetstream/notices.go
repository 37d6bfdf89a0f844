package jetstream

import (
	"bytes"
	"context"
	"encoding/binary"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/freshet-io/freshet/internal/grid"
	"github.com/nats-io/nats.go"
)

// notices are stored for some minutes and repeated by the stream. A node that missed one finds it there at its next look,
// two seconds later. Whoever sends one also asks every node whether it has it, so that a change is in effect everywhere
// before it is answered.
type notices struct {
	link      *link
	stream    *stream
	questions *questions
	listeners grid.Listeners[grid.Notice]
	outbox    *outbox
	sub       *nats.Subscription // static after listen

	telling sync.Mutex // held while listeners are told, so that whoever hears a notice twice knows that they were

	mu     sync.Mutex
	seen   uint64 // the sequence up to which notices were heard
	recent map[uint64]struct{}
}

const (
	noticeTTL  = 5 * time.Minute
	noticeBulk = 256 // in one request

	// noticePatience is how long a change waits for nodes that should be there and do not answer.
	noticePatience = 4 * time.Second
	noticeQuestion = "notice"
)

func newNotices(s *stream, q *questions) *notices {
	return &notices{link: s.link, stream: s, questions: q, outbox: newOutbox(), recent: make(map[uint64]struct{})}
}

// listen begins to hear. What was sent before concerns nobody who starts now.
func (n *notices) listen(ctx context.Context) error {
	var err error
	n.sub, err = n.link.conn.Subscribe(n.link.subject("noted", ">"), func(msg *nats.Msg) { n.hear(repeated(msg)) })
	if err != nil {
		return err
	}
	if err := n.link.conn.FlushWithContext(ctx); err != nil {
		return err
	}
	n.questions.Answer(noticeQuestion, func(_ context.Context, question []byte) ([]byte, error) {
		in := reader{rest: question}
		m := message{seq: in.uvarint(), data: in.rest}
		if in.err == nil {
			n.hear(m)
		}
		return nil, in.err
	})
	msg, err := n.stream.last(ctx, n.link.subject("note", ">"))
	n.mu.Lock()
	n.seen = max(n.seen, msg.seq)
	n.mu.Unlock()
	return err
}

// hear passes a notice on, once. When it returns, listeners have been told. A notice that is not stored has no sequence.
func (n *notices) hear(m message) {
	n.telling.Lock()
	defer n.telling.Unlock()
	twice := false
	if m.seq > 0 {
		n.mu.Lock()
		_, twice = n.recent[m.seq]
		n.recent[m.seq] = struct{}{}
		n.mu.Unlock()
	}
	sender, notice, ok := decodeNotice(m.data)
	if ok && !twice && sender != n.link.node {
		n.listeners.Tell(notice)
	}
}

// Notify implements grid.Notices. A notice that cannot be stored now is stored as soon as it can; nodes are told in any case.
func (n *notices) Notify(ctx context.Context, notice grid.Notice) error {
	n.listeners.Tell(notice)
	m, body := n.encode(notice)
	seq, err := n.store(ctx, m, body)
	if err != nil {
		n.outbox.add(notice)
	}
	if notice.Scope == grid.ScopeSource || notice.Scope == grid.ScopePoll {
		return nil // often, and nobody relies on it
	}
	ctx, cancel := context.WithTimeout(ctx, noticePatience)
	defer cancel()
	for _, a := range n.questions.askOthers(ctx, noticeQuestion, append(binary.AppendUvarint(nil, seq), body...)) {
		if a.Err != nil {
			n.link.log.Warn("a node did not confirm a notice; it learns of the change at its next look", "node", a.Node, "scope", string(notice.Scope), "err", a.Err)
		}
	}
	return nil
}

// Tell implements grid.Notices.
func (n *notices) Tell(notice grid.Notice) { n.listeners.Tell(notice) }

// OnNotice implements grid.Notices.
func (n *notices) OnNotice(fn func(grid.Notice)) (stop func()) { return n.listeners.Add(fn) }

func (n *notices) encode(notice grid.Notice) (mark, []byte) {
	m := newMark()
	return m, seal([]mark{m}, []byte(n.link.node+" "+string(notice.Scope)+" "+notice.ID))
}

func decodeNotice(body []byte) (sender string, notice grid.Notice, ok bool) {
	_, payload, err := unseal(body)
	node, rest, _ := bytes.Cut(payload, []byte(" "))
	scope, id, ok := strings.Cut(string(rest), " ")
	return string(node), grid.Notice{Scope: grid.Scope(scope), ID: id}, ok && err == nil
}

func (n *notices) store(ctx context.Context, m mark, body []byte) (seq uint64, err error) {
	subject := n.link.subject("note", strconv.FormatUint(uint64(m), 36))
	return n.stream.publish(ctx, &write{subject: subject, expected: anySequence, ttl: noticeTTL, body: body})
}

// run stores what could not be stored before.
func (n *notices) run() {
	ctx := n.link.tasks.ctx
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.outbox.wake:
		}
		for try := 0; ; try++ {
			next, ok := n.outbox.first()
			if !ok {
				break
			}
			m, body := n.encode(next)
			if _, err := n.store(ctx, m, body); err != nil {
				if !pause(ctx, backoff(try)) {
					return
				}
				continue
			}
			try = 0
			n.outbox.dropFirst()
		}
	}
}

// catchUp reads the notices since the last look.
func (n *notices) catchUp() {
	for {
		n.mu.Lock()
		since := n.seen
		n.mu.Unlock()
		found, newest := 0, since
		wanted := batch{NextOf: n.link.subject("note", ">"), Limit: noticeBulk, Seq: since + 1}
		_, err := n.stream.batch(n.link.tasks.ctx, wanted, func(m message) {
			found++
			newest = max(newest, m.seq)
			n.hear(m)
		})
		n.mu.Lock()
		n.seen = newest
		for seq := range n.recent {
			if seq <= newest {
				delete(n.recent, seq)
			}
		}
		n.mu.Unlock()
		if err != nil || found < noticeBulk {
			return
		}
	}
}

// outbox is the notices that could not be stored, oldest first.
type outbox struct {
	wake chan struct{} // holds one: there may be some

	mu  sync.Mutex
	all []grid.Notice
}

// maxUnsent bounds them; nodes were told of each already, if they could be reached.
const maxUnsent = 10_000

func newOutbox() *outbox { return &outbox{wake: make(chan struct{}, 1)} }

func (o *outbox) add(notice grid.Notice) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.all) < maxUnsent {
		o.all = append(o.all, notice)
	}
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

func (o *outbox) first() (notice grid.Notice, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.all) == 0 {
		return notice, false
	}
	return o.all[0], true
}

func (o *outbox) dropFirst() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = o.all[1:]
}
