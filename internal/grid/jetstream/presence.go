package jetstream

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/freshet-io/freshet/internal/grid"
	"github.com/nats-io/nats.go"
)

// presence is a subscription. A node that has subscribers of a topic listens to the topic's presence subject; whoever asks
// gets an answer, or learns from the server at once that nobody listens. Servers forget the subscriptions of a node
// that died, so there is nothing to clean up.
//
// They also forget those of a node that only lost its link, or whose server lost its peers. So "nobody listens" counts only if
// every node that there may be says so itself.
//
// Who wants to know of comings and goings hears announcements, and keeps a roster of them.
type presence struct {
	link      *link
	questions *questions
	asked     chan *nats.Msg
	news      chan *nats.Msg

	mu       sync.Mutex // held while listeners are called: that keeps "came" and "left" in order
	joined   map[string]*joining
	roster   *roster
	watchers int
	sub      *nats.Subscription // to announcements, while there are watchers

	announced time.Time // owned by the goroutine that repairs
}

const (
	announceEvery = 3 * beatEvery
	announceBulk  = 1000 // topics in one message

	presenceQuestion = "presence"

	// doubtful is how long after a fault, or its start, a node does not rely on knowing all others: by then they have said that they are
	// there, several times.
	doubtful = 5 * beatEvery
)

type joining struct {
	calls int
	sub   *nats.Subscription
}

func newPresence(l *link, q *questions) *presence {
	return &presence{
		link: l, questions: q, asked: make(chan *nats.Msg, inboxLen), news: make(chan *nats.Msg, inboxLen),
		joined: make(map[string]*joining), roster: newRoster(),
	}
}

func (p *presence) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.roster = newRoster() // without listeners
}

func (p *presence) subject(topic string) string { return p.link.subject("here", token(topic)) }

// listen hears who wants to know everything: a node that has just started to listen. It also answers for this node alone.
func (p *presence) listen() error {
	p.questions.Answer(presenceQuestion, func(_ context.Context, topic []byte) ([]byte, error) {
		if p.isHere(string(topic)) {
			return topic, nil
		}
		return nil, nil
	})
	_, err := p.link.conn.ChanSubscribe(p.link.subject("who", "all"), p.asked)
	return err
}

func (p *presence) isHere(topic string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.joined[topic] != nil
}

// Join implements grid.Presence.
func (p *presence) Join(ctx context.Context, topic string) (leave func(), err error) {
	first, err := p.join(topic)
	if err != nil {
		return nil, err
	}
	if first {
		// Whoever asks from now on must see it. Without a connection nobody can be told; the servers learn of it with the next one.
		ctx, cancel := context.WithTimeout(ctx, tryTimeout)
		defer cancel()
		_ = p.link.conn.FlushWithContext(ctx)
	}
	return sync.OnceFunc(func() { p.leave(topic) }), nil
}

// join counts a call in and reports whether it is the first.
func (p *presence) join(topic string) (first bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	j := p.joined[topic]
	if first = j == nil; first {
		sub, err := p.link.conn.ChanQueueSubscribe(p.subject(topic), "here", p.asked)
		if err != nil {
			return false, unknown(err)
		}
		j = &joining{sub: sub}
		p.joined[topic] = j
		p.roster.came(topic)
		p.announce(announceJoined, topic)
	}
	j.calls++
	return first, nil
}

func (p *presence) leave(topic string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	j := p.joined[topic]
	if j.calls--; j.calls > 0 {
		return
	}
	delete(p.joined, topic)
	_ = j.sub.Unsubscribe() // fails only if the connection is closed
	p.roster.left(topic)
	p.announce(announceLeft, topic)
}

// Present implements grid.Presence.
func (p *presence) Present(ctx context.Context, topic string) (bool, error) {
	if p.isHere(topic) {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	_, err := p.link.conn.RequestWithContext(ctx, p.subject(topic), nil)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, nats.ErrNoResponders):
		return p.presentSomewhere(ctx, topic)
	}
	return false, unknown(err) // somebody may listen, and be busy
}

// presentSomewhere asks every other node that there may be.
func (p *presence) presentSomewhere(ctx context.Context, topic string) (bool, error) {
	if p.link.faults.since() < doubtful {
		return false, grid.ErrDoubt
	}
	all, silent := p.questions.members.known(presenceQuestion)
	if silent {
		return false, grid.ErrDoubt
	}
	answers := p.questions.askEach(ctx, all, presenceQuestion, []byte(topic))
	if slices.ContainsFunc(answers, func(a grid.Answer) bool { return a.Err == nil && len(a.Data) > 0 }) {
		return true, nil
	}
	if slices.ContainsFunc(answers, func(a grid.Answer) bool { return a.Err != nil }) {
		return false, grid.ErrDoubt
	}
	return false, nil
}

// run answers whoever asks, and keeps the roster.
func (p *presence) run() {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		select {
		case <-p.link.tasks.ctx.Done():
			return
		case msg := <-p.asked:
			if msg.Reply == "" {
				p.announceEverything()
				continue
			}
			_ = msg.Respond([]byte(p.link.node)) // whoever asked asks again
		case msg := <-p.news:
			p.hear(msg)
		case <-tick.C:
			p.mu.Lock()
			p.roster.forgetSilent()
			p.mu.Unlock()
		}
	}
}

// hear takes the announcement of another node.
func (p *presence) hear(msg *nats.Msg) {
	node, kind, rest, ok := parseAnnouncement(msg.Data)
	if !ok || node == p.link.node {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.watchers > 0 {
		p.roster.announced(node, kind, rest)
	}
}

// announce tells the others, who hear it again with the next round.
func (p *presence) announce(kind string, rest ...string) {
	_ = p.link.conn.Publish(p.link.subject("join", "all"), announcement(p.link.node, kind, rest...))
}

// announceAgain repeats what was joined, now and then.
func (p *presence) announceAgain() {
	if time.Since(p.announced) >= announceEvery {
		p.announced = time.Now()
		p.announceEverything()
	}
}

func (p *presence) announceEverything() {
	p.mu.Lock()
	topics := make([]string, 0, len(p.joined))
	for topic := range p.joined {
		topics = append(topics, topic)
	}
	p.mu.Unlock()
	round := strings.ToLower(rand.Text()[:8])
	for chunk := range slices.Chunk(topics, announceBulk) {
		p.announce(announceAll, append([]string{round}, chunk...)...)
	}
	p.announce(announceEnd, round)
}

// OnPresence implements grid.Presence.
func (p *presence) OnPresence(fn func(topic string, present bool)) (stop func()) {
	p.mu.Lock()
	if p.watchers++; p.watchers == 1 {
		if sub, err := p.link.conn.ChanSubscribe(p.link.subject("join", "all"), p.news); err == nil {
			p.sub = sub
		}
	}
	remove := p.roster.listeners.Add(func(a arrival) { fn(a.topic, a.present) })
	p.mu.Unlock()
	_ = p.link.conn.Publish(p.link.subject("who", "all"), nil)
	return sync.OnceFunc(func() {
		remove()
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.watchers--; p.watchers == 0 && p.sub != nil {
			_ = p.sub.Unsubscribe()
			p.sub = nil
			p.roster.forgetOthers()
		}
	})
}
