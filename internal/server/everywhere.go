package server

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/router"
	"github.com/freshet-io/freshet/internal/subscribe"
	"github.com/freshet-io/freshet/internal/usage"
)

// A management call may meet any node, and what it asks about may be on any other: streams, what became of publications, and
// what was counted. Every node answers for itself here, and whoever is asked puts the answers together.

// The questions.
const (
	askStreams     = "streams"
	askStream      = "stream"
	askCut         = "cut"
	askRefusals    = "refusals"
	askSubscribers = "subscribers"
	askLately      = "lately"
	askFlush       = "flush"
	everywhereWait = 2 * time.Second // for nodes that do not answer
)

// everywhere asks all nodes.
type everywhere struct {
	nodes grid.Questions
	log   *slog.Logger
}

// answerTo has questions of a name answered by fn, which gets them as values.
func answerTo[Q, A any](nodes grid.Questions, name string, fn func(context.Context, Q) (A, error)) (stop func()) {
	return nodes.Answer(name, func(ctx context.Context, text []byte) ([]byte, error) {
		var question Q
		if err := json.Unmarshal(text, &question); err != nil {
			return nil, freshet.Wrap(freshet.Invalid, err, "The question of another node cannot be read")
		}
		answer, err := fn(ctx, question)
		if err != nil {
			return nil, err
		}
		return json.Marshal(answer)
	})
}

// askAll returns what the nodes say. Who says nothing is left out: a node that is gone has nothing to tell.
func askAll[A any](e everywhere, name string, question any) []A {
	text, err := json.Marshal(question)
	if err != nil {
		panic(err) // a type of ours that cannot be written
	}
	ctx, cancel := context.WithTimeout(context.Background(), everywhereWait)
	defer cancel()
	var all []A
	for _, said := range e.nodes.AskAll(ctx, name, text) {
		var one A
		if said.Err == nil {
			said.Err = json.Unmarshal(said.Data, &one)
		}
		if said.Err != nil {
			e.log.Warn("a node did not answer", "node", said.Node, "question", name, "err", said.Err)
			continue
		}
		all = append(all, one)
	}
	return all
}

// streamsQuestion asks how many streams there are, and for some of them.
type streamsQuestion struct {
	Filter freshet.ConnectionFilter
	Parts  map[string]streamsPart // by node
}

type streamsPart struct{ Offset, Limit int64 }

type streamsAnswer struct {
	Node    string
	Streams []freshet.Connection
	Total   int64
}

// answerForStreams answers for the subscriber interface of this node.
func answerForStreams(nodes grid.Questions, node string, s *subscribe.Server) (stop func()) {
	stops := []func(){
		answerTo(nodes, askStreams, func(_ context.Context, q streamsQuestion) (streamsAnswer, error) {
			part := q.Parts[node]
			streams, total := s.Live(q.Filter, part.Offset, part.Limit)
			return streamsAnswer{node, streams, total}, nil
		}),
		answerTo(nodes, askStream, func(_ context.Context, id string) (*freshet.Connection, error) {
			if c, ok := s.Connection(id); ok {
				return &c, nil
			}
			return nil, nil
		}),
		answerTo(nodes, askCut, func(_ context.Context, id string) (bool, error) { return s.Cut(id), nil }),
		answerTo(nodes, askRefusals, func(_ context.Context, topicID string) ([]freshet.Refusal, error) { return s.Refusals(topicID), nil }),
		answerTo(nodes, askSubscribers, func(_ context.Context, topicID string) (int64, error) { return s.Subscribers(topicID), nil }),
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// Live implements manage.Connections: node by node, and the oldest of each first, so that a page far behind costs no more than
// the first.
func (e everywhere) Live(filter freshet.ConnectionFilter, offset, limit int64) (list []freshet.Connection, total int64) {
	parts := make(map[string]streamsPart)
	for _, n := range e.streams(streamsQuestion{Filter: filter}) {
		first := max(offset, total)
		total += n.Total
		if last := min(offset+limit, total); first < last {
			parts[n.Node] = streamsPart{first - (total - n.Total), last - first}
		}
	}
	if len(parts) == 0 {
		return nil, total
	}
	for _, n := range e.streams(streamsQuestion{filter, parts}) {
		list = append(list, n.Streams...)
	}
	return list, total
}

func (e everywhere) streams(q streamsQuestion) []streamsAnswer {
	all := askAll[streamsAnswer](e, askStreams, q)
	slices.SortFunc(all, func(a, b streamsAnswer) int { return strings.Compare(a.Node, b.Node) })
	return all
}

// Connection implements manage.Connections.
func (e everywhere) Connection(id string) (freshet.Connection, bool) {
	for _, n := range askAll[*freshet.Connection](e, askStream, id) {
		if n != nil {
			return *n, true
		}
	}
	return freshet.Connection{}, false
}

// Cut implements manage.Connections.
func (e everywhere) Cut(id string) bool {
	for _, n := range askAll[bool](e, askCut, id) {
		if n {
			return true
		}
	}
	return false
}

// Refusals implements manage.Connections.
func (e everywhere) Refusals(topicID string) []freshet.Refusal {
	var all []freshet.Refusal
	at := map[int]int{} // by code
	for _, n := range askAll[[]freshet.Refusal](e, askRefusals, topicID) {
		for _, r := range n {
			i, known := at[r.Code]
			if !known {
				at[r.Code] = len(all)
				all = append(all, r)
				continue
			}
			all[i].Count += r.Count
			if r.Last.After(all[i].Last) {
				all[i].Message, all[i].Last = r.Message, r.Last
			}
		}
	}
	return all
}

// Subscribers implements manage.Connections.
func (e everywhere) Subscribers(topicID string) (n int64) {
	for _, here := range askAll[int64](e, askSubscribers, topicID) {
		n += here
	}
	return n
}

// Lately implements manage.Topics.
func (e everywhere) Lately(topicID string) router.Lately {
	var sum router.Lately
	for _, n := range askAll[router.Lately](e, askLately, topicID) {
		sum.Merge(&n)
	}
	return sum
}

// usageEverywhere also knows what other nodes counted: they write it down before it is read.
type usageEverywhere struct {
	*usage.Meter
	everywhere
}

// Hours implements manage.Usage.
func (u usageEverywhere) Hours(span catalog.Span, match func(usage.Place) bool, read func() ([]freshet.UsageHour, error)) ([]freshet.UsageHour, error) {
	askAll[struct{}](u.everywhere, askFlush, struct{}{})
	return u.Meter.Hours(span, match, read)
}
