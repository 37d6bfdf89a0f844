package subscribe

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"

	"github.com/freshet-io/freshet/internal/fanout"
)

// answeredEvent is an event in the answer of a long poll: the data is JSON, not text.
type answeredEvent struct {
	ID    string          `json:"id,omitempty"`
	Event string          `json:"event"`
	Data  json.RawMessage `json:"data"`
}

// longPoll answers with the events that the client has not seen, as soon as there are any.
func (s *Server) longPoll(w http.ResponseWriter, r *http.Request, q *request, g *group) error {
	defer s.audience.leave(g)
	s.audience.stats.longPoll.Add(1)
	defer s.audience.stats.longPoll.Add(-1)
	changed := make(chan struct{}, 1)
	stop := g.watch(func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	defer stop()
	timeout := time.NewTimer(s.opts.LongPoll)
	defer timeout.Stop()
	batch := g.begin(q)
	for len(batch.Bytes) == 0 {
		select {
		case <-changed:
			batch = g.since(batch.Next)
		case <-g.over:
			return g.reason
		case <-r.Context().Done():
			return nil
		case <-timeout.C:
			s.answer(w, q, nil)
			return nil
		case <-s.drained:
			s.answer(w, q, nil)
			return nil
		}
	}
	n := s.answer(w, q, events(batch))
	if g.counter != nil {
		g.counter.Sent(int64(batch.Events), int64(n), int64(max(n, batch.Full)))
	}
	return nil
}

// events takes frames apart again. They are our own, so their form is known.
func events(b fanout.Batch) []answeredEvent {
	var all []answeredEvent
	for frame := range bytes.SplitSeq(bytes.TrimSuffix(b.Bytes, []byte("\n\n")), []byte("\n\n")) {
		var e answeredEvent
		for line := range bytes.SplitSeq(frame, []byte("\n")) {
			name, value, _ := bytes.Cut(line, []byte(": "))
			switch string(name) {
			case "id":
				e.ID = string(value)
			case "event":
				e.Event = string(value)
			case "data":
				e.Data = json.RawMessage(value)
			}
		}
		all = append(all, e)
	}
	return all
}

// answer ends a long poll: 204 means that nothing happened. It returns the length of the body.
func (s *Server) answer(w http.ResponseWriter, q *request, all []answeredEvent) int {
	h := w.Header()
	allowOrigin(h)
	h.Set("Cache-Control", "no-store")
	if len(all) == 0 {
		w.WriteHeader(http.StatusNoContent)
		return 0
	}
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(all); err != nil {
		panic(err) // data is JSON that was validated when it was published
	}
	h.Set("Content-Type", "application/json")
	if name := q.encoding.String(); name != "" {
		h.Set("Content-Encoding", name)
	}
	n, _ := w.Write(q.encoding.AppendWhole(nil, body.Bytes())) // fails only when the client is gone
	return n
}
