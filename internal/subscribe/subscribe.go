package subscribe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
	"github.com/freshet-io/freshet/internal/fanout"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/httpkit"
	"github.com/freshet-io/freshet/internal/router"
	"github.com/freshet-io/freshet/internal/sse"
	"github.com/freshet-io/freshet/internal/usage"
)

// Catalog answers who may subscribe.
type Catalog interface {
	MaySubscribe(ctx context.Context, ask catalog.SubscribeAsk) (*catalog.Grant, error)
	MaySubscribeNow(ask *catalog.SubscribeAsk) bool
	Provision(ctx context.Context, ask catalog.SubscribeAsk) (*catalog.Grant, error)
}

// Router opens feeds.
type Router interface {
	Subscribe(ctx context.Context, topic *freshet.Topic, v router.Variant) (*router.Feed, error)
}

// Parts are what a Server is made of.
type Parts struct {
	Log     *slog.Logger
	Catalog Catalog
	Router  Router
	Fanout  *fanout.Fanout
	Notices grid.Notices
	Sources Sources // nil if nothing is polled

	// Alone says that there are no other nodes: what this one holds is the newest there is, and nobody has to be asked.
	Alone bool

	// Counters sum up the connections of limited accounts over all nodes. Nil: there are no other nodes.
	Counters grid.Counters

	// Meter counts what is delivered. Nil: nobody counts, and nobody has a quota of messages.
	Meter *usage.Meter
}

// Options are the settings of a Server. Zero values mean the defaults.
type Options struct {
	// SnapshotEvent is the name of full documents, "snapshot" by default. Clients with an app token get "data" in any case.
	SnapshotEvent string

	// MaxConnections bounds the subscribers of all nodes together; 0 does not.
	MaxConnections int64

	// LimitMessage is what a subscriber beyond MaxConnections is told; there is a text by default.
	LimitMessage string

	// Proxies are believed when they say whose request they pass on. The log tells.
	Proxies httpkit.Proxies

	// SeatWait is how long a subscriber beyond a limit waits for another one to go before it is refused; 100 ms by default.
	SeatWait time.Duration

	// LongPoll is how long an answer by long polling waits for news; 25 s by default.
	LongPoll time.Duration

	// SnapshotTimeout is how long a stream of a polled topic waits for a first document; 30 s by default.
	SnapshotTimeout time.Duration

	// Recheck is how often every permission is asked for again, in case a notice was lost; 15 s by default.
	Recheck time.Duration
}

const (
	snapshotEvent   = "snapshot"
	legacyEvent     = "data"
	defaultLongPoll = 25 * time.Second
	defaultRecheck  = 15 * time.Second
	defaultSeatWait = 100 * time.Millisecond

	defaultSnapshotTimeout = 30 * time.Second
)

// Server is the subscriber interface.
type Server struct {
	// Static after New.
	log      *slog.Logger
	catalog  Catalog
	fanout   *fanout.Fanout
	opts     Options
	alone    bool
	names    eventNames
	headers  map[sse.Encoding]*fanout.Header
	registry *registry
	workers  *workers

	draining atomic.Bool
	drained  chan struct{} // closed when draining begins
	drainTo  time.Time     // when the last long poll must be answered; set before drained is closed
}

// eventNames says what full documents are called.
type eventNames struct{ standard string }

func (n eventNames) forRequest(legacy bool) string {
	if legacy {
		return legacyEvent
	}
	return n.standard
}

// New returns a Server. Mount it at the root of its listener: it reads raw request requestTargets. Close it after use.
func New(parts Parts, opts Options) *Server {
	if opts.SnapshotEvent == "" {
		opts.SnapshotEvent = snapshotEvent
	}
	if opts.SeatWait <= 0 {
		opts.SeatWait = defaultSeatWait
	}
	if opts.LongPoll <= 0 {
		opts.LongPoll = defaultLongPoll
	}
	if opts.Recheck <= 0 {
		opts.Recheck = defaultRecheck
	}
	if opts.SnapshotTimeout <= 0 {
		opts.SnapshotTimeout = defaultSnapshotTimeout
	}
	if opts.LimitMessage == "" {
		opts.LimitMessage = fmt.Sprintf("Too many connections: this server allows %d", opts.MaxConnections)
	}
	if parts.Log == nil {
		parts.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		log:     parts.Log,
		catalog: parts.Catalog,
		fanout:  parts.Fanout,
		opts:    opts,
		alone:   parts.Alone,
		names:   eventNames{opts.SnapshotEvent},
		headers: make(map[sse.Encoding]*fanout.Header),
		drained: make(chan struct{}),
		workers: newWorkers(),
	}
	s.registry = newRegistry(parts, &opts)
	for _, enc := range []sse.Encoding{sse.Identity, sse.Gzip, sse.Deflate} {
		s.headers[enc] = fanout.NewHeader(streamHeader(enc))
	}
	return s
}

func streamHeader(enc sse.Encoding) http.Header {
	h := http.Header{}
	h.Set("Content-Type", sse.ContentType)
	h.Set("Cache-Control", "no-cache, no-transform") // a proxy that compresses would also buffer
	h.Set("X-Accel-Buffering", "no")
	allowOrigin(h)
	if enc != sse.Identity {
		h.Set("Content-Encoding", enc.String())
	}
	return h
}

