package subscribe

import (
	"context"
	"net/http"
	"runtime/debug"

	"github.com/freshet-io/freshet/internal/fanout"
	"github.com/freshet-io/freshet/internal/sse"
	"github.com/freshet-io/freshet/internal/wire"
)

// ServeBare implements wire.BareHandler. It takes whoever asks for a stream, and leaves everything else to net/http: long polls, other
// methods, and streams that must come in chunks. Streams that can begin now do; for the others a goroutine asks and waits, with the
// request as it was understood here.
func (s *Server) ServeBare(c *wire.BareConn, r *wire.Request) {
	if r.Method != http.MethodGet || fanout.NeedsChunks(r) {
		return
	}
	target := parseRequestTarget(r.Target)
	var q request
	err := s.read(&q, r.Method, r, &target)
	if (err != nil || q.longPoll) && namesTransport(r, &target) {
		return // its response may not fit into the socket
	}
	if err == nil && r.IsLiteral && s.beginNow(c, &q) {
		return
	}
	b := &bareSubscriber{server: s, conn: c.Move(), raw: r.Clone(), target: target, request: q, err: err}
	s.workers.run(b.serve)
}

// namesTransport reports whether a client says how it wants to be served.
func namesTransport(h fields, t *requestTarget) bool {
	_, found, _ := either(h, t, "X-Sd-Transport")
	return found
}

// beginNow begins the streams of those who join others: the topic is followed here, and what the catalog said of the same key a moment
// ago still holds. It waits for nobody, so it leaves out who is the first, who is refused, whose account or app is limited, who
// resumes (comparing documents takes time) and who wants its document compressed (so does that).
func (s *Server) beginNow(c *wire.BareConn, q *request) bool {
	if !s.alone || s.draining.Load() || q.ask.Source != nil || q.lastID != "" || q.encoding != sse.Identity || q.ask.Signed != nil {
		return false
	}
	seen := s.registry.rechecker.queue.seen()
	if !s.catalog.MaySubscribeNow(&q.ask) {
		return false
	}
	g := s.registry.joinNow(q, seen)
	if g == nil {
		return false
	}
	s.fanout.Take(c, s.stream(q, g))
	return true
}

// bareSubscriber is somebody who has to wait for its stream.
type bareSubscriber struct {
	server  *Server
	conn    *wire.BareConn
	raw     *wire.Request
	target  requestTarget
	request request
	err     error // of reading the request
}

func (b *bareSubscriber) serve() {
	defer b.conn.Close() // unless an event loop has it by then
	defer func() {
		if v := recover(); v != nil {
			b.server.log.Error("subscription panicked", "panic", v, "stack", string(debug.Stack()))
		}
	}()
	if b.err != nil {
		b.fail(b.err)
		return
	}
	g, err := b.server.join(context.Background(), &b.request) // clients that go away meanwhile are noticed by the loop
	if err != nil {
		b.fail(err)
		return
	}
	b.server.fanout.Take(b.conn, b.server.stream(&b.request, g))
}

// fail tells the client what went wrong.
func (b *bareSubscriber) fail(err error) {
	r := b.raw.RawHTTP()
	r.RemoteAddr = b.conn.Peer.String()
	var w wire.ResponseWriter
	w.Reset(b.conn, r.Method, nil)
	b.server.fail(&w, r, &b.target, &b.request, err)
	w.Finish()
}
