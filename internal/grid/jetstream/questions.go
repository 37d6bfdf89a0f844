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

// questions are what nodes ask each other, over core NATS: each node listens under its own name, and those that answer to a name share
// the questions that any one of them shall answer.
type questions struct {
	link      *link
	members   *members
	answerers *grid.Answerers
	working   chan struct{} // a semaphore: one for each question being answered
}

const (
	askTimeout = 5 * time.Second // unless whoever asks is less patient
	maxAsked   = 64              // questions that a node works on at a time
)

func newQuestions(l *link) *questions {
	answerers := &grid.Answerers{}
	return &questions{link: l, members: newMembers(l, answerers.Names), answerers: answerers, working: make(chan struct{}, maxAsked)}
}

// listen begins to hear of other nodes and to be asked. It returns once the servers know it.
func (q *questions) listen(ctx context.Context) error {
	_, err := q.link.conn.Subscribe(q.link.subject("ask", q.link.node, "*"), q.asked)
	if err := errors.Join(q.members.listen(), err); err != nil {
		return err
	}
	if err := q.link.conn.FlushWithContext(ctx); err != nil {
		return err
	}
	q.members.say("hello")
	return nil
}

// Answer implements grid.Questions.
func (q *questions) Answer(name string, fn grid.Answerer) (stop func()) {
	remove := q.answerers.Add(name, fn)
	// Nodes of one queue share the questions that one of them shall answer.
	sub, err := q.link.conn.QueueSubscribe(q.link.subject("ask", "one", name), "one", q.asked)
	if err == nil {
		_ = q.link.conn.FlushTimeout(tryTimeout) // without a connection the server learns of it later
	}
	q.members.say("here")
	return sync.OnceFunc(func() {
		remove()
		if err == nil {
			_ = sub.Unsubscribe() // fails only if the connection is closed
		}
		q.members.say("here")
	})
}

// asked answers a question in a goroutine of its own. The last token of the subject is its name.
func (q *questions) asked(msg *nats.Msg) {
	fn := q.answerers.For(lastToken(msg.Subject))
	in := reader{rest: msg.Data}
	question := in.packed()
	if fn == nil || in.err != nil || msg.Reply == "" {
		return
	}
	select {
	case q.working <- struct{}{}:
	default:
		_ = msg.Respond(q.encode(nil, freshet.Errorf(freshet.Unavailable, "The node is too busy to answer, please try again")))
		return
	}
	q.link.tasks.spawn(func() {
		defer func() { <-q.working }()
		ctx, cancel := context.WithTimeout(q.link.tasks.ctx, askTimeout)
		defer cancel()
		reply := q.encode(fn(ctx, question))
		if len(reply) > q.link.maxPayload {
			reply = q.encode(nil, freshet.Errorf(freshet.TooLarge, "The answer of a node is too long to be sent"))
		}
		_ = msg.Respond(reply) // whoever asked notices
	})
}

// Ask implements grid.Questions.
func (q *questions) Ask(ctx context.Context, name string, question []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if fn := q.answerers.For(name); fn != nil {
		return fn(ctx, question)
	}
	msg, err := q.link.conn.RequestWithContext(ctx, q.link.subject("ask", "one", name), appendPacked(nil, question))
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
func (q *questions) AskAll(ctx context.Context, name string, question []byte) []grid.Answer {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var all []grid.Answer
	var own sync.WaitGroup
	if fn := q.answerers.For(name); fn != nil {
		all = append(all, grid.Answer{Node: q.link.node})
		own.Go(func() { all[0].Data, all[0].Err = fn(ctx, question) })
	}
	others := q.askOthers(ctx, name, question)
	own.Wait()
	all = append(all, others...)
	slices.SortFunc(all, func(a, b grid.Answer) int { return strings.Compare(a.Node, b.Node) })
	return all
}

// askOthers asks the other nodes that should answer. Those that turn out to have no connection are not in the list.
func (q *questions) askOthers(ctx context.Context, name string, question []byte) []grid.Answer {
	nodes, _ := q.members.known(name)
	all := q.askEach(ctx, nodes, name, question)
	return slices.DeleteFunc(all, func(a grid.Answer) bool { return errors.Is(a.Err, nats.ErrNoResponders) })
}

// askEach asks some nodes. There is an answer for each of them.
func (q *questions) askEach(ctx context.Context, nodes []string, name string, question []byte) []grid.Answer {
	all := make([]grid.Answer, len(nodes))
	body := appendPacked(nil, question)
	var wg sync.WaitGroup
	for i, id := range nodes {
		wg.Go(func() {
			msg, err := q.link.conn.RequestWithContext(ctx, q.link.subject("ask", id, name), body)
			if err == nil {
				all[i] = decodeAnswer(msg.Data)
				return
			}
			all[i] = grid.Answer{Node: id, Err: unknown(err)}
			if errors.Is(err, nats.ErrNoResponders) {
				q.members.lose(id)
			}
		})
	}
	wg.Wait()
	return all
}

// wireError is an error as nodes tell it to each other: without its cause, which stays where it happened.
type wireError struct {
	Kind   freshet.Kind         `json:"kind"`
	Msg    string               `json:"msg"`
	Fields []freshet.FieldError `json:"fields,omitempty"`
	Retry  time.Duration        `json:"retry,omitempty"`
}

// encode writes what this node says to a question.
func (q *questions) encode(data []byte, err error) []byte {
	out := appendBytes(nil, []byte(q.link.node))
	if err == nil {
		return appendPacked(append(out, 1), data)
	}
	w := wireError{Kind: freshet.Internal, Msg: "The node failed"}
	if e, ok := errors.AsType[*freshet.Error](err); ok {
		w = wireError{e.Kind, e.Msg, e.Fields, e.RetryAfter}
	} else {
		q.link.log.Error("a question of another node could not be answered", "err", err)
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
