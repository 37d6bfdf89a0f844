package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/nats-io/nats.go"
)

// Nodes know of each other what they need to wait for each other: every node says every two seconds that it is there and which
// questions it answers. One that starts asks the others to say so at once; one that stops says goodbye; one that died is known
// by the servers, which tell whoever asks it that nobody listens; one that was silent for some seconds is not asked any more. But whether it
// died, or was only cut off and still has its subscribers, nobody can tell; so it is remembered for some minutes.

const (
	nodeSilent = 3 * beatEvery
	nodeGone   = 5 * time.Minute // a node that said no goodbye and was silent for so long is dead
	askTimeout = 5 * time.Second // unless whoever asks is less patient
	maxAsked   = 64              // questions that a node works on at a time
)

type natsNodes struct {
	answers grid.Answerers
	slots   chan struct{} // one for each question being answered

	mu    sync.Mutex
	peers map[string]*peer
}

// peer is another node.
type peer struct {
	heard time.Time
	lost  bool            // it cannot be asked, until it is heard again
	names map[string]bool // of questions that it answers
}

// isSilent reports whether it is not worth asking.
func (p *peer) isSilent() bool { return p.lost || time.Since(p.heard) > nodeSilent }

func (p *natsNodes) init() {
	p.slots = make(chan struct{}, maxAsked)
	p.peers = make(map[string]*peer)
}

// listenNodes begins to hear of other nodes and to be asked. It returns once the servers know it.
func (n *Grid) listenNodes(ctx context.Context) error {
	_, err1 := n.conn.Subscribe(n.subject("node", "all"), n.heardOf)
	_, err2 := n.conn.Subscribe(n.subject("ask", n.node, "*"), n.asked)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if err := n.conn.FlushWithContext(ctx); err != nil {
		return err
	}
	n.sayNode("hello")
	return nil
}

// sayNode tells the others about this node: "hello" asks them to do the same, "here" does not, "bye" is the last word.
func (n *Grid) sayNode(word string) {
	text := strings.Join(append([]string{n.node, word}, n.nodes.answers.Names()...), " ")
	_ = n.conn.Publish(n.subject("node", "all"), []byte(text)) // repeated anyway
}

func (n *Grid) heardOf(msg *nats.Msg) {
	fields := strings.Fields(string(msg.Data))
	if len(fields) < 2 || fields[0] == n.node {
		return
	}
	p := &n.nodes
	p.mu.Lock()
	defer p.mu.Unlock()
	if fields[1] == "bye" {
		delete(p.peers, fields[0])
		return
	}
	known := &peer{heard: time.Now(), names: make(map[string]bool)}
	for _, name := range fields[2:] {
		known.names[name] = true
	}
	p.peers[fields[0]] = known
	if fields[1] == "hello" {
		n.sayNode("here")
	}
}

// expected are the other nodes that should answer to a name.
func (p *natsNodes) expected(name string) []string {
	all, _ := p.known(name)
	return all
}

// known are the other nodes that should answer to a name, and whether there may be more that cannot be asked.
func (p *natsNodes) known(name string) (all []string, silent bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, peer := range p.peers {
		switch {
		case time.Since(peer.heard) > nodeGone:
			delete(p.peers, id)
		case peer.isSilent():
			silent = true
		case peer.names[name]:
			all = append(all, id)
		}
	}
	slices.Sort(all)
	return all, silent
}

// Answer implements grid.Questions.
func (n *Grid) Answer(name string, fn grid.Answerer) (stop func()) {
	remove := n.nodes.answers.Add(name, fn)
	// Nodes of one queue share the questions that one of them shall answer.
	sub, err := n.conn.QueueSubscribe(n.subject("ask", "one", name), "one", n.asked)
	if err == nil {
		_ = n.conn.FlushTimeout(tryTimeout) // without a connection the server learns of it later
	}
	n.sayNode("here")
	return sync.OnceFunc(func() {
		remove()
		if err == nil {
			_ = sub.Unsubscribe() // fails only if the connection is closed
		}
		n.sayNode("here")
	})
}

