package subscribe

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/freshet-io/freshet/internal/fanout"
)

// polledEvent is an event in the response to a long poll: the data is JSON, not text.
type polledEvent struct {
	ID    string          `json:"id,omitempty"`
	Event string          `json:"event"`
	Data  json.RawMessage `json:"data"`
}

// longPoll answers with the events that the client has not seen, as soon as there are any.
func (s *Server) longPoll(w http.ResponseWriter, r *http.Request, q *request, g *group) error {
	defer s.registry.leave(g)
	s.registry.reports.stats.longPoll.Add(1)
	defer s.registry.reports.stats.longPoll.Add(-1)
	changed := make(chan struct{}, 1)
	stop := g.watch(func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	defer stop()
	until := time.Now().Add(s.opts.LongPoll)
	timeout := time.NewTimer(s.opts.LongPoll)
	defer timeout.Stop()
	drained := s.drained
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
			g.countResponse(s.respond(w, r, q, nil), fanout.Batch{})
			return nil
		case <-drained:
			drained = nil
			timeout.Reset(min(time.Until(until), upTo(time.Until(s.drainTo))))
		}
	}
	g.countResponse(s.respond(w, r, q, events(batch)), batch)
	return nil
}

// upTo is a part of d, as chance has it.
func upTo(d time.Duration) time.Duration { return time.Duration(rand.Float64() * float64(max(0, d))) }

// responseSize is how long the response to a long poll was on the wire.
type responseSize struct{ head, body int }

// countResponse tells the meter of a response that brought the batch.
func (g *group) countResponse(n responseSize, b fanout.Batch) {
	if g.counter != nil {
		g.counter.Sent(int64(b.Events), int64(n.head+n.body), int64(n.head+max(n.body, b.Full)))
	}
}

// events takes frames apart again. They are our own, so their form is known.
func events(b fanout.Batch) []polledEvent {
	var all []polledEvent
	for frame := range bytes.SplitSeq(bytes.TrimSuffix(b.Bytes, []byte("\n\n")), []byte("\n\n")) {
		var e polledEvent
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

// respond ends a long poll: 204 means that nothing happened.
func (s *Server) respond(w http.ResponseWriter, r *http.Request, q *request, all []polledEvent) responseSize {
	h := w.Header()
	allowOrigin(h)
	h.Set("Cache-Control", "no-store")
	// The HTTP library would add these by itself, where nobody sees how long they are.
	h.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	if r.Close {
		h.Set("Connection", "close")
	}
	if len(all) == 0 {
		w.WriteHeader(http.StatusNoContent)
		return responseSize{head: headLen(http.StatusNoContent, h)}
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
	encoded := q.encoding.AppendWhole(nil, body.Bytes())
	h.Set("Content-Length", strconv.Itoa(len(encoded)))
	head := headLen(http.StatusOK, h)
	return responseSize{head, s.fanout.WriteBody(w, encoded)}
}

// headLen is how long the head of a response is in HTTP/1.
func headLen(status int, h http.Header) int {
	head := bytes.NewBufferString("HTTP/1.1 " + strconv.Itoa(status) + " " + http.StatusText(status) + "\r\n")
	_ = h.Write(head) // a Buffer cannot fail
	return head.Len() + len("\r\n")
}