// Connections is how many subscribers are served now.
func (s *Server) Connections() int64 { return s.registry.quotas.connections.Load() }

// Drain refuses new subscribers and ends the others, a number of them each second, within the time that ctx leaves.
func (s *Server) Drain(ctx context.Context) error {
	if !s.draining.Swap(true) {
		s.drainTo = time.Now().Add(s.fanout.DrainTime(ctx, s.registry.reports.stats.longPoll.Load()))
		close(s.drained)
	}
	return s.fanout.Drain(ctx)
}

// Close ends the Server's own work. Close the Fanout before it, so that streams can still say good-bye.
func (s *Server) Close() error {
	s.workers.close()
	s.registry.close()
	return nil
}

// ServeHTTP answers one subscriber.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodOptions {
		preflight(w, r)
		return
	}
	target := parseRequestTarget(r.RequestURI)
	var q request
	err := s.read(&q, r.Method, r.Header, &target)
	if r.Method == http.MethodHead {
		copyHeader(w.Header(), streamHeader(q.encoding))
		return
	}
	if err == nil {
		err = s.serve(w, r, &q)
	}
	if err != nil {
		s.fail(w, r, &target, &q, err)
	}
}

// read understands the request. What it could read is there also if it fails, so that the error can be told in the client's own way.
func (s *Server) read(q *request, method string, h fields, t *requestTarget) error {
	err := q.read(h, t, s.names)
	if method != http.MethodGet && method != http.MethodHead {
		return freshet.Errorf(freshet.MethodNotAllowed, "Subscribe with GET")
	}
	id, ok := t.topicID()
	if !ok {
		raw, source := t.sourceURL()
		if !source {
			return freshet.Errorf(freshet.NotFound, "There is nothing at this path; topics are at /v1/topics/{id}, and a target URL may be the path")
		}
		if err == nil {
			q.ask.Source, err = readSource(headerOf(h), t, raw)
		}
		return err
	}
	q.ask.TopicID = id
	return err
}

// serve serves a request that net/http has read.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, q *request) error {
	g, err := s.join(r.Context(), q)
	switch {
	case err != nil:
		return err
	case q.longPoll:
		return s.longPoll(w, r, q, g)
	}
	s.fanout.Serve(w, r, s.stream(q, g))
	return nil
}

// join makes a subscriber a member of its group, if it may be.
func (s *Server) join(ctx context.Context, q *request) (*group, error) {
	if s.draining.Load() {
		e := freshet.Wrap(freshet.Unavailable, errDraining, "This server is going away; come back in a moment")
		e.RetryAfter = time.Second + rand.N(4*time.Second)
		return nil, e
	}
	seen := s.registry.rechecker.queue.seen()
	grant, err := s.grant(ctx, q)
	if err != nil {
		return nil, err
	}
	g, err := s.registry.join(ctx, q, grant) // not before: strangers shall not take up seats while they are being refused
	if err != nil {
		return nil, err
	}
	s.registry.rechecker.queue.joined(g.audience, seen)
	return g, nil
}

// errDraining is no fault of the server's, though its code is that of one.
var errDraining = errors.New("draining")

// stream is what a member of the group is served.
func (s *Server) stream(q *request, g *group) fanout.Stream {
	return fanout.Stream{Group: g.streams, Header: s.headers[q.encoding], Prefix: q.prefix(), First: g.begin(q)}
}

// grant asks the catalog for the topic, which may be one that does not exist yet.
func (s *Server) grant(ctx context.Context, q *request) (*catalog.Grant, error) {
	if q.ask.Source == nil {
		return s.catalog.MaySubscribe(ctx, q.ask)
	}
	g, err := s.catalog.Provision(ctx, q.ask)
	if err == nil {
		q.ask.TopicID = g.Topic.ID
	}
	return g, err
}

// prefix is what precedes the first event on this stream alone.
func (q *request) prefix() []byte {
	out := []byte(q.encoding.StreamHeader())
	if q.padding == 0 {
		return out
	}
	comment := sse.AppendComment(nil, q.padding)
	if q.variant.Compressed {
		return sse.AppendSegment(out, comment)
	}
	return append(out, comment...)
}

// fail tells the client what went wrong, as an event, and ends the response.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, t *requestTarget, q *request, err error) {
	f := newFailure(err, q.legacy, time.Now())
	s.registry.reports.refused(r, t, q.ask.TopicID, &f, err)
	if q.longPoll {
		s.respond(w, r, q, []polledEvent{{Event: "error", Data: f.json()}})
		return
	}
	h := w.Header()
	copyHeader(h, streamHeader(q.encoding))
	if f.Code == codes[freshet.MethodNotAllowed] {
		h.Set("Allow", allowedMethods)
	}
	if r.ProtoMajor == 1 {
		h.Set("Connection", "close") // nothing follows, and a refused client shall not hold a connection
	}
	var body []byte
	if q.padding > 0 {
		body = sse.AppendComment(body, q.padding)
	}
	body = append(body, f.frame(retryFor(err))...)
	s.fanout.WriteBody(w, q.encoding.AppendWhole(nil, body))
}

func copyHeader(dst, src http.Header) {
	for name, values := range src {
		dst[name] = values
	}
}