// asked answers a question in a goroutine of its own. The last token of the subject is its name.
func (n *Grid) asked(msg *nats.Msg) {
	fn := n.nodes.answers.For(msg.Subject[strings.LastIndexByte(msg.Subject, '.')+1:])
	in := reader{rest: msg.Data}
	question := in.packed()
	if fn == nil || in.err != nil || msg.Reply == "" {
		return
	}
	select {
	case n.nodes.slots <- struct{}{}:
	default:
		_ = msg.Respond(n.encodeAnswer(nil, freshet.Errorf(freshet.Unavailable, "The node is too busy to answer, please try again")))
		return
	}
	n.spawn(func() {
		defer func() { <-n.nodes.slots }()
		ctx, cancel := context.WithTimeout(n.ctx, askTimeout)
		defer cancel()
		answer := n.encodeAnswer(fn(ctx, question))
		if len(answer) > n.maxPayload {
			answer = n.encodeAnswer(nil, freshet.Errorf(freshet.TooLarge, "The answer of a node is too long to be sent"))
		}
		_ = msg.Respond(answer) // whoever asked notices
	})
}

// wireError is an error as nodes tell it to each other: without its cause, which stays where it happened.
type wireError struct {
	Kind   freshet.Kind         `json:"kind"`
	Msg    string               `json:"msg"`
	Fields []freshet.FieldError `json:"fields,omitempty"`
	Retry  time.Duration        `json:"retry,omitempty"`
}

func (n *Grid) encodeAnswer(data []byte, err error) []byte {
	out := appendBytes(nil, []byte(n.node))
	if err == nil {
		return appendPacked(append(out, 1), data)
	}
	w := wireError{Kind: freshet.Internal, Msg: "The node failed"}
	if e, ok := errors.AsType[*freshet.Error](err); ok {
		w = wireError{e.Kind, e.Msg, e.Fields, e.RetryAfter}
	} else {
		n.log.Error("a question of another node could not be answered", "err", err)
	}
	text, _ := json.Marshal(w) // plain values
	return appendPacked(append(out, 0), text)
}

func decodeAnswer(data []byte) grid.Answer {
	in := reader{rest: data}
	a := grid.Answer{Node: string(in.bytes())}
	fine, text := in.byte() == 1, in.packed()
	var w wireError
	switch {
	case in.err != nil:
		a.Err = in.err
	case fine:
		a.Data = text
	case json.Unmarshal(text, &w) != nil:
		a.Err = errFormat
	default:
		a.Err = &freshet.Error{Kind: w.Kind, Msg: w.Msg, Fields: w.Fields, RetryAfter: w.Retry}
	}
	return a
}

// Ask implements grid.Questions.
func (n *Grid) Ask(ctx context.Context, name string, question []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if fn := n.nodes.answers.For(name); fn != nil {
		return fn(ctx, question)
	}
	msg, err := n.conn.RequestWithContext(ctx, n.subject("ask", "one", name), appendPacked(nil, question))
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return nil, grid.ErrNobody(name)
	case err != nil:
		return nil, unknown(err)
	}
	a := decodeAnswer(msg.Data)
	return a.Data, a.Err
}

// AskAll implements grid.Questions.
func (n *Grid) AskAll(ctx context.Context, name string, question []byte) []grid.Answer {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var all []grid.Answer
	var own sync.WaitGroup
	if fn := n.nodes.answers.For(name); fn != nil {
		all = append(all, grid.Answer{Node: n.node})
		own.Go(func() { all[0].Data, all[0].Err = fn(ctx, question) })
	}
	others := n.askOthers(ctx, name, question)
	own.Wait()
	all = append(all, others...)
	slices.SortFunc(all, func(a, b grid.Answer) int { return strings.Compare(a.Node, b.Node) })
	return all
}

// askOthers asks the other nodes that should answer. Those that turn out to have no connection are not in the list.
func (n *Grid) askOthers(ctx context.Context, name string, question []byte) []grid.Answer {
	all := n.askEach(ctx, n.nodes.expected(name), name, question)
	return slices.DeleteFunc(all, func(a grid.Answer) bool { return errors.Is(a.Err, nats.ErrNoResponders) })
}

// askEach asks some nodes. There is an answer for each of them.
func (n *Grid) askEach(ctx context.Context, nodes []string, name string, question []byte) []grid.Answer {
	all := make([]grid.Answer, len(nodes))
	body := appendPacked(nil, question)
	var wg sync.WaitGroup
	for i, id := range nodes {
		wg.Go(func() {
			msg, err := n.conn.RequestWithContext(ctx, n.subject("ask", id, name), body)
			if err == nil {
				all[i] = decodeAnswer(msg.Data)
				return
			}
			all[i] = grid.Answer{Node: id, Err: unknown(err)}
			if errors.Is(err, nats.ErrNoResponders) {
				n.nodes.lose(id)
			}
		})
	}
	wg.Wait()
	return all
}

// lose takes a node as gone. If it only lost its connection, it says so when it is back.
func (p *natsNodes) lose(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if peer := p.peers[id]; peer != nil {
		peer.lost = true
	}
}
