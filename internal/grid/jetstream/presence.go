package jetstream

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/freshet-io/freshet/internal/grid"
)

// Presence is a subscription. A node that has subscribers of a topic listens to the topic's presence subject; whoever asks
// gets an answer, or learns from the server at once that nobody listens. Servers forget the subscriptions of a node
// that died, so there is nothing to clean up.
//
// They also forget those of a node that only lost its link, or whose server lost its peers. So "nobody listens" counts only if
// every node that there may be says so itself.
//
// Who wants to know of comings and goings hears announcements: a node tells what it joined and left, and repeats all of
// it every few seconds, so that a lost announcement and a dead node are noticed.

const (
	announceEvery = 3 * beatEvery
	silentAfter   = 10 * time.Second // a node that announced nothing for so long is gone
	announceBulk  = 1000             // topics in one message

	presenceQuestion = "presence"

	// doubtful is how long after a fault, or its start, a node does not rely on knowing all others: by then they have said that they are
	// there, several times.
	doubtful = 5 * beatEvery
)

type natsPresence struct {
	asked chan *nats.Msg
	news  chan *nats.Msg

	mu       sync.Mutex // held while listeners are called: that keeps "came" and "left" in order
	joined   map[string]*joining
	fns      grid.Listeners[presenceNews]
	watchers int
	others   map[string]*otherNode
	anywhere map[string]int // how many nodes are there, by topic, this one included
	sub      *nats.Subscription

	announced time.Time // owned by repair
}

type presenceNews struct {
	topic   string
	present bool
}

type joining struct {
	calls int
	sub   *nats.Subscription
}

type otherNode struct {
	heard  time.Time
	topics map[string]string // and the round in which they were last announced
}

func (p *natsPresence) init() {
	p.asked = make(chan *nats.Msg, inboxLen)
	p.news = make(chan *nats.Msg, inboxLen)
	p.joined = make(map[string]*joining)
	p.others = make(map[string]*otherNode)
	p.anywhere = make(map[string]int)
}

func (p *natsPresence) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fns = grid.Listeners[presenceNews]{}
}

func (n *Grid) presenceSubject(topic string) string { return n.subject("here", token(topic)) }

// listenPresence hears who wants to know everything: a node that has just begun to listen. And it answers for this node alone.
func (n *Grid) listenPresence() error {
	n.Answer(presenceQuestion, func(_ context.Context, topic []byte) ([]byte, error) {
		if n.presence.isHere(string(topic)) {
			return topic, nil
		}
		return nil, nil
	})
	_, err := n.conn.ChanSubscribe(n.subject("who", "all"), n.presence.asked)
	return err
}

func (p *natsPresence) isHere(topic string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.joined[topic] != nil
}

// Join implements grid.Presence.
func (n *Grid) Join(ctx context.Context, topic string) (leave func(), err error) {
	first, err := n.join(topic)
	if err != nil {
		return nil, err
	}
	if first {
		// Whoever asks from now on must see it. Without a connection nobody can be told; the servers learn of it with the next one.
		ctx, cancel := context.WithTimeout(ctx, tryTimeout)
		defer cancel()
		_ = n.conn.FlushWithContext(ctx)
	}
	return sync.OnceFunc(func() { n.leave(topic) }), nil
}

// join counts a call in and reports whether it is the first.
func (n *Grid) join(topic string) (first bool, err error) {
	p := &n.presence
	p.mu.Lock()
	defer p.mu.Unlock()
	j := p.joined[topic]
	if first = j == nil; first {
		sub, err := n.conn.ChanQueueSubscribe(n.presenceSubject(topic), "here", p.asked)
		if err != nil {
			return false, unknown(err)
		}
		j = &joining{sub: sub}
		p.joined[topic] = j
		p.came(topic)
		n.announce("+", topic)
	}
	j.calls++
	return first, nil
}

func (n *Grid) leave(topic string) {
	p := &n.presence
	p.mu.Lock()
	defer p.mu.Unlock()
	j := p.joined[topic]
	if j.calls--; j.calls > 0 {
		return
	}
	delete(p.joined, topic)
	_ = j.sub.Unsubscribe() // fails only if the connection is closed
	p.went(topic)
	n.announce("-", topic)
}

func (p *natsPresence) came(topic string) {
	if p.anywhere[topic]++; p.anywhere[topic] == 1 {
		p.fns.Tell(presenceNews{topic, true})
	}
}

func (p *natsPresence) went(topic string) {
	if p.anywhere[topic]--; p.anywhere[topic] <= 0 {
		delete(p.anywhere, topic)
		p.fns.Tell(presenceNews{topic, false})
	}
}

// Present implements grid.Presence.
func (n *Grid) Present(ctx context.Context, topic string) (bool, error) {
	if n.presence.isHere(topic) {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	_, err := n.conn.RequestWithContext(ctx, n.presenceSubject(topic), nil)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, nats.ErrNoResponders):
		return n.presentSomewhere(ctx, topic)
	}
	return false, unknown(err) // somebody may listen, and be busy
}

// presentSomewhere asks every other node that there may be.
func (n *Grid) presentSomewhere(ctx context.Context, topic string) (bool, error) {
	if n.sinceFault() < doubtful {
		return false, grid.ErrDoubt
	}
	all, silent := n.nodes.known(presenceQuestion)
	if silent {
		return false, grid.ErrDoubt
	}
	answers := n.askEach(ctx, all, presenceQuestion, []byte(topic))
	if slices.ContainsFunc(answers, func(a grid.Answer) bool { return a.Err == nil && len(a.Data) > 0 }) {
		return true, nil
	}
	if slices.ContainsFunc(answers, func(a grid.Answer) bool { return a.Err != nil }) {
		return false, grid.ErrDoubt
	}
	return false, nil
}

// answerPresence answers whoever asks.
func (n *Grid) answerPresence() {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		select {
		case <-n.ctx.Done():
			return
		case msg := <-n.presence.asked:
			if msg.Reply == "" {
				n.announceEverything()
				continue
			}
			_ = msg.Respond([]byte(n.node)) // whoever asked asks again
		case msg := <-n.presence.news:
			n.announcedBy(msg)
		case <-tick.C:
			n.forgetSilent()
		}
	}
}

// announce tells a change. The caller holds presence.mu.
func (n *Grid) announce(kind, topic string) {
	_ = n.conn.Publish(n.subject("join", "all"), []byte(n.node+" "+kind+" "+topic)) // repeated anyway
}

// announceAll repeats what was joined, now and then.
func (n *Grid) announceAll() {
	if p := &n.presence; time.Since(p.announced) >= announceEvery {
		p.announced = time.Now()
		n.announceEverything()
	}
}

func (n *Grid) announceEverything() {
	p := &n.presence
	p.mu.Lock()
	topics := make([]string, 0, len(p.joined))
	for topic := range p.joined {
		topics = append(topics, topic)
	}
	p.mu.Unlock()
	round := newSalt(8)
	for chunk := range slices.Chunk(topics, announceBulk) {
		_ = n.conn.Publish(n.subject("join", "all"), []byte(n.node+" = "+round+" "+strings.Join(chunk, " ")))
	}
	_ = n.conn.Publish(n.subject("join", "all"), []byte(n.node+" . "+round)) // all that is left of earlier rounds is over
}

// OnPresence implements grid.Presence.
func (n *Grid) OnPresence(fn func(topic string, present bool)) (stop func()) {
	p := &n.presence
	p.mu.Lock()
	if p.watchers++; p.watchers == 1 {
		if sub, err := n.conn.ChanSubscribe(n.subject("join", "all"), p.news); err == nil {
			p.sub = sub
		}
	}
	p.mu.Unlock()
	remove := p.fns.Add(func(news presenceNews) { fn(news.topic, news.present) })
	_ = n.conn.Publish(n.subject("who", "all"), nil)
	return sync.OnceFunc(func() {
		remove()
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.watchers--; p.watchers == 0 && p.sub != nil {
			_ = p.sub.Unsubscribe()
			p.sub = nil
			clear(p.others)
			clear(p.anywhere)
			for topic := range p.joined {
				p.anywhere[topic] = 1
			}
		}
	})
}

// announcedBy takes the announcement of another node.
func (n *Grid) announcedBy(msg *nats.Msg) {
	fields := strings.Fields(string(msg.Data))
	if len(fields) < 3 || fields[0] == n.node {
		return
	}
	p := &n.presence
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.watchers == 0 {
		return
	}
	o := p.others[fields[0]]
	if o == nil {
		o = &otherNode{topics: make(map[string]string)}
		p.others[fields[0]] = o
	}
	o.heard = time.Now()
	switch fields[1] {
	case "+":
		p.add(o, fields[2], "")
	case "-":
		p.remove(o, fields[2])
	case "=":
		for _, topic := range fields[3:] {
			p.add(o, topic, fields[2])
		}
	case ".":
		for topic, round := range o.topics {
			// What came while the round was told is in no round yet; the next one decides.
			if round != fields[2] && round != "" {
				p.remove(o, topic)
			} else if round == "" {
				o.topics[topic] = "?"
			}
		}
	}
}

func (p *natsPresence) add(o *otherNode, topic, round string) {
	_, known := o.topics[topic]
	o.topics[topic] = round
	if !known {
		p.came(topic)
	}
}

func (p *natsPresence) remove(o *otherNode, topic string) {
	if _, known := o.topics[topic]; known {
		delete(o.topics, topic)
		p.went(topic)
	}
}

// forgetSilent takes nodes that said nothing for some time as gone.
func (n *Grid) forgetSilent() {
	p := &n.presence
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, o := range p.others {
		if time.Since(o.heard) < silentAfter {
			continue
		}
		delete(p.others, id)
		for topic := range o.topics {
			p.went(topic)
		}
	}
}
